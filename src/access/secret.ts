import { hash, randomBytes } from 'node:crypto'
import { secretPrefix } from '../core/secrets.ts'

/** A new secret: 256 random bits that are recognizable as a key of this router. */
export function newSecret(): string {
  return `${secretPrefix}${randomBytes(32).toString('base64url')}`
}

/** What is stored of a secret: its SHA-256 to find it by, and its first characters to recognize it by. */
export function storedSecret(secret: string): { hash: Buffer; prefix: string } {
  // A quarter at most: a short secret that somebody chose must not be given away by its prefix.
  return { hash: hashOf(secret), prefix: secret.slice(0, Math.min(8, Math.floor(secret.length / 4))) }
}

/** SHA-256 of a secret. Nothing slower is needed: secrets are random, and this runs for each call. */
export function hashOf(secret: string): Buffer {
  return Buffer.from(hash('sha256', secret, 'hex'), 'hex')
}
