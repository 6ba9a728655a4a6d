import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { type ParsedUrlQuery, parse } from 'node:querystring'
import type { ClientApi } from '../api/client-api.ts'

const require = createRequire(import.meta.url)
/** Resolver of the packages that Express consists of. */
const ofExpress = createRequire(require.resolve('express'))
// An import would evaluate all exports of the module, a second HTTP client among them: 12 MB and 30 ms.
const http = process.getBuiltinModule('node:http')

/** A request: `path` without its query; `params` come from the path of the route. */
export type Request = IncomingMessage & {
  readonly path: string
  readonly query: ParsedUrlQuery
  params: { [name: string]: string | string[] }
}
/** A response, with the facts that the router keeps while it is made. */
export type Response = ServerResponse & { locals: Locals }
type Locals = {
  id: string
  requestId?: string | undefined
  clientApi?: ClientApi | undefined
  headers?: { [name: string]: string }
}

export type Next = (thrown?: unknown) => void
export type Handler = (request: Request, response: Response, next: Next) => unknown
/** One with four parameters, by which it is known. */
export type ErrorHandler = (thrown: unknown, request: Request, response: Response, next: Next) => unknown

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'options'
/** The router of Express, by itself: the rest of Express is 95 modules, and nothing here uses them. */
export type App = { [method in Method]: (path: string, handler: Handler) => unknown } & {
  use(handler: Handler): unknown
  use(handler: ErrorHandler): unknown
  route(path: string): { all(handler: Handler): unknown }
  handle: Handler
}

type RouterOptions = { caseSensitive: boolean }
const Router: new (options: RouterOptions) => App = ofExpress('router')
const parsedUrl: (request: IncomingMessage) => { pathname: string; query: string | null } = ofExpress('parseurl')

/** Creates an app without routes. */
export function newApp(options: RouterOptions): App {
  return new Router(options)
}

/** Creates a server whose requests and responses are those of an app. */
export function appServer(handle: (request: Request, response: Response) => void): Server {
  const classes: ServerOptions = { IncomingMessage: AppRequest, ServerResponse: AppResponse as typeof ServerResponse }
  return http.createServer(classes, handle as RequestListener)
}

/** Responds when the error handler itself has failed: the client learns nothing about it, standard error everything. */
export function lastResort(request: Request, response: Response): Next {
  const options = { env: 'production', onerror: (thrown: unknown) => console.error(thrown) }
  return (thrown) => ofExpress('finalhandler')(request, response, options)(thrown)
}

class AppRequest extends http.IncomingMessage {
  get path(): string {
    return parsedUrl(this).pathname
  }

  get query(): ParsedUrlQuery {
    return parse(parsedUrl(this).query ?? '')
  }
}

class AppResponse extends http.ServerResponse {
  /** Locals with all members from the start: an object that gets them one by one becomes a dictionary. */
  locals: Locals = { id: '', requestId: undefined, clientApi: undefined, headers: {} }
}

/** Returns all of Express, for the parts that few requests need. */
export function wholeExpress(): typeof import('express') {
  return require('express')
}
