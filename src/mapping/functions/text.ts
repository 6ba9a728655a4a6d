import { createHash } from 'node:crypto'

/** The first `length` hexadecimal digits of the SHA-256 of a text. */
export function digest(text?: string, length = 64): string | undefined {
  return text === undefined ? undefined : createHash('sha256').update(text).digest('hex').slice(0, length)
}

/** The text that base64 data encodes as UTF-8. */
export function base64Text(data?: string): string | undefined {
  return data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8')
}

/** An offset in UTF-8 bytes of a text as an offset in Unicode code points. */
export function codePointOffset(text?: string, byteOffset?: number): number | undefined {
  if (text === undefined || byteOffset === undefined) return undefined
  return [...Buffer.from(text, 'utf8').subarray(0, byteOffset).toString('utf8')].length
}

/** The value of a JSON text; missing when the text is not JSON. */
export function parseJson(text?: string): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The JSON text of a value, digits untouched. */
export function toJson(value?: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value)
}

/** The arguments of a tool call as the object that a provider expects: nothing is `{}`, anything else is wrapped. */
export function jsonArguments(value?: unknown): object {
  const text = typeof value === 'string' ? value.trim() : undefined
  const parsed = text === undefined ? value : parseJson(text)
  if (text === '' || parsed === null || (text ?? parsed) === undefined) return {}
  return typeof parsed === 'object' && !Array.isArray(parsed) ? parsed : { input: value }
}

/** A copy of a value without members that are null, at any depth. */
export function withoutNulls(value?: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (value === null || typeof value !== 'object') return value
  const kept = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutNulls(member)]))
}

/** The instruction that asks for JSON where a provider has no field for it. */
export function jsonInstruction(schema?: unknown): string {
  const instruction = 'Answer with one JSON value and nothing else: no explanation, no code fences.'
  if (schema === undefined) return instruction
  return `${instruction}\nIt must be valid against this JSON schema:\n${JSON.stringify(schema)}`
}

/** The instruction that asks for a tool call, of one tool or of any, where a provider cannot demand it. */
export function callInstruction(name?: string): string {
  return `Answer with a call of ${name === undefined ? 'one of the tools' : `the tool ${name}`}.`
}
