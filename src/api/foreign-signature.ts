import { isObject, type Json, parseJson } from '../core/json.ts'

/**
 * Signed or encrypted content of another maker, carried in the fields where a client API keeps its own signatures. It
 * belongs to a tool call (`call`), to a text (`text`, by its position) or to reasoning; `body` is a block that only its
 * maker understands, or the results of the search `search`. Its text is a prefix of ours before base64url JSON.
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

/** The text of a foreign signature; undefined when it has no members. */
export function writeForeignSignature(signature: ForeignSignature): string | undefined {
  const members = Object.entries(signature).filter(([, value]) => value !== undefined)
  if (members.length === 0) return undefined
  return prefix + Buffer.from(JSON.stringify(Object.fromEntries(members))).toString('base64url')
}

/** Reads a foreign signature; undefined for any other text. */
export function readForeignSignature(text: Json | undefined): ForeignSignature | undefined {
  if (!isForeignSignature(text)) return undefined
  const read = parseJson(Buffer.from(text.slice(prefix.length), 'base64url').toString('utf8'))
  return isObject(read) ? (read as ForeignSignature) : undefined
}

/** Whether a text is a foreign signature: no provider may receive it as its own. */
export function isForeignSignature(text: Json | undefined): text is string {
  return typeof text === 'string' && text.startsWith(prefix)
}
