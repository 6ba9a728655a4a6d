import { createHash } from 'node:crypto'

/** What a mapping may call beyond JSONata's own library: pure, synchronous, plain JSON in and out. */
export const functions: Readonly<Record<string, { signature: string; run: (...args: never[]) => unknown }>> = {
  /** JSON text to a value; missing when the text is not JSON. JSONata's own `$eval` would run it as code. */
  parseJson: { signature: '<s-:x>', run: parseJson },
  /** A value to JSON text, digits untouched (JSONata's `$string` rounds to 15 digits). */
  toJson: { signature: '<x-:s>', run: toJson },
  /** The first `length` hexadecimal digits of the SHA-256 of a text: the same text gives the same digits. */
  digest: { signature: '<s-n?:s>', run: digest },
  /** The media type of a data URL; missing for any other text. */
  dataUrlType: { signature: '<s-:s>', run: (url?: string) => dataUrl(url)?.type },
  /** The base64 text of a data URL; missing for any other text. */
  dataUrlBody: { signature: '<s-:s>', run: (url?: string) => dataUrl(url)?.body },
  /** An offset in UTF-8 bytes of a text as an offset in Unicode code points. */
  codePointOffset: { signature: '<s-n:n>', run: codePointOffset },
  /** A copy of a value without members that are null, at any depth. */
  withoutNulls: { signature: '<x-:x>', run: withoutNulls },
}

function parseJson(text?: string): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function toJson(value?: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value)
}

function digest(text?: string, length = 64): string | undefined {
  return text === undefined ? undefined : createHash('sha256').update(text).digest('hex').slice(0, length)
}

function dataUrl(url?: string): { type: string; body: string } | undefined {
  const match = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i.exec(url ?? '')
  return match && url !== undefined ? { type: match[1] || 'text/plain', body: url.slice(match[0].length) } : undefined
}

function codePointOffset(text?: string, byteOffset?: number): number | undefined {
  if (text === undefined || byteOffset === undefined) return undefined
  return [...Buffer.from(text, 'utf8').subarray(0, byteOffset).toString('utf8')].length
}

function withoutNulls(value?: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (value === null || typeof value !== 'object') return value
  const kept = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutNulls(member)]))
}
