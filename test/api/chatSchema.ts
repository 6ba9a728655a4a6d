import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { publishedSpec, specMissing } from '../helpers/specs.ts'

const file = 'openai.openapi.yaml'

/** Why the published description cannot be read here; undefined when it can. */
export const schemaMissing = specMissing(file)

const components = (publishedSpec(file)?.components ?? {}) as JsonObject
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
if (!schemaMissing) ajv.addSchema({ $id: 'published', components: readable(components) } as object)

/** The violations of the published schema of this name in a value. */
export function violations(name: string, value: unknown): string[] {
  const validate = ajv.getSchema(`published#/components/schemas/${name}`)
  if (!validate) throw new Error(`the published description has no schema ${name}`)
  validate(value)
  return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`)
}

/** Names of all properties of a published object schema, gathered through `allOf` and references. */
export function propertiesOf(name: string): string[] {
  return [...new Set(propertiesIn((components as { schemas: JsonObject }).schemas[name]))]
}

function propertiesIn(schema: Json | undefined): string[] {
  if (!isObject(schema)) return []
  const referred = typeof schema.$ref === 'string' ? propertiesOf(schema.$ref.split('/').at(-1) ?? '') : []
  const own = isObject(schema.properties) ? Object.keys(schema.properties) : []
  return [...referred, ...own, ...(Array.isArray(schema.allOf) ? schema.allOf.flatMap(propertiesIn) : [])]
}

/**
 * `nullable` beside a reference has no effect in a JSON Schema validator: it becomes a choice. The usage of a response is
 * null until it has ended, which the description does not say but its publisher does.
 */
function readable(schema: Json | undefined): Json {
  if (Array.isArray(schema)) return schema.map(readable)
  if (!isObject(schema)) return schema ?? null
  const { nullable = schema.$ref === '#/components/schemas/ResponseUsage', ...rest } = schema
  const plain = Object.fromEntries(Object.entries(rest).map(([name, member]) => [name, readable(member)]))
  return nullable === true ? { anyOf: [plain, { type: 'null' }] } : plain
}

/** The names of the schemas that a published choice refers to, by their `type`. */
export function choicesOf(name: string): Map<string, string> {
  const { schemas } = components as { schemas: { [name: string]: JsonObject } }
  const choices = (schemas[name]?.anyOf ?? schemas[name]?.oneOf ?? []) as { $ref: string }[]
  return new Map(
    choices.map(({ $ref }) => {
      const chosen = $ref.split('/').at(-1) ?? ''
      const { properties } = schemas[chosen] as { properties: { type: { enum: string[] } } }
      return [properties.type.enum[0] ?? '', chosen]
    }),
  )
}
