import { isObject, type Json, type JsonObject } from '../core/json.ts'

/** The names of each neutral field in a client API, as paths; the first one is reported when the client used none. */
export type WireFields = { readonly [field: string]: readonly string[] }

/**
 * The client's names of a neutral field, given those of top-level fields and of fields below them. An extension's name is
 * its path in the client's body, and a kind of tool keeps its name (`tools.mcp`).
 */
export function wireNamesOf(field: string, fields: WireFields, nested: { readonly [field: string]: string }) {
  if (field.startsWith(extensionPrefix)) return [field.slice(extensionPrefix.length)]
  if (Object.hasOwn(fields, field)) return fields[field] ?? []
  return [(Object.hasOwn(nested, field) ? nested[field] : undefined) ?? field]
}

const extensionPrefix = 'extensions.'

/** The names of these that a body uses; the first one where it uses none. */
export function usedNames(names: readonly string[], body: JsonObject): readonly string[] {
  const used = names.filter((name) => has(body, name.split('.')))
  return used.length > 0 ? used : names.slice(0, 1)
}

function has(value: Json | undefined, path: readonly string[]): boolean {
  const [step, ...rest] = path
  if (step === undefined) return value !== undefined
  if (Array.isArray(value)) return value.some((item) => has(item, isObject(item) && item.type === step ? rest : path))
  return isObject(value) && has(value[step], rest)
}

/** The members of a body that hold these fields. */
export function topLevelNames(fields: WireFields): ReadonlySet<string> {
  return new Set(Object.values(fields).flatMap((names) => names.map((name) => name.split('.')[0] ?? name)))
}

/** The members of a body that do not belong to a neutral field. */
export function unknownFields(body: JsonObject, known: ReadonlySet<string>): JsonObject {
  const unknown = Object.entries(body).filter(([name, value]) => {
    return !known.has(name) && value !== undefined && value !== null
  })
  return Object.fromEntries(unknown)
}
