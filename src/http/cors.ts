import type { IncomingMessage } from 'node:http'
import type { Handler, Response } from './app.ts'
import { headersOf, respond } from './respond.ts'

/** The origins whose web pages may use the service, or `*` for all; called for every request. */
export type Origins = () => readonly string[]

/** Lets the pages of listed origins read every response, errors as well. */
export function shareWithOrigins(request: IncomingMessage, response: Response, listed: readonly string[]): void {
  if (listed.length === 0) return
  const headers = headersOf(response)
  headers.vary = 'Origin'
  if (!isListed(request, listed)) return
  headers['access-control-allow-origin'] = String(request.headers.origin)
  headers['access-control-expose-headers'] = readableHeaders
}

/** Answers OPTIONS for a path with these methods. While no origin is listed, and to the pages of others, it is not a method at all. */
export function answerOptions(methods: string, origins: Origins): Handler {
  return (request, response, next) => {
    const listed = origins()
    const isPage = request.headers.origin !== undefined
    if (listed.length === 0 || (isPage && !isListed(request, listed))) return next()
    headersOf(response).allow = methods
    if (isPage) allowRequest(request, response, methods)
    respond(response, 204)
  }
}

/** Allows a request. Keys are sent in headers, never in cookies, so that any header may be sent. */
function allowRequest(request: IncomingMessage, response: Response, methods: string): void {
  const headers = headersOf(response)
  headers.vary = 'Origin, Access-Control-Request-Headers'
  headers['access-control-allow-methods'] = methods
  const wanted = request.headers['access-control-request-headers']
  if (wanted !== undefined) headers['access-control-allow-headers'] = wanted
  headers['access-control-max-age'] = rememberedSeconds
}

function isListed({ headers: { origin } }: IncomingMessage, listed: readonly string[]): boolean {
  return origin !== undefined && (listed.includes(origin) || listed.includes('*'))
}

/** The longest that browsers agree on. */
const rememberedSeconds = '7200'

/** The headers of responses that a page may read beside those that it always may. */
const readableHeaders = [
  'x-request-id',
  'request-id',
  'retry-after',
  'x-router-model',
  'x-router-attempts',
  'x-router-dropped',
  'x-router-retired',
  'x-router-cost',
  'x-router-cache',
  'x-router-audio-format',
  ...['requests', 'tokens'].flatMap((what) =>
    ['limit', 'remaining', 'reset'].map((fact) => `x-ratelimit-${fact}-${what}`),
  ),
].join(', ')
