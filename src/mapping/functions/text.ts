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
