import { secretOf } from '../access/client-secret.ts'
import type { ClientApi } from '../api/client-api.ts'
import { handle, type Services } from '../call/handle-call.ts'
import { originOf } from '../call/open/tags.ts'
import { sessionIn } from '../call/targets/affinity-key.ts'
import type { Call, CallResponse } from '../call/types.ts'
import { RouterError } from '../core/errors.ts'
import { type Sampling, traceOf } from '../core/trace.ts'
import type { Request, Response } from './app.ts'
import type { ServerContext } from './context.ts'
import { isStrict, wantsExplanation } from './flag-headers.ts'
import { readJson } from './request-body.ts'
import { headersOf } from './respond.ts'
import { comment, deliver } from './response-body.ts'
import { timeoutOf } from './timeout-header.ts'

/** The path of a client API. */
export type CallRoute = {
  path: string
  clientApi: ClientApi
  /** Handles the calls of this path; the default is `handle`. */
  handler?: (call: Call, services: Services) => Promise<CallResponse>
}

/** Answers one call. Rejects with RouterError. */
export async function serveCall(
  request: Request,
  response: Response,
  { clientApi, handler = handle }: CallRoute,
  context: ServerContext,
): Promise<void> {
  const { running, patienceMs: idleMs } = context
  if (context.stopping()) {
    headersOf(response).connection = 'close'
    throw new RouterError('stopping', 'The router is stopping. Send the call to another instance.')
  }
  const own = running.begin(response)
  const { signal } = own
  try {
    const size = context.bodyLimits()
    const readBody: Call['readBody'] = (onSlow) => readJson(request, response, { running: own, size, idleMs, onSlow })
    const silence = { afterMs: context.keepAliveMs, early: context.keepsAliveEarly() }
    const { sampling } = context
    const call = callOf(request, response, {
      clientApi,
      readBody,
      signal,
      atEnd: own.atEnd,
      keepAlive: silence,
      sampling,
    })
    const answer = await handler(call, context.services())
    if (typeof answer.body !== 'string') running.beginStream(own)
    const keepAlive = { ms: context.keepAliveMs, text: clientApi.keepAlive ?? comment }
    await deliver(response, answer, { signal, idleMs, keepAlive })
  } finally {
    running.end(own)
  }
}

function callOf(
  { headers }: Request,
  { locals: { id, requestId } }: Response,
  {
    clientApi,
    readBody,
    signal,
    atEnd,
    keepAlive,
    sampling,
  }: Pick<Call, 'clientApi' | 'readBody' | 'signal' | 'atEnd' | 'keepAlive'> & { sampling: Sampling },
): Call {
  const secret = secretOf(headers)
  return {
    id,
    requestId,
    clientApi,
    secret,
    readBody,
    strict: isStrict(headers),
    explain: wantsExplanation(headers),
    timeoutMs: timeoutOf(headers),
    forwardedHeaders: forwardedHeaders(clientApi, headers),
    headers,
    trace: traceOf(headers, id, sampling),
    session: sessionIn(headers),
    keepAlive,
    tags: { origin: originOf(headers, secret), header: textOf(headers['x-router-tags']) },
    signal,
    atEnd,
  }
}

/** The client's headers that its API forwards to providers of the same format. */
function forwardedHeaders(
  { forwardedHeaders: names }: ClientApi,
  headers: Request['headers'],
): NonNullable<Call['forwardedHeaders']> {
  if (!names) return []
  return Object.entries(names).flatMap(([name, how]) => {
    const value = textOf(headers[name])?.trim()
    return value ? [{ name, value, how }] : []
  })
}

/** Node joins what is sent twice of all headers but one, which no request has. */
function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined
}
