/** A JSON value. */
export type Json = string | number | boolean | null | Json[] | JsonObject
/** A JSON object whose members may also be missing. */
export type JsonObject = { [name: string]: Json | undefined }

/** Whether a value is a JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** The value of a JSON text; undefined when the text is not JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
