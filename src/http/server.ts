import { randomUUIDv7 } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express'
import { secretOf } from '../access/client-secret.ts'
import type { ClientApi } from '../api/client-api.ts'
import { asRouterError, catalogue, errorBody, RouterError } from '../core/errors.ts'
import { withoutSecrets } from '../core/secrets.ts'
import { handle, type Outgoing, type Rooms } from '../line/gateway.ts'
import type { Call } from '../line/provider-call.ts'
import type { Log } from '../observe/log.ts'
import { unavailable } from '../store/store-error.ts'
import type { PassedHeader } from '../upstream/post.ts'
import { refuseDeep, tooLarge, type UploadLimits, watchUpload } from './request-body.ts'
import { comment, deliver, setHeaders } from './response-body.ts'

/** What the HTTP server needs of the process; functions are asked anew for every request. */
export type ServerRooms = {
  /** The rooms of the current snapshot. */
  rooms(): Rooms
  bodyLimitBytes(): number
  log: Log
  /** Whether new calls are refused. */
  stopping(): boolean
  /** Aborted when running calls must end now. */
  deadline: AbortSignal
  /** The calls under way. */
  running: Set<Promise<void>>
  /** How long a client may neither send nor read what it should. Milliseconds. */
  patienceMs: number
  /** How long a stream that has begun may be silent before the client hears that it lives. Milliseconds. */
  keepAliveMs: number
}

/** A request to a route that answers with JSON. `params` come from its path. */
export type JsonRequest = {
  headers: IncomingHttpHeaders
  params: { readonly [name: string]: string | readonly string[] | undefined }
  query: { readonly [name: string]: string | string[] | undefined }
  /** The body as JSON, undefined when there is none. Throws RouterError 400, 413, 415. */
  readBody(): Promise<unknown>
}

/** A route that answers with a JSON text. The method is `get` unless said. */
export type JsonRoute = {
  path: string
  method?: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** Whose shape errors have for this request; without it that of the path. */
  faceOf?: (request: Pick<JsonRequest, 'headers'>) => ClientApi | undefined
  answer(request: JsonRequest): Answered | Promise<Answered>
}

/** The status is 200 unless said; without a text there is no body, as 204 wants it. */
export type Answered = { status?: number; text?: string }

/** A client API and the path where it listens. */
export type CallRoute = {
  path: string
  face: ClientApi
  /** Answers in place of the line; such calls count as running ones all the same. */
  answer?: (call: Call, rooms: Rooms) => Promise<Outgoing>
}

/** The HTTP face of the process: the call routes, the JSON routes, and errors in the caller's own shape. */
export function createApp(
  server: ServerRooms,
  calls: readonly CallRoute[],
  reads: readonly JsonRoute[],
): express.Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  // A proxy that closes a path knows it in these letters only.
  app.enable('case sensitive routing')
  app.use(nameRequest)
  for (const { path, face, answer } of calls) {
    app.use(path, (_request, response, next) => {
      response.locals.face = face
      next()
    })
    app.post(path, async (request, response) => {
      if (server.stopping()) {
        response.setHeader('connection', 'close')
        throw new RouterError('stopping', 'The router is stopping; send the call again elsewhere.')
      }
      await tracked(server, serveCall(request, response, { face, ...(answer && { answer }) }, server))
    })
    app.all(path, refuseMethod('POST'))
  }
  for (const [path, routes] of Map.groupBy(reads, ({ path }) => path)) {
    const refuse = refuseMethod(routes.map(({ method = 'get' }) => method.toUpperCase()).join(', '))
    // Express would answer HEAD as it answers GET.
    app.head(path, refuse)
    for (const route of routes) app[route.method ?? 'get'](path, answerJson(route, server))
    app.all(path, refuse)
  }
  app.use((request) => {
    throw new RouterError('not_found', `There is no ${request.method} ${request.path} here.`)
  })
  app.use(failWith(server.log))
  return app
}

/** Every answer names its request: by the caller's own id when it has one that fits a header, else by the call's. */
const nameRequest: RequestHandler = (request, response, next) => {
  const given = request.get('x-request-id')
  response.locals.id = randomUUIDv7()
  response.setHeader('x-request-id', given && isFit(given, request) ? given : response.locals.id)
  next()
}

/** An id goes into the answer: a key that was sent in its place must not. */
function isFit(id: string, { headers }: Request): boolean {
  return /^[\w.:/+=-]{1,128}$/.test(id) && withoutSecrets(id, secretOf(headers)) === id
}

/** A stop waits for this. */
async function tracked(server: ServerRooms, running: Promise<void>): Promise<void> {
  server.running.add(running)
  try {
    await running
  } finally {
    server.running.delete(running)
  }
}

function answerJson({ faceOf, answer }: JsonRoute, server: ServerRooms): RequestHandler {
  return (request, response) => {
    response.locals.face = faceOf?.(request) ?? response.locals.face
    const send = ({ status = 200, text }: Answered) => {
      response.status(status)
      if (text === undefined) response.end()
      else response.type('json').end(text)
    }
    const { headers, params, query } = request
    const readBody = () => {
      const limits = { limitBytes: server.bodyLimitBytes(), signal: endOf(response, server), idleMs: server.patienceMs }
      return readJson(request, response, limits)
    }
    const answered = answer({ headers, params, query: query as JsonRequest['query'], readBody })
    return answered instanceof Promise ? tracked(server, answered.then(send)) : send(answered)
  }
}

async function serveCall(
  request: Request,
  response: Response,
  { face, answer = handle }: Omit<CallRoute, 'path'>,
  server: ServerRooms,
): Promise<void> {
  const signal = endOf(response, server)
  const idleMs = server.patienceMs
  const call: Call = {
    id: response.locals.id,
    face,
    secret: secretOf(request.headers),
    readBody: () => readJson(request, response, { limitBytes: server.bodyLimitBytes(), signal, idleMs }),
    strict: request.get('x-router-strict') === 'true',
    passed: passedHeaders(face, request),
    tags: request.get('x-router-tags'),
    signal,
  }
  const outgoing = await answer(call, server.rooms())
  const keepAlive = { ms: server.keepAliveMs, text: face.keepAlive ?? comment }
  await deliver(response, outgoing, { signal, idleMs, keepAlive })
}

/** Aborted, with the reason, when nobody waits for this response any longer or the process must end. */
function endOf(response: Response, { deadline }: ServerRooms): AbortSignal {
  const over = new AbortController()
  const leave = () => over.abort(new RouterError('client_gone', 'The client left.'))
  const stop = () => over.abort(new RouterError('stopping', 'The router is stopping.'))
  response.once('close', () => {
    deadline.removeEventListener('abort', stop)
    if (!response.writableFinished) leave()
  })
  deadline.addEventListener('abort', stop, { once: true })
  if (deadline.aborted) stop()
  return over.signal
}

/** What a face passes on to providers of its format, as far as the client sent it. */
function passedHeaders({ passHeaders = {} }: ClientApi, request: Request): PassedHeader[] {
  return Object.entries(passHeaders).flatMap(([name, how]) => {
    const value = request.get(name)?.trim()
    return value ? [{ name, value, how }] : []
  })
}

const parsers = new Map<number, RequestHandler>()

/** The body as JSON, whatever its content type says. Throws RouterError 400, 413 or 415, or why the call is over. */
async function readJson(request: Request, response: Response, limits: UploadLimits): Promise<unknown> {
  const { limitBytes } = limits
  const parse = parsers.get(limitBytes) ?? express.json({ limit: limitBytes, strict: false, type: () => true })
  parsers.set(limitBytes, parse)
  const parsed = new Promise<unknown>((resolve, reject) => {
    parse(request, response, (error?: unknown) =>
      error ? reject(bodyError(error, limitBytes)) : resolve(request.body),
    )
  })
  const watch = watchUpload(request, limits)
  try {
    const body = await Promise.race([parsed, watch.broken])
    refuseDeep(body)
    return body
  } finally {
    watch.stop()
    // What still comes of a body that nobody reads must not hold the connection.
    if (!request.complete) response.setHeader('connection', 'close')
  }
}

function bodyError(error: unknown, limitBytes: number): RouterError {
  const { type = '', message = '', code } = error as { type?: string; message?: string; code?: unknown }
  const facts = { cause: error }
  if (type === 'entity.too.large') return tooLarge(limitBytes, error)
  if (type === 'request.aborted') return new RouterError('client_gone', 'The client left.', facts)
  if (type === 'encoding.unsupported' || type === 'charset.unsupported') {
    return new RouterError('unsupported_media_type', `The body cannot be read: ${message}`, facts)
  }
  // Decompressors name their failures by a code, parsers of JSON do not.
  const what = code === undefined ? 'is not valid JSON' : 'cannot be decompressed'
  return new RouterError('invalid_request', `The body ${what}: ${message}`, facts)
}

function refuseMethod(allowed: string): RequestHandler {
  return (request, response) => {
    response.setHeader('allow', allowed)
    throw new RouterError('method_not_allowed', `${request.path} takes ${allowed}, not ${request.method}.`)
  }
}

function undecodable(cause: URIError): RouterError {
  const message = 'The path cannot be decoded: write % only before two hexadecimal digits, and UTF-8.'
  return new RouterError('invalid_request', message, { cause })
}

/** Every error leaves through here; a stream that has begun is only ended. */
function failWith(log: Log): ErrorRequestHandler {
  return (thrown, request, response, _next) => {
    const databaseFault = unavailable(thrown)
    const error = databaseFault ?? (thrown instanceof URIError ? undecodable(thrown) : asRouterError(thrown))
    const presented = secretOf(request.headers)
    error.message = withoutSecrets(error.message, presented)
    if (error.param !== undefined) error.param = withoutSecrets(error.param, presented)
    if (databaseFault) log.warn({ err: thrown }, 'the database could not be used')
    else if (error.code === 'internal') log.error({ err: thrown }, 'a call failed for an unforeseen reason')
    if (response.headersSent) {
      response.destroy()
      return
    }
    if (error.retryAfterMs !== undefined)
      response.setHeader('retry-after', String(Math.ceil(error.retryAfterMs / 1_000)))
    else if (error.status === 429) response.setHeader('retry-after', '1')
    setHeaders(response, error.headers)
    const face: ClientApi | undefined = response.locals.face
    response
      .status(catalogue[error.code].status)
      .json(face ? face.writeError(error, String(response.getHeader('x-request-id'))) : errorBody(error))
  }
}
