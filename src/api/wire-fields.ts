import type { JsonObject } from '../core/json.ts'

/** Where each field of the neutral request stands in a client API; the first name is reported when none was used. */
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

/** The members of a body that no neutral field stands for. */
export function unknownFields(body: JsonObject, known: ReadonlySet<string>): JsonObject {
  const unknown = Object.entries(body).filter(([name, value]) => {
    return !known.has(name) && value !== undefined && value !== null
  })
  return Object.fromEntries(unknown)
}
