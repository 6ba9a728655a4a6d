import { isObject, type Json, type JsonObject, parseJson } from '../core/json.ts'
import { defined, onlyNumber, onlyString } from './check.ts'

/**
 * Signed or encrypted content of another provider, carried in the fields where a client API keeps its own signatures. It
 * belongs to a tool call (`call`), to a text (`text`, by its position) or to reasoning; `body` is a block that only its
 * provider understands, or the results of the search `search`. Its text is a prefix of ours before base64url JSON.
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
  return isObject(read) ? checked(read) : undefined
}

/** Clients can change a signature: members of the wrong type are ignored, and references to what a provider holds. */
function checked(members: JsonObject): ForeignSignature {
  const { by, signature, encrypted, summary, id, call, text, search, body } = members
  return defined({
    by: onlyString(by),
    signature: onlyString(signature),
    encrypted: onlyString(encrypted),
    summary: onlyString(summary),
    id: onlyString(id),
    call: onlyString(call),
    text: onlyNumber(text),
    search: onlyString(search),
    body: isReference(body) ? undefined : body,
  })
}

/** Returns the neutral name of what is dropped with a foreign signature. The signature of a call, text or search has no name of its own. */
export function droppedWith(text: Json | undefined): string[] {
  const { body, search, call, text: position } = readForeignSignature(text) ?? {}
  if ((call ?? position ?? search) !== undefined) return []
  return body === undefined ? ['parts.reasoning'] : ['parts.opaque']
}

/** Checks whether a text is a foreign signature: no provider may receive it as its own. */
export function isForeignSignature(text: Json | undefined): text is string {
  return typeof text === 'string' && text.startsWith(prefix)
}

/** Checks whether an item stands for one that a provider of the Responses format holds. */
export function isReference(item: Json | undefined): item is JsonObject {
  if (!isObject(item)) return false
  return item.type === 'item_reference' || (typeof item.id === 'string' && Object.keys(item).length === 1)
}
