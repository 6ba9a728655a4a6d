/** The characters that this API allows in ids. */
const legal = /^[a-zA-Z0-9_-]+$/
/** The prefix of an id with other characters, written in base64url. */
const prefix = 'toolu_router1_'

/** The id of a call in this API; an id with other characters is encoded so that it can be decoded again. */
export function writeCallId(id: string): string {
  return legal.test(id) && !id.startsWith(prefix) ? id : prefix + Buffer.from(id).toString('base64url')
}

/** The provider's own id of a call. */
export function readCallId(id: string): string {
  return id.startsWith(prefix) ? Buffer.from(id.slice(prefix.length), 'base64url').toString('utf8') : id
}
