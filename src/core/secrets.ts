/** The prefix of the secrets of this router's keys: so that they are recognized wherever they turn up. */
export const secretPrefix = 'ir-'

/** Start of a secret: not preceded by a letter, unless that ends a JSON escape: ledger rows and log lines are JSON. */
const beginning = String.raw`(?:(?<![A-Za-z])|(?<=\\(?:[bfnrt]|u[\da-f]{4})))`
/** 256 bits in base64url are 43 characters; the end may be cut off. */
const looksSecret = new RegExp(`${beginning}${secretPrefix}[\\w-]{24,}`, 'g')
/** Minimum length of a secret: shorter ones, which only an operator can have chosen, would match ordinary text. */
const minLength = 8

/**
 * A text without secrets of clients: without anything that looks like a key of this router, and without the secret that
 * came with the request. A secret sent in the wrong place must not end up in logs, nor in an error message.
 */
export function withoutSecrets(text: string, presented = ''): string {
  const left = text.includes(secretPrefix) ? text.replace(looksSecret, hidden) : text
  return presented.length < minLength ? left : left.replaceAll(presented, hidden)
}

/**
 * Returns a text for logs without words that look like anybody's key: such as one pasted into a file, at any place; and without the
 * passwords of addresses. Names of models, fields and files have no such runs of letters and digits.
 */
export function withoutKeys(text: string): string {
  return text
    .replace(/(\/\/[^\s/:@"'`]*:)[^\s/@"'`]+@/g, `$1${hidden}@`)
    .replace(/[\w-]{16,}/g, (word) => (looksRandom.test(word) ? hidden : word))
}

/** Checks whether the value of a header is secret to nobody, by its name. */
export function isPlainHeader(name: string): boolean {
  return /^(?:accept|content-type|user-agent|(?:http-)?referer|x-title|[\w-]+-(?:version|beta|token-type))$/i.test(name)
}

const looksRandom = /(?=[A-Za-z\d]{16})[A-Za-z]*\d[A-Za-z\d]*[A-Za-z]|(?=[A-Za-z\d]{16})\d+[A-Za-z]/
const hidden = '[secret]'
