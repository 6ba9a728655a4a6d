import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'

const file = 'openai.openapi.yaml'

/** Why the published description of Responses cannot be read here; undefined when it can. */
export const responsesSchemaMissing = specMissing(file)

const schemas = ((publishedSpec(file)?.components as JsonObject | undefined)?.schemas ?? {}) as JsonObject
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
if (!responsesSchemaMissing) {
  ajv.addSchema({ $id: 'published', components: { schemas: described() } } as object)
  ajv.addSchema({ $id: 'open', components: { schemas: usable(schemas) } } as object)
}

/** The violations of the published schema in a request for Responses, unknown fields included. */
export function responsesViolations(body: JsonObject): string[] {
  const validate = ajv.getSchema('published#/components/schemas/CreateResponse')
  if (!validate) throw new Error('the published description has no schema CreateResponse')
  validate(body)
  return (validate.errors ?? []).map(({ instancePath, message, params }) =>
    [instancePath, message, params.unevaluatedProperty].filter(Boolean).join(' '),
  )
}

/** The violations of the published schema in a response; unknown members are allowed. */
export function responseViolations(response: JsonObject): string[] {
  return openViolations('Response', response)
}

/** The violations of the published schema in an event of a stream. */
export function eventViolations(event: JsonObject): string[] {
  const name = eventSchemas().get(String(event.type))
  return name ? openViolations(name, event) : [`there is no event ${event.type}`]
}

function openViolations(name: string, value: JsonObject): string[] {
  const validate = ajv.getSchema(`open#/components/schemas/${name}`)
  if (!validate) throw new Error(`the published description has no schema ${name}`)
  validate(value)
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** The names of all events of a stream, as the description names them. */
export function publishedEvents(): string[] {
  return [...eventSchemas().keys()]
}

let eventNames: Map<string, string> | undefined

/** The name of the schema of each type of event. */
function eventSchemas(): Map<string, string> {
  eventNames ??= readEventSchemas()
  return eventNames
}

function readEventSchemas(): Map<string, string> {
  const { anyOf } = schemas.ResponseStreamEvent as { anyOf: { $ref: string }[] }
  return new Map(
    anyOf.map(({ $ref }) => {
      const name = $ref.split('/').at(-1) ?? ''
      const event = schemas[name] as { properties: { type: { enum: string[] } } }
      return [event.properties.type.enum[0] as string, name]
    }),
  )
}

/** Names of all fields of a published schema, gathered through `allOf` and references. */
export function publishedFields(name: string): string[] {
  const fieldsIn = (schema: Json | undefined): string[] => {
    if (!isObject(schema)) return []
    const referred = typeof schema.$ref === 'string' ? publishedFields(schema.$ref.split('/').at(-1) ?? '') : []
    const own = isObject(schema.properties) ? Object.keys(schema.properties) : []
    return [...referred, ...own, ...(Array.isArray(schema.allOf) ? schema.allOf.flatMap(fieldsIn) : [])]
  }
  return [...new Set(fieldsIn(schemas[name]))]
}

/** The schemas as a validator can use them, closed: a field that none of them names is wrong. */
function described(): JsonObject {
  const parents = new Set(
    JSON.stringify(schemas)
      .match(/"allOf":\[[^\]]*\]/g)
      ?.flatMap(namesIn),
  )
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const plain = usable(schema)
      const open = parents.has(name) || !isObject(plain) || !(plain.properties ?? plain.allOf)
      return [name, open ? plain : { ...plain, unevaluatedProperties: false }]
    }),
  )
}

function namesIn(text: string): string[] {
  return [...text.matchAll(/schemas\/(\w+)/g)].map(([, name]) => name as string)
}

/**
 * The items of a conversation are described as exclusive choices, although a message in one form often has the other form
 * too: they become plain choices. `nullable` says nothing to a validator and becomes a choice as well. The usage of a
 * response is null until it has ended, which the description does not say but its publisher does.
 */
function usable(schema: Json | undefined): Json {
  if (Array.isArray(schema)) return schema.map(usable)
  if (!isObject(schema)) return schema ?? null
  const { nullable = schema.$ref === '#/components/schemas/ResponseUsage', oneOf, ...rest } = schema
  const plain: JsonObject = Object.fromEntries(Object.entries(rest).map(([name, member]) => [name, usable(member)]))
  if (oneOf !== undefined) plain.anyOf = usable(oneOf)
  return nullable === true ? { anyOf: [plain, { type: 'null' }] } : plain
}
