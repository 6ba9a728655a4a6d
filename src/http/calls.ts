import { secretOf } from '../access/secrets.ts'
import type { ClientApi } from '../api/client-api.ts'
import type { CallKind } from '../call/call-kind.ts'
import { handleCall } from '../call/handle-call.ts'
import { originOf } from '../call/open/tags.ts'
import { sessionIn } from '../call/targets/affinity-key.ts'
import type { BodyProgress, Call } from '../call/types.ts'
import { RouterError } from '../core/errors.ts'
import { traceOf } from '../core/trace.ts'
import type { Request, Response } from './app.ts'
import { type Form, readForm } from './bodies/form-body.ts'
import { readJson } from './bodies/request-body.ts'
import { comment, deliver } from './bodies/response-body.ts'
import type { ServerContext } from './context.ts'
import { isStrict, timeoutOf, wantsExplanation } from './request-headers.ts'
import { headersOf } from './respond.ts'
import type { RunningRequest } from './running-requests.ts'

/** A path of the client APIs, and the kind of its calls. */
export type CallRoute = { path: string; kind: CallKind }

/** Answers one call. Rejects with RouterError. */
export async function serveCall(
  request: Request,
  response: Response,
  { kind }: CallRoute,
  context: ServerContext,
): Promise<void> {
  const { running } = context
  if (context.stopping()) {
    headersOf(response).connection = 'close'
    throw new RouterError('stopping', 'The router is stopping. Send the call to another instance.')
  }
  const own = running.begin(response)
  let form: Form | undefined
  try {
    const readBody: Call['readBody'] = async (progress) => {
      const body = await readBodyOf(request, response, { kind, context, own, progress })
      if ('files' in body) form = body
      return body
    }
    const answer = await handleCall(
      callOf(request, response, { kind, context, own, readBody }),
      kind,
      context.services(),
    )
    if (typeof answer.body !== 'string') running.beginStream(own)
    const keepAlive = { ms: context.keepAliveMs, text: kind.clientApi?.keepAlive ?? comment }
    const [idleMs, minRate] = [context.clientTimeoutMs(), context.clientMinRate()]
    await deliver(response, answer, { running: own, idleMs, minRate, keepAlive })
  } finally {
    await form?.dispose()
    running.end(own)
  }
}

type Arrived = { kind: CallKind; context: ServerContext; own: RunningRequest }

function callOf(
  request: Request,
  { locals: { id, requestId } }: Response,
  { kind, context, own, readBody }: Arrived & Pick<Call, 'readBody'>,
): Call {
  const { headers } = request
  const secret = secretOf(headers)
  return {
    id,
    requestId,
    secret,
    uploads: kind.form !== undefined && isForm(request),
    readBody,
    strict: isStrict(headers),
    explain: wantsExplanation(headers),
    timeoutMs: timeoutOf(headers),
    forwardedHeaders: forwardedHeaders(kind.clientApi, headers),
    headers,
    trace: traceOf(headers, id, context.sampling),
    session: sessionIn(headers),
    keepAlive: { afterMs: context.keepAliveMs, early: context.keepsAliveEarly() },
    tags: { origin: originOf(headers, secret), header: textOf(headers['x-router-tags']) },
    signal: own.signal,
    stop: context.running.stop,
    outlive: own.outlive,
    atEnd: own.atEnd,
    onAdmitted: (place) => {
      own.admitted = place
    },
  }
}

/** Bytes of a form beside its files, and how many fields it may have. */
const maxFieldBytes = 1_024 * 1_024
const maxFields = 1_000

function isForm({ headers }: Request): boolean {
  return /^\s*multipart\/form-data/i.test(headers['content-type'] ?? '')
}

async function readBodyOf(
  request: Request,
  response: Response,
  { kind, context, own, progress }: Arrived & { progress: BodyProgress },
): Promise<{ json: unknown; bytes: number } | Form> {
  const { onSlow, onField } = progress
  const idleMs = context.clientTimeoutMs()
  if (kind.form && (isForm(request) || kind.json === false)) {
    const { fileBytes, files, bytes = fileBytes * files } = kind.form
    // It may be large, and is written to a file as it comes.
    onSlow()
    const limits = { running: own, idleMs, bytes: bytes + maxFieldBytes, fileBytes, files, onField }
    return await readForm(request, response, { ...limits, fields: maxFields, fieldBytes: maxFieldBytes })
  }
  const json = await readJson(request, response, { running: own, size: context.bodyLimits(), idleMs, onSlow })
  return { json, bytes: own.bodyBytes }
}

/** Returns the client's headers that its API forwards to providers of the same format. */
function forwardedHeaders(
  clientApi: ClientApi | undefined,
  headers: Request['headers'],
): NonNullable<Call['forwardedHeaders']> {
  const names = clientApi?.forwardedHeaders
  if (!names) return []
  return Object.entries(names).flatMap(([name, how]) => {
    const value = textOf(headers[name])?.trim()
    return value ? [{ name, value, how }] : []
  })
}

/** Returns the text of a header. Node joins the values of a header that is sent twice, except for one that no request has. */
function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined
}
