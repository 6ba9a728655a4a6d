/** Ids of this API have these characters only. */
const legal = /^[a-zA-Z0-9_-]+$/
/** Before an id of another alphabet, in base64url. */
const prefix = 'toolu_router1_'

/** The id of a call as this API can carry it; an id of another alphabet is written so that it can be read again. */
export function writeCallId(id: string): string {
  return legal.test(id) && !id.startsWith(prefix) ? id : prefix + Buffer.from(id).toString('base64url')
}

/** The maker's own id of a call. */
export function readCallId(id: string): string {
  return id.startsWith(prefix) ? Buffer.from(id.slice(prefix.length), 'base64url').toString('utf8') : id
}
