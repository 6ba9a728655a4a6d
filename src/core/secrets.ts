/** How the secret of a key of this router begins: so that it is recognized wherever it turns up. */
export const secretPrefix = 'ir-'

/** What stands before it is no letter of a word, unless that is the end of an escape in JSON: rows and lines of the log are JSON. */
const beginning = String.raw`(?:(?<![A-Za-z])|(?<=\\(?:[bfnrt]|u[\da-f]{4})))`
/** 256 bits as base64url have 43 characters; the end may be cut off. */
const looksSecret = new RegExp(`${beginning}${secretPrefix}[\\w-]{24,}`, 'g')
/** A shorter one, which only an operator can have chosen, would be found in ordinary words. */
const shortest = 8

/**
 * A text in which no secret of a client is left, neither one that looks like a key of this router nor the one that came
 * with the request: what people send in the wrong place must not come to logs, nor back in a message that they share.
 */
export function withoutSecrets(text: string, presented = ''): string {
  const left = text.includes(secretPrefix) ? text.replace(looksSecret, hidden) : text
  return presented.length < shortest ? left : left.replaceAll(presented, hidden)
}

const hidden = '[secret]'
