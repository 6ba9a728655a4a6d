import type { IncomingMessage } from 'node:http'
import type { RequestHandler, Response } from 'express'

/** The origins whose web pages may use the service, or `*` for all; called for every request. */
export type Origins = () => readonly string[]

/** Lets the pages of listed origins read every response, errors as well. */
export function shareWithOrigins(request: IncomingMessage, response: Response, listed: readonly string[]): void {
  if (listed.length === 0) return
  response.vary('Origin')
  if (!isListed(request, listed)) return
  response.setHeader('access-control-allow-origin', String(request.headers.origin))
  response.setHeader('access-control-expose-headers', readableHeaders)
}

/** Answers OPTIONS for a path with these methods. While no origin is listed, and to the pages of others, it is no method at all. */
export function answerOptions(methods: string, origins: Origins): RequestHandler {
  return (request, response, next) => {
    const listed = origins()
    const isPage = request.headers.origin !== undefined
    if (listed.length === 0 || (isPage && !isListed(request, listed))) return next()
    response.setHeader('allow', methods)
    if (isPage) allowRequest(request, response, methods)
    response.status(204).end()
  }
}

/** Keys are sent in headers, never in cookies, so that any header may be sent. */
function allowRequest({ headers }: IncomingMessage, response: Response, methods: string): void {
  response.vary('Access-Control-Request-Headers')
  response.setHeader('access-control-allow-methods', methods)
  const wanted = headers['access-control-request-headers']
  if (wanted !== undefined) response.setHeader('access-control-allow-headers', wanted)
  response.setHeader('access-control-max-age', rememberedSeconds)
}

function isListed({ headers: { origin } }: IncomingMessage, listed: readonly string[]): boolean {
  return origin !== undefined && (listed.includes(origin) || listed.includes('*'))
}

/** The longest that browsers agree on. */
const rememberedSeconds = 7_200

/** The headers of responses that a page may read beside those that it always may. */
const readableHeaders = [
  'x-request-id',
  'request-id',
  'retry-after',
  'x-router-model',
  'x-router-attempts',
  'x-router-dropped',
  ...['requests', 'tokens'].flatMap((what) =>
    ['limit', 'remaining', 'reset'].map((fact) => `x-ratelimit-${fact}-${what}`),
  ),
].join(', ')
