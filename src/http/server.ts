import type { Key } from '../access/keys.ts'
import { secretOf } from '../access/secrets.ts'
import { callerOf } from '../call/open/read-after-admission.ts'
import { RouterError } from '../core/errors.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { type App, type Handler, newApp, type Request, type Response } from './app.ts'
import { readJson } from './bodies/request-body.ts'
import { requireRead, sendBody } from './bodies/response-body.ts'
import { type CallRoute, serveCall } from './calls.ts'
import type { ServerContext } from './context.ts'
import { answerOptions, shareWithOrigins } from './cors.ts'
import { failWith } from './failures.ts'
import { isGeminiPath, notHere } from './not-here.ts'
import { refuseDoubledHeaders } from './request-headers.ts'
import { assignRequestId, speakAs } from './request-id.ts'
import { headersOf, isKnown, respond } from './respond.ts'
import type { JsonRequest, JsonRoute } from './types.ts'

/** Creates the app: the call routes, the JSON routes, pages, and errors in the format of the client's API. */
export function createApp(
  context: ServerContext,
  calls: readonly CallRoute[],
  routes: readonly JsonRoute[],
  pages: Handler,
): App {
  // Case-sensitive, so that a proxy rule for a path cannot be bypassed by its letter case.
  const app = newApp({ caseSensitive: true })
  const fail = failWith(context)
  const callAt = new Map(calls.flatMap((call) => [call.path, `${call.path}/`].map((path) => [path, call])))
  // One layer for everything that a call passes: each layer costs as much as its work.
  app.use((request, response, next) => {
    const { path, method } = request
    assignRequestId(request, response)
    shareWithOrigins(request, response, context.corsOrigins())
    refuseDoubledHeaders(request)
    const call = callAt.get(path) ?? calls.find((above) => path.startsWith(`${above.path}/`))
    if (call?.kind.clientApi) speakAs(call.kind.clientApi, response)
    if (!call || method !== 'POST' || !callAt.has(path)) return next()
    const failed = (thrown: unknown) => {
      context.onCallFailed?.(thrown)
      return fail(thrown, request, response, next)
    }
    const refused = refusedUnread(request, context)
    if (refused instanceof Promise)
      return refused.then((refusal) =>
        refusal ? failed(refusal) : serveCall(request, response, call, context).catch(failed),
      )
    if (refused) return failed(refused)
    // The app would try every route before it handled the error.
    return serveCall(request, response, call, context).catch(failed)
  })
  for (const { path } of calls) endPath(app, path, ['POST'], { context, calls })
  for (const [path, methods] of Map.groupBy(routes, ({ path }) => path)) {
    for (const route of methods) app[route.method ?? 'get'](path, answerJson(route, context))
    // HEAD is answered as GET is.
    const names = methods.map(({ method = 'get' }) => (method === 'get' ? 'GET, HEAD' : method.toUpperCase()))
    endPath(app, path, names, { context, calls })
  }
  app.use(pages)
  const paths = new Set([...calls, ...routes].map(({ path }) => path))
  app.use((request, response) => {
    speakAsCaller(request, response, calls)
    throw notHere(request, paths)
  })
  app.use(fail)
  return app
}

/** Refuses all other methods of a path. */
function endPath(
  app: App,
  path: string,
  names: readonly string[],
  { context, calls }: { context: ServerContext; calls: readonly CallRoute[] },
): void {
  const methods = names.join(', ')
  app.options(path, answerOptions(methods, context.corsOrigins))
  // `app.all` would make a layer for each method that Node knows.
  app.route(path).all(refuseMethod(methods, calls))
}

/** Writes errors of paths that belong to no client API in that of the caller, where a header names it. */
function speakAsCaller({ headers }: Request, response: Response, calls: readonly CallRoute[]): void {
  if (response.locals.clientApi) return
  const own = calls.flatMap(({ kind }) => kind.clientApi ?? [])
  const clientApi = own.find(({ versionHeader = '' }) => headers[versionHeader] !== undefined)
  if (clientApi) speakAs(clientApi, response)
}

function answerJson({ clientApiOf, answer }: JsonRoute, context: ServerContext): Handler {
  return async (request, response) => {
    const clientApi = clientApiOf?.(request)
    if (clientApi) speakAs(clientApi, response)
    const { running } = context
    const own = running.begin(response)
    try {
      const { headers, params, query } = request
      const idleMs = context.clientTimeoutMs()
      const readBody = () => readJson(request, response, { size: context.bodyLimits(), idleMs, running: own })
      const answered = await answer({ headers, params, query: query as JsonRequest['query'], readBody })
      const { status = 200, text, etag, mediaType, body, endless, noStore } = answered
      if (body)
        return await sendBody(
          response,
          { body, mediaType, endless },
          { own, context, isHead: request.method === 'HEAD' },
        )
      if (noStore) headersOf(response)['cache-control'] = 'no-store'
      if (etag !== undefined) Object.assign(headersOf(response), { etag, 'cache-control': 'private, no-cache' })
      if (etag !== undefined && isKnown(etag, headers['if-none-match'])) respond(response, 304)
      else respond(response, status, text, mediaType)
      await requireRead(response, { running: own, idleMs, minRate: context.clientMinRate() })
    } finally {
      running.end(own)
    }
  }
}

function refuseMethod(allowed: string, calls: readonly CallRoute[]): Handler {
  return (request, response) => {
    speakAsCaller(request, response, calls)
    if (isGeminiPath(request.path)) throw notHere(request)
    // Clients of Responses that prefer a WebSocket go on with HTTP after this status, and try again after others.
    if (/\bwebsocket\b/i.test(request.headers.upgrade ?? '')) {
      headersOf(response).upgrade = 'HTTP/1.1'
      throw new RouterError('upgrade_required', `${request.path} accepts no WebSocket: send a POST.`)
    }
    headersOf(response).allow = allowed
    throw new RouterError('method_not_allowed', `${request.path} supports ${allowed}, not ${request.method}.`)
  }
}

/**
 * Returns the refusal of a call for which there is no room, before anything is allocated for it: there may be thousands in a second. A
 * caller without a valid key gets that error instead, on the path that all others take.
 */
function refusedUnread(
  { headers }: Pick<JsonRequest, 'headers'>,
  { services }: Pick<ServerContext, 'services'>,
): MaybePromise<RouterError | undefined> {
  const { gate, authenticate } = services()
  if (gate.hasCapacity) return undefined
  const refusal = (key: Key) => gate.refusal(callerOf(key))
  try {
    const authenticating = authenticate(secretOf(headers))
    return authenticating instanceof Promise
      ? authenticating.then(refusal).catch(() => undefined)
      : refusal(authenticating)
  } catch {
    return undefined
  }
}
