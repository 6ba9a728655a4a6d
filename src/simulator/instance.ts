import { SimulatedError } from './request.ts'

/** Remaining size of all instances of one reply. Characters; each value counts as a hundred. */
export type InstanceBudget = { left: number }

/** Returns room for far more than an example needs, made in little time. */
export function instanceBudget(): InstanceBudget {
  return { left: 500_000 }
}

/**
 * A minimal value that a JSON schema accepts, the same one each time: with required members only. Throws SimulatedError where there is
 * no room for it.
 */
export function instanceOf(schema: unknown, budget = instanceBudget()): unknown {
  return isRecord(schema) ? make({ schema, root: schema, name: 'value', depth: 0, budget }) : {}
}

function take(room: InstanceBudget, characters: number): void {
  room.left -= characters
  if (room.left >= 0) return
  throw new SimulatedError(400, 'The smallest value that this schema accepts is too large.', { code: 'invalid_schema' })
}

/** A value that the schema itself has. */
function taken(room: InstanceBudget, value: unknown): unknown {
  take(room, JSON.stringify(value)?.length ?? 0)
  return value
}

type Place = { schema: Schema; root: Schema; name: string; depth: number; budget: InstanceBudget }
type Schema = Readonly<Record<string, unknown>>

/** Schemas may be recursive: below this depth values are null. */
const maxDepth = 12
const perValue = 100

function make(place: Place): unknown {
  const { schema, root, depth, budget } = place
  take(budget, perValue)
  if (depth > maxDepth) return null
  if (typeof schema.$ref === 'string') return make({ ...place, schema: referred(root, schema.$ref), depth: depth + 1 })
  if (schema.const !== undefined) return taken(budget, schema.const)
  if (Array.isArray(schema.enum)) return taken(budget, schema.enum[0])
  if (schema.default !== undefined) return taken(budget, schema.default)
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return taken(budget, schema.examples[0])
  for (const choices of [schema.anyOf, schema.oneOf]) {
    if (Array.isArray(choices))
      return make({ ...place, schema: { ...without(schema), ...record(simplest(choices)) }, depth: depth + 1 })
  }
  if (Array.isArray(schema.allOf)) return make({ ...place, schema: merged(place, schema.allOf), depth: depth + 1 })
  return generators[typeOf(schema)]?.(place) ?? null
}

const generators: { [type: string]: (place: Place) => unknown } = {
  object: objectOf,
  array: arrayOf,
  string: stringOf,
  integer: ({ schema }) => numberOf(schema, 1),
  number: ({ schema }) => numberOf(schema, 0.5),
  boolean: () => true,
}

function typeOf({ type, properties, items, required }: Schema): string {
  if (Array.isArray(type)) return String(type.find((one) => one !== 'null') ?? 'null')
  if (typeof type === 'string') return type
  if (properties || required) return 'object'
  return items ? 'array' : 'string'
}

function objectOf({ schema, root, depth, budget }: Place): unknown {
  const properties = record(schema.properties)
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  const member = (name: string) => make({ schema: record(properties[name]), root, name, depth: depth + 1, budget })
  for (const name of required) take(budget, name.length)
  return Object.fromEntries(required.map((name) => [name, member(name)]))
}

function arrayOf({ schema, root, name, depth, budget }: Place): unknown {
  const listed = Array.isArray(schema.prefixItems) ? schema.prefixItems : []
  const [least, most] = [bound(schema.minItems, 1), bound(schema.maxItems, Number.POSITIVE_INFINITY)]
  // One item, or none where a recursive schema has to end.
  const length = depth > maxDepth / 2 ? bound(schema.minItems, 0) : Math.min(Math.max(least, listed.length), most)
  return Array.from({ length }, (_, index) => {
    const item = make({ schema: record(listed[index] ?? schema.items), root, name, depth: depth + 1, budget })
    return schema.uniqueItems === true && index > 0 ? distinct(item, index) : item
  })
}

function distinct(item: unknown, index: number): unknown {
  if (typeof item === 'string') return `${item} ${index + 1}`
  return typeof item === 'number' ? item + index : item
}

const formats: { [format: string]: string } = {
  date: '2026-01-02',
  time: '03:04:05Z',
  'date-time': '2026-01-02T03:04:05Z',
  duration: 'P1D',
  email: 'someone@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/** A string is the name of its member, or an example of its format; patterns are not supported. */
function stringOf({ schema, name, budget }: Place): string {
  const text = formats[String(schema.format)] ?? name
  const [least, most] = [bound(schema.minLength, 0), bound(schema.maxLength, Number.POSITIVE_INFINITY)]
  take(budget, Math.max(least, Math.min(text.length, most)))
  return text.padEnd(least, 'x').slice(0, most)
}

/** The nearest number to `preferred` within the bounds, a multiple where the schema asks for one. */
function numberOf(schema: Schema, preferred: number): number {
  const whole = Number.isInteger(preferred)
  const step = bound(schema.multipleOf, whole ? 1 : 0)
  const gap = step || 0.5
  const least = Math.max(
    bound(schema.minimum, Number.NEGATIVE_INFINITY),
    bound(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY) + gap,
  )
  const most = Math.min(
    bound(schema.maximum, Number.POSITIVE_INFINITY),
    bound(schema.exclusiveMaximum, Number.POSITIVE_INFINITY) - gap,
  )
  const value = Math.min(Math.max(preferred, least), most)
  return step ? Math.ceil(value / step) * step : value
}

function bound(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

/** The first object that is neither null nor a reference, else the first choice. */
function simplest(choices: unknown[]): unknown {
  return choices.find((choice) => isRecord(choice) && choice.type !== 'null' && !choice.$ref) ?? choices[0]
}

function without({ anyOf, oneOf, ...others }: Schema): Schema {
  return others
}

function merged({ schema, root }: Place, all: unknown[]): Schema {
  const { allOf, ...own } = schema
  const parts = all.map((part) => {
    return isRecord(part) && typeof part.$ref === 'string' ? referred(root, part.$ref) : record(part)
  })
  const layers = [...parts, own]
  return {
    ...Object.assign({}, ...layers),
    properties: Object.assign({}, ...layers.map(({ properties }) => record(properties))),
    required: [...new Set(layers.flatMap(({ required }) => (Array.isArray(required) ? required : [])))],
  }
}

/** The target of `#/$defs/name` in the same schema; a missing one accepts anything. */
function referred(root: Schema, reference: string): Schema {
  const steps = reference.replace(/^#\/?/, '').split('/').filter(Boolean)
  return record(steps.reduce<unknown>((at, step) => record(at)[step.replaceAll('~1', '/').replaceAll('~0', '~')], root))
}

function record(value: unknown): Schema {
  return isRecord(value) ? value : {}
}

function isRecord(value: unknown): value is Schema {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
