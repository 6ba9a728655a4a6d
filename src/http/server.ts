import { randomUUIDv7 } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express'
import { secretOf } from '../access/client-secret.ts'
import { defined } from '../api/check.ts'
import type { ClientApi } from '../api/client-api.ts'
import { asRouterError, errorBody, RouterError } from '../core/errors.ts'
import { withoutSecrets } from '../core/secrets.ts'
import type { Call, CallResponse } from '../line/call.ts'
import { handle, type Services } from '../line/gateway.ts'
import { originOf } from '../line/tags.ts'
import type { Log } from '../observe/log.ts'
import { unavailable } from '../store/store-error.ts'
import { refuseDoubledHeaders } from './ambiguous-headers.ts'
import { abortSignalOf } from './client-disconnect.ts'
import { answerOptions, type Origins, shareWithOrigins } from './cors.ts'
import { type BodyLimits, readJson } from './request-body.ts'
import { comment, deliver, setHeaders } from './response-body.ts'

/** The process as the HTTP server sees it; functions are called for every request. */
export type ServerContext = {
  /** The services of the current snapshot. */
  services(): Services
  bodyLimits(): BodyLimits
  /** The origins whose web pages may use the service. */
  corsOrigins: Origins
  log: Log
  /** Hears of everything that is thrown while a request is handled. */
  onThrown?(thrown: unknown): void
  /** Whether new calls are refused. */
  stopping(): boolean
  /** Aborted when running calls must end now. */
  deadline: AbortSignal
  /** The calls under way. */
  running: Set<Promise<void>>
  /** How long a client may stall while it sends or reads. Milliseconds. */
  patienceMs: number
  /** How long a stream that has begun may be silent before a keep-alive is sent. Milliseconds. */
  keepAliveMs: number
}

/** A request to a JSON route. `params` come from its path. */
export type JsonRequest = {
  headers: IncomingHttpHeaders
  params: { readonly [name: string]: string | readonly string[] | undefined }
  query: { readonly [name: string]: string | string[] | undefined }
  /** The body as JSON, undefined when there is none. Throws RouterError 400, 413, 415. */
  readBody(): Promise<unknown>
}

/** A route that answers with JSON text. The default method is `get`. */
export type JsonRoute = {
  path: string
  method?: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** The client API whose error format this request gets; by default that of the path. */
  clientApiOf?: (request: Pick<JsonRequest, 'headers'>) => ClientApi | undefined
  answer(request: JsonRequest): JsonAnswer | Promise<JsonAnswer>
}

/** The default status is 200; without a text there is no body, as for 204. */
export type JsonAnswer = { status?: number; text?: string }

/** The path of a client API. */
export type CallRoute = {
  path: string
  clientApi: ClientApi
  /** Handles the calls of this path; the default is `handle`. */
  handler?: (call: Call, services: Services) => Promise<CallResponse>
}

/** The Express app: the call routes, the JSON routes, and errors in the format of the client's API. */
export function createApp(
  context: ServerContext,
  calls: readonly CallRoute[],
  routes: readonly JsonRoute[],
): express.Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  // Case-sensitive, so that a proxy rule for a path cannot be bypassed by its letter case.
  app.enable('case sensitive routing')
  // One layer for everything: each that Express has to pass costs as much as what it does.
  app.use((request, response, next) => {
    assignRequestId(request, response)
    shareWithOrigins(request, response, context.corsOrigins())
    refuseDoubledHeaders(request)
    next()
  })
  for (const { path, clientApi, handler = handle } of calls) {
    app.use(path, (_request, response, next) => {
      speakAs(clientApi, response)
      next()
    })
    app.post(path, async (request, response) => {
      if (context.stopping()) {
        response.setHeader('connection', 'close')
        throw new RouterError('stopping', 'The router is stopping. Send the call to another instance.')
      }
      await tracked(context, serveCall(request, response, { clientApi, handler }, context))
    })
    endPath(app, path, ['POST'], context)
  }
  for (const [path, methods] of Map.groupBy(routes, ({ path }) => path)) {
    for (const route of methods) app[route.method ?? 'get'](path, answerJson(route, context))
    // Express answers HEAD as it answers GET.
    const names = methods.map(({ method = 'get' }) => (method === 'get' ? 'GET, HEAD' : method.toUpperCase()))
    endPath(app, path, names, context)
  }
  app.use((request) => {
    throw new RouterError('not_found', `There is no ${request.method} ${request.path} here.`)
  })
  app.use(failWith(context))
  return app
}

/** What a path answers to all other methods. */
function endPath(app: express.Express, path: string, names: readonly string[], { corsOrigins }: ServerContext): void {
  const methods = names.join(', ')
  app.options(path, answerOptions(methods, corsOrigins))
  app.all(path, refuseMethod(methods))
}

/** Every response has an `x-request-id`: the client's own if it is valid and safe to log, else a new one. */
function assignRequestId(request: Request, response: Response): void {
  const given = request.get('x-request-id')
  response.locals.id = randomUUIDv7()
  if (given && isUsableId(given, request)) response.locals.requestId = given
  response.setHeader('x-request-id', requestIdOf(response))
}

/** The id that the client knows its request by. */
function requestIdOf({ locals }: Response): string {
  return locals.requestId ?? locals.id
}

/** What this client API expects of every response, errors included. */
function speakAs(clientApi: ClientApi, response: Response): void {
  response.locals.clientApi = clientApi
  if (clientApi.requestIdHeader !== undefined) response.setHeader(clientApi.requestIdHeader, requestIdOf(response))
}

/** The id is sent back and logged, so it must not be, or contain, the client's key. */
function isUsableId(id: string, { headers }: Request): boolean {
  return /^[\w.:/+=-]{1,128}$/.test(id) && withoutSecrets(id, secretOf(headers)) === id
}

/** Counts as a running call: a stop waits for it. */
async function tracked(context: ServerContext, running: Promise<void>): Promise<void> {
  context.running.add(running)
  try {
    await running
  } finally {
    context.running.delete(running)
  }
}

function answerJson({ clientApiOf, answer }: JsonRoute, context: ServerContext): RequestHandler {
  return (request, response) => {
    const clientApi = clientApiOf?.(request)
    if (clientApi) speakAs(clientApi, response)
    const send = ({ status = 200, text }: JsonAnswer) => {
      response.status(status)
      if (text === undefined) response.end()
      else response.type('json').end(text)
    }
    const { headers, params, query } = request
    const readBody = () => {
      const { patienceMs: idleMs } = context
      const limits = { size: context.bodyLimits(), signal: abortSignalOf(response, context.deadline), idleMs }
      return readJson(request, response, limits)
    }
    const answered = answer({ headers, params, query: query as JsonRequest['query'], readBody })
    return answered instanceof Promise ? tracked(context, answered.then(send)) : send(answered)
  }
}

async function serveCall(
  request: Request,
  response: Response,
  { clientApi, handler }: Required<Omit<CallRoute, 'path'>>,
  context: ServerContext,
): Promise<void> {
  const signal = abortSignalOf(response, context.deadline)
  const idleMs = context.patienceMs
  const secret = secretOf(request.headers)
  const call: Call = {
    id: response.locals.id,
    requestId: response.locals.requestId,
    clientApi,
    secret,
    readBody: () => readJson(request, response, { size: context.bodyLimits(), signal, idleMs }),
    strict: request.get('x-router-strict') === 'true',
    forwardedHeaders: forwardedHeaders(clientApi, request),
    tags: defined({ origin: originOf(request.headers, secret), header: request.get('x-router-tags') }),
    signal,
  }
  const callResponse = await handler(call, context.services())
  const keepAlive = { ms: context.keepAliveMs, text: clientApi.keepAlive ?? comment }
  await deliver(response, callResponse, { signal, idleMs, keepAlive })
}

/** The client's headers that its API forwards to providers of the same format. */
function forwardedHeaders(
  { forwardedHeaders: names = {} }: ClientApi,
  request: Request,
): NonNullable<Call['forwardedHeaders']> {
  return Object.entries(names).flatMap(([name, how]) => {
    const value = request.get(name)?.trim()
    return value ? [{ name, value, how }] : []
  })
}

function refuseMethod(allowed: string): RequestHandler {
  return (request, response) => {
    response.setHeader('allow', allowed)
    throw new RouterError('method_not_allowed', `${request.path} supports ${allowed}, not ${request.method}.`)
  }
}

function undecodable(cause: URIError): RouterError {
  const message = 'The path cannot be decoded: write % only before two hexadecimal digits, and UTF-8.'
  return new RouterError('invalid_request', message, { cause })
}

/** Writes every error response; a response that has begun can only be closed. */
function failWith({ log, onThrown }: ServerContext): ErrorRequestHandler {
  return (thrown, request, response, _next) => {
    onThrown?.(thrown)
    const databaseFault = unavailable(thrown)
    const error = databaseFault ?? (thrown instanceof URIError ? undecodable(thrown) : asRouterError(thrown))
    const presented = secretOf(request.headers)
    error.message = withoutSecrets(error.message, presented)
    if (error.param !== undefined) error.param = withoutSecrets(error.param, presented)
    const facts = { err: thrown, request_id: requestIdOf(response) }
    if (databaseFault) log.warn(facts, 'the database could not be used')
    else if (error.code === 'internal') log.error(facts, 'a call failed unexpectedly')
    if (response.headersSent) {
      response.destroy()
      return
    }
    if (error.retryAfterMs !== undefined)
      response.setHeader('retry-after', String(Math.ceil(error.retryAfterMs / 1_000)))
    else if (error.status === 429) response.setHeader('retry-after', '1')
    setHeaders(response, error.headers)
    const clientApi: ClientApi | undefined = response.locals.clientApi
    response
      .status(clientApi?.errorStatus?.(error) ?? error.status)
      .json(clientApi ? clientApi.writeError(error, requestIdOf(response)) : errorBody(error))
  }
}
