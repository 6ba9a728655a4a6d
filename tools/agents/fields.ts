/** A JSON object whose members are not known beforehand. */
export type Fields = { readonly [name: string]: unknown }

/** The value as an object; an empty one where it is none. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

/** The objects of a list; none where the value is no list. */
export function objectsOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : []
}

/** The value as a text; an empty one where it is none. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** All text in a value: itself, or that of its parts, however deep, without the names of their types. */
export function allText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return ''
  return Object.entries(value)
    .map(([name, inner]) => (name === 'type' ? '' : allText(inner)))
    .filter(Boolean)
    .join('\n')
}
