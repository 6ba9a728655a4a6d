import { isObject, type JsonObject } from './json.ts'
import type { Part } from './parts.ts'

/** Puts the input of a tool that the provider ran itself, as it came in pieces of JSON text, into its part. */
export function completeInput(part: Part, text: string): void {
  const input = parsedObject(text)
  if (!input) return
  if (part.type === 'search' && typeof input.query === 'string') part.query = input.query
  if (part.type === 'opaque' && isObject(part.body)) part.body = { ...part.body, input }
}

function parsedObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
