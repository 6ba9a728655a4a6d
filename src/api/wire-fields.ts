import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { isWebSearch } from './tools.ts'

/** The names of each neutral field in a client API, as paths; the first one is reported when the client used none. */
export type WireFields = { readonly [field: string]: readonly string[] }

/** The names of fields at the top of the neutral request, and of fields below them. */
export type FieldNames = { fields: WireFields; nested: WireFields }

/**
 * The client's names of a neutral field: paths in the client's body. A member of a known field is one of its names, an
 * extension's name is its path in the body, and a kind of tool keeps its name (`tools.mcp`).
 */
export function namesOf(field: string, { fields, nested }: FieldNames): readonly string[] {
  if (field.startsWith(extensionPrefix)) return [field.slice(extensionPrefix.length)]
  if (Object.hasOwn(fields, field)) return fields[field] ?? []
  if (Object.hasOwn(nested, field)) return nested[field] ?? []
  const [first, , member = ''] = field.split('.')
  // A block or item of a type that no reader knows.
  if (field.startsWith('parts.opaque.')) return [`${nested['parts.opaque']?.[0]?.split('.')[0] ?? first}.${member}`]
  // A member of one type of parts.
  if (first === 'parts' && Object.hasOwn(nested, `parts.${member}`)) return nested[`parts.${member}`] ?? []
  const dot = field.lastIndexOf('.')
  const parent = field.slice(0, Math.max(dot, 0))
  if (!Object.hasOwn(nested, parent) || first === 'parts') return [field]
  const inner = field.slice(dot)
  return (nested[parent] ?? []).flatMap((name) => {
    return name.endsWith('.user_location') ? [`${name}${inner}`, `${name}.approximate${inner}`] : [`${name}${inner}`]
  })
}

const extensionPrefix = 'extensions.'

/** The names of these that a body uses; the first one where it uses none. */
export function namesInBody(names: readonly string[], body: JsonObject): readonly string[] {
  const used = names.filter((name) => has(body, name.split('.')))
  return used.length > 0 ? used : names.slice(0, 1)
}

function has(value: Json | undefined, path: readonly string[]): boolean {
  const [step, ...rest] = path
  if (step === undefined) return value !== undefined
  if (Array.isArray(value)) return value.some((item) => hasItem(item, path))
  return isObject(value) && has(value[step], rest)
}

/** Items of a list are meant by their type or by their members, and parts of messages like the messages that they are in. */
function hasItem(item: Json, path: readonly string[]): boolean {
  const [step = '', ...rest] = path
  if (!isObject(item)) return item === path.join('.')
  const isMeant = item.type === step || (step === 'web_search' && isWebSearch(item.type))
  // The member that bears the name of the type holds what a part is about.
  if (isMeant && (has(item, rest) || (rest.length > 0 && has(item[step], rest)))) return true
  if (has(item, path)) return true
  return [item.content, item.output].some((inner) => Array.isArray(inner) && has(inner, path))
}

/** The members of a body that hold these fields. */
export function topLevelNames(fields: WireFields): ReadonlySet<string> {
  return new Set(Object.values(fields).flatMap((names) => names.map((name) => name.split('.')[0] ?? name)))
}

/** The members of a body that do not belong to a neutral field. */
export function unknownFields(body: JsonObject, known: ReadonlySet<string>): JsonObject {
  const unknown = Object.keys(body).filter((name) => !known.has(name) && (body[name] ?? null) !== null)
  return Object.fromEntries(unknown.map((name) => [name, body[name]]))
}
