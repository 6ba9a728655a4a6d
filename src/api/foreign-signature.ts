import { isObject, type Json, parseJson } from '../core/json.ts'

/**
 * What another maker sealed, in the places where an API keeps seals of its own: a text with a prefix of ours before
 * base64url JSON. `signature` and `encrypted` are the seals, `call` the tool call or `text` the text they belong to,
 * `body` a block only its maker understands, or the results of `search`.
 */
export type ForeignSignature = {
  by?: string
  signature?: string
  encrypted?: string
  summary?: string
  id?: string
  call?: string
  text?: number
  search?: string
  body?: Json
}

const prefix = 'router1.'

/** Writes a seal; undefined when there is nothing to keep. */
export function writeForeignSignature(sealed: ForeignSignature): string | undefined {
  const members = Object.entries(sealed).filter(([, value]) => value !== undefined)
  if (members.length === 0) return undefined
  return prefix + Buffer.from(JSON.stringify(Object.fromEntries(members))).toString('base64url')
}

/** Reads a seal of our writing; undefined for any other text. */
export function readForeignSignature(text: Json | undefined): ForeignSignature | undefined {
  if (!isForeignSignature(text)) return undefined
  const read = parseJson(Buffer.from(text.slice(prefix.length), 'base64url').toString('utf8'))
  return isObject(read) ? (read as ForeignSignature) : undefined
}

/** Whether a signature or sealed text is of our writing, so that no provider may see it. */
export function isForeignSignature(text: Json | undefined): text is string {
  return typeof text === 'string' && text.startsWith(prefix)
}
