import type { JsonValue } from './types.ts'

/** Returns JSON with other texts in it, the names of members among them; the same value where none is another. */
export function mapJson(value: JsonValue, change: (text: string) => string): JsonValue {
  if (typeof value === 'string') return change(value)
  if (typeof value === 'number') {
    const text = String(value)
    const changed = change(text)
    return changed === text ? value : changed
  }
  if (Array.isArray(value)) {
    const changed = value.map((one) => mapJson(one, change))
    return changed.some((one, index) => one !== value[index]) ? changed : value
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(
    ([name, one]) => [name, change(name), one, mapJson(one ?? null, change)] as const,
  )
  if (!entries.some(([name, newName, one, newOne]) => name !== newName || one !== newOne)) return value
  return Object.fromEntries(entries.map(([, name, , one]) => [name, one]))
}

/** Changes the texts in a JSON text; a text that is not JSON is changed as a whole. */
export function mapJsonText(text: string, change: (text: string) => string): string {
  let parsed: JsonValue
  try {
    parsed = JSON.parse(text)
  } catch {
    return change(text)
  }
  const changed = mapJson(parsed, change)
  return changed === parsed ? text : JSON.stringify(changed)
}
