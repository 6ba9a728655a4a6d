import { hash, randomBytes } from 'node:crypto'
import { secretPrefix } from '../core/secrets.ts'

/** Makes a new secret: 256 random bits behind the prefix of this router's keys. */
export function newSecret(): string {
  return `${secretPrefix}${randomBytes(32).toString('base64url')}`
}

/** Returns the stored form of a secret: its SHA-256 for lookups, and its first characters, by which an operator recognizes it. */
export function storedSecret(secret: string): { hash: Buffer; prefix: string } {
  // At most a quarter, so that the prefix does not give away a short secret that an operator chose.
  return { hash: hashOf(secret), prefix: secret.slice(0, Math.min(8, Math.floor(secret.length / 4))) }
}

/** Returns the SHA-256 of a secret: secrets are random, so that no slow hash is needed, and this runs for each call. */
function hashOf(secret: string): Buffer {
  return Buffer.from(hash('sha256', secret, 'hex'), 'hex')
}

/** Throws an Error when a secret that the operator chose for the first key cannot be sent in a header, or can be guessed. */
export function requireUsableSecret(chosen: string | undefined): void {
  if (!chosen) return
  if (!/^[\x21-\x7e]+$/.test(chosen)) throw new Error(`${adminKeyVariable} ${unsendable}`)
  if (chosen.length < minSecretLength)
    throw new Error(`${adminKeyVariable} has ${chosen.length} characters; ${tooShort}`)
}

/** The environment variable that may contain the secret of the first key. */
export const adminKeyVariable = 'INFERENCE_ROUTER_ADMIN_KEY'

const minSecretLength = 20
const tooShort = `use ${minSecretLength} or more, chosen at random, or unset it: the first start then creates a key and prints it once`
const unsendable = 'has characters that cannot be sent in a header: use letters, digits and punctuation without spaces'

/** Headers as Node parses them, by lower-case name. */
type Headers = { readonly [name: string]: string | string[] | undefined }

/**
 * Reads the secret of `Authorization: Bearer <key>` or `x-api-key: <key>`; undefined when the client sent none. Another
 * Authorization header yields a string that is not a key, so that it is rejected instead of ignored.
 */
export function secretOf(headers: Headers): string | undefined {
  const authorization = textOf(headers.authorization)
  const [, token] = /^bearer(?:\s+(.*))?$/is.exec(authorization) ?? []
  const secret = token?.trim() || textOf(headers['x-api-key'])
  if (secret) return secret
  const onlyScheme = /^bearer$/i.test(authorization)
  return authorization === '' || onlyScheme ? undefined : notAKey
}

/** Placeholder that is never a valid key, as keys contain no spaces. */
const notAKey = 'not a bearer token'

function textOf(value: string | string[] | undefined): string {
  const first = Array.isArray(value) ? value[0] : value
  return first?.trim() ?? ''
}
