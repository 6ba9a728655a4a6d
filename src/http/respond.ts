import { hash } from 'node:crypto'
import type { Response } from './app.ts'
import type { JsonAnswer } from './types.ts'

/** Headers by lower-case name. */
type Headers = { [name: string]: string }

/**
 * Returns the headers that a response will have, whatever it says. They are kept until it is written, since Node writes one object
 * of headers several times as fast as single ones.
 */
export function headersOf({ locals }: Response): Headers {
  locals.headers ??= {}
  return locals.headers
}

/** Sends a whole response at once, as JSON unless it says otherwise; without a text it has no body. */
export function respond(response: Response, status: number, text?: string | Buffer, mediaType = json): void {
  const headers = headersOf(response)
  if (text !== undefined) {
    headers['content-type'] = mediaType
    headers['content-length'] = String(Buffer.byteLength(text))
  }
  response.writeHead(status, headers).end(text)
}

const json = 'application/json; charset=utf-8'

/** Adds headers of any value: model names, which clients choose, may have any characters and any length. */
export function addHeaders(response: Response, headers: Readonly<Headers>): void {
  const all = headersOf(response)
  for (const name in headers) all[name] = headerText(headers[name] ?? '')
}

/** Maximum length of a header: more than any needs; Node limits all headers together to 16 KiB. Characters. */
const maxHeaderLength = 2_000
const isSendable = /^[\x20-\x7e]*$/

function headerText(text: string): string {
  const sendable = isSendable.test(text) ? text : text.toWellFormed().replace(/[^\x20-\x7e]/gu, encodeURIComponent)
  return sendable.length > maxHeaderLength ? `${sendable.slice(0, maxHeaderLength)}...` : sendable
}

/** Returns an answer that is not sent again to a client that has it already. */
export function tagged(text: string): Required<Pick<JsonAnswer, 'text' | 'etag'>> {
  return { text, etag: `"${hash('sha256', text, 'base64url')}"` }
}

/** Checks whether `If-None-Match` names the tag of an answer (RFC 9110, section 13.1.2). */
export function isKnown(etag: string, known = ''): boolean {
  return known.trim() === '*' || known.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}
