import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { load } from 'js-yaml'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'

const root = join(import.meta.dirname, '../..')

/** The description of the service from the repository. */
export const openapi = load(readFileSync(join(root, 'schemas/openapi.yaml'), 'utf8')) as JsonObject

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

/** The target of a reference; any other value is itself. */
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
  const { ajv, known } = closed ? strict : lenient
  const text = JSON.stringify(schema)
  const found = known.get(text) ?? ajv.compile(located(schema, closed))
  known.set(text, found)
  return found
}

type Schemas = { ajv: Ajv2020; known: Map<string, ValidateFunction> }

const lenient = compiler(false)
const strict = compiler(true)

/** All components are compiled once, when they are first needed. */
function compiler(closed: boolean): Schemas {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowUnionTypes: true,
    formats: {
      'uri-reference': /^\S+$/,
      uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
      int64: { type: 'number', validate: Number.isSafeInteger },
      'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
    },
    keywords: ['example'],
  })
  const components = located((openapi.components as JsonObject).schemas as Json, closed)
  ajv.addSchema({ $id: 'components', $defs: components })
  return { ajv, known: new Map() }
}

/** A copy whose references lead to the compiled components, closed where that is wished. */
function located(schema: Json, closed: boolean): JsonObject {
  const copy = JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"components#/$defs/'))
  if (closed) close(copy)
  return copy
}

/** Closes every object whose members are described and that does not allow others. */
function close(value: Json | undefined): void {
  for (const member of Array.isArray(value) ? value : []) close(member)
  if (!isObject(value)) return
  if (Array.isArray(value.allOf)) merge(value, value.allOf)
  if (isObject(value.properties) && value.additionalProperties === undefined) value.additionalProperties = false
  for (const member of Object.values(value)) close(member)
}

/** Schemas that hold together become one, so that it can be closed. */
function merge(schema: JsonObject, members: readonly Json[]): void {
  const all = members.map((member) => {
    const { $ref } = member as JsonObject
    return $ref === undefined
      ? (member as JsonObject)
      : located(schemaOf(String($ref).split('/').at(-1) as string), false)
  })
  delete schema.allOf
  schema.properties = Object.assign({}, ...all.map(({ properties }) => properties))
  schema.required = all.flatMap(({ required }) => (required ?? []) as Json[])
}
