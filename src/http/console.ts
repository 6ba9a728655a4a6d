import { RouterError } from '../core/errors.ts'
import type { Handler, Request, Response } from './app.ts'
import { type ConsoleFile, type Encoding, openConsoleFiles } from './console-files.ts'
import { isKnown } from './entity-tag.ts'
import { headersOf, respond } from './respond.ts'

/** Whether there is a console. */
export type ConsoleSettings = { enabled: boolean }

/**
 * `/console/`, the pages that show and change what the management API does, and `/`, which sends browsers there and tells programs where
 * things are. Everything else is left to the next handler.
 */
export function consolePages(settings: () => ConsoleSettings): Handler {
  const files = openConsoleFiles()
  return async (request, response, next) => {
    const { path } = request
    if (path !== '/' && path !== '/console' && !path.startsWith('/console/')) return next()
    requireReading(request, response)
    const { enabled } = settings()
    if (path === '/') return sendHome(request, response, enabled)
    if (!enabled)
      throw new RouterError('not_found', 'The console is switched off: console.enabled is false in config.yaml.')
    if (path === '/console') return redirect(response, 'console/')
    if (path === '/console/') {
      const page = await files.page()
      Object.assign(headersOf(response), pageHeaders(page.scriptHash))
      return send(request, response, page)
    }
    const file = await files.file(path.slice('/console/'.length))
    if (!file) throw new RouterError('not_found', `There is no ${path} here.`)
    send(request, response, file)
  }
}

/** Where calls are served and the management API is elsewhere: `/` tells programs where things are. */
export function homePage(): Handler {
  return (request, response, next) => {
    if (request.path !== '/') return next()
    requireReading(request, response)
    sendHome(request, response, false)
  }
}

function requireReading({ method, path }: Request, response: Response): void {
  if (method === 'GET' || method === 'HEAD') return
  headersOf(response).allow = 'GET, HEAD'
  throw new RouterError('method_not_allowed', `${path} supports GET, HEAD, not ${method}.`)
}

function sendHome({ headers }: Request, response: Response, hasConsole: boolean): void {
  // The same address answers both.
  headersOf(response).vary = 'accept'
  if (hasConsole && headers.accept?.includes('text/html')) {
    redirect(response, 'console/')
    return
  }
  const places = {
    service: 'inference-router',
    base_url: '/v1',
    models: '/v1/models',
    openapi: '/openapi.json',
    health: '/health',
    ready: '/ready',
    ...(hasConsole && { console: '/console/' }),
  }
  respond(response, 200, JSON.stringify(places))
}

/** To a path beside that of the request, so that it stays behind the prefix of a proxy. */
function redirect(response: Response, location: string): void {
  Object.assign(headersOf(response), { location, 'cache-control': 'no-cache' })
  respond(response, 302, '')
}

function send({ headers }: Request, response: Response, { mediaType, etag, bytes }: ConsoleFile): void {
  const own = headersOf(response)
  Object.assign(own, {
    etag,
    vary: 'accept-encoding',
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
  })
  if (isKnown(etag, headers['if-none-match'])) {
    respond(response, 304)
    return
  }
  const encoding = encodingFor(headers['accept-encoding'])
  if (encoding !== 'identity') own['content-encoding'] = encoding
  respond(response, 200, bytes[encoding], mediaType)
}

/** The shortest form that the client takes; one that weighs them differently gets what it takes all the same. */
function encodingFor(accepted: string | string[] = ''): Encoding {
  const taken = String(accepted)
    .split(',')
    .map((item) => item.trim().toLowerCase())
    .filter((item) => !/;\s*q=0(\.0*)?$/.test(item))
    .map((item) => item.split(';')[0])
  return (['br', 'gzip'] as const).find((encoding) => taken.includes(encoding)) ?? 'identity'
}

/** Nothing of the page comes from elsewhere or goes there, and no other page can show it. */
function pageHeaders(scriptHash: string): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    `script-src 'self' '${scriptHash}'`,
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  }
}
