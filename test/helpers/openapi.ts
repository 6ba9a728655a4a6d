import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'

const root = join(import.meta.dirname, '../..')

/** The description of the service as it stands in the repository. */
export const openapi: JsonObject = parse(readFileSync(join(root, 'schemas/openapi.yaml'), 'utf8'))

/** One operation of the description, with the parameters of its path. */
export type Operation = {
  method: string
  path: string
  pointer: string
  parameters: JsonObject[]
  body: JsonObject
}

/** Every operation that is described. */
export const operations: readonly Operation[] = Object.entries(openapi.paths as JsonObject).flatMap(([path, item]) => {
  const { parameters: shared = [], ...methods } = item as JsonObject
  return Object.entries(methods).map(([method, body]) => {
    const own = (body as JsonObject).parameters ?? []
    const parameters = [...(shared as JsonObject[]), ...(own as JsonObject[])].map((one) => resolved(one) as JsonObject)
    const pointer = `#/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}`
    return { method: method.toUpperCase(), path, pointer, parameters, body: body as JsonObject }
  })
})

/** What a reference of the description names; any other value is itself. */
export function resolved(value: Json | undefined): Json | undefined {
  if (!isObject(value) || typeof value.$ref !== 'string') return value
  const steps = value.$ref.split('/').slice(1)
  const found = steps.reduce<Json | undefined>((at, step) => {
    return isObject(at) ? at[step.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined
  }, openapi)
  return resolved(found)
}

/** The bodies of an answer by media type: null when it has none, undefined when the status is not described. */
export function bodyOf({ body }: Operation, status: number): JsonObject | null | undefined {
  const response = resolved((body.responses as JsonObject)[status])
  return isObject(response) ? ((response.content as JsonObject | undefined) ?? null) : undefined
}

/** A component's schema by its name. */
export function schemaOf(name: string): JsonObject {
  return resolved({ $ref: `#/components/schemas/${name}` }) as JsonObject
}

/** A compiled schema of the description. `closed`: members that are not described are mistakes. */
export function validator(schema: Json, { closed = false } = {}): ValidateFunction {
  const schemas = (openapi.components as JsonObject).schemas as JsonObject
  const inner = { $defs: schemas, ...(isObject(schema) ? schema : {}) }
  const text = JSON.stringify(inner).replaceAll('"#/components/schemas/', '"#/$defs/')
  const known = compiled.get(`${closed} ${text}`)
  if (known) return known
  const whole = JSON.parse(text)
  if (closed) close(whole, whole.$defs)
  const made = new Ajv2020({
    allErrors: true,
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowUnionTypes: true,
    formats,
    keywords: ['example'],
  }).compile(whole)
  compiled.set(`${closed} ${text}`, made)
  return made
}

/** To compile one takes as long as to ask a router. */
const compiled = new Map<string, ValidateFunction>()

/** Closes every object whose members are described and that does not say what others may be. */
function close(value: Json | undefined, components: JsonObject): void {
  for (const member of Array.isArray(value) ? value : []) close(member, components)
  if (!isObject(value)) return
  if (Array.isArray(value.allOf)) merge(value, value.allOf, components)
  if (isObject(value.properties) && value.additionalProperties === undefined) value.additionalProperties = false
  for (const member of Object.values(value)) close(member, components)
}

/** Schemas that hold together become one, so that it can be closed. */
function merge(schema: JsonObject, members: readonly Json[], components: JsonObject): void {
  const all = members.map((member) => {
    const { $ref } = member as JsonObject
    return ($ref === undefined ? member : components[String($ref).replace('#/$defs/', '')]) as JsonObject
  })
  delete schema.allOf
  schema.properties = Object.assign({}, ...all.map(({ properties }) => properties))
  schema.required = all.flatMap(({ required }) => (required ?? []) as Json[])
}

const formats = {
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
  date: /^\d{4}-\d\d-\d\d$/,
}
