import { hash } from 'node:crypto'
import type { JsonAnswer } from './types.ts'

/** An answer that is not sent again to a client that has it already. */
export function tagged(text: string): Required<Pick<JsonAnswer, 'text' | 'etag'>> {
  return { text, etag: `"${hash('sha256', text, 'base64url')}"` }
}

/** Whether `If-None-Match` names the tag of an answer (RFC 9110, section 13.1.2). */
export function isKnown(etag: string, known = ''): boolean {
  return known.trim() === '*' || known.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}
