import { secretOf } from '../access/client-secret.ts'
import type { OperationApi } from '../api/operation-api.ts'
import { handleOperation, type OperationCall } from '../call/kinds/operation.ts'
import { originOf } from '../call/open/tags.ts'
import { RouterError } from '../core/errors.ts'
import { traceOf } from '../core/trace.ts'
import type { Request, Response } from './app.ts'
import type { ServerContext } from './context.ts'
import { isStrict, wantsExplanation } from './flag-headers.ts'
import { type Form, readForm } from './form-body.ts'
import { readJson } from './request-body.ts'
import { headersOf } from './respond.ts'
import { comment, deliver } from './response-body.ts'
import type { RunningRequest } from './running-requests.ts'
import { timeoutOf } from './timeout-header.ts'

/** The path of an operation. */
export type OperationRoute = { path: string; operation: OperationApi }

/** Answers one call for an operation. Rejects with RouterError. */
export async function serveOperation(
  request: Request,
  response: Response,
  { operation: api }: OperationRoute,
  context: ServerContext,
): Promise<void> {
  const { running, patienceMs: idleMs } = context
  if (context.stopping()) {
    headersOf(response).connection = 'close'
    throw new RouterError('stopping', 'The router is stopping. Send the call to another instance.')
  }
  const strict = isStrict(request.headers)
  const explain = wantsExplanation(request.headers)
  const timeoutMs = timeoutOf(request.headers)
  const own = running.begin(response)
  const { signal, atEnd } = own
  const { id, requestId } = response.locals
  const { headers } = request
  const secret = secretOf(headers)
  const tags = { origin: originOf(headers, secret), header: textOf(headers['x-router-tags']) }
  let form: Form | undefined
  try {
    const readBody: OperationCall['readBody'] = async (hearing) => {
      const body = await readOperationBody(request, response, { api, context, own, ...hearing })
      if ('form' in body) form = body.form
      return 'form' in body ? body.form : body
    }
    const answer = await handleOperation(
      {
        id,
        requestId,
        headers,
        secret,
        strict,
        explain,
        timeoutMs,
        tags,
        trace: traceOf(headers, id, context.sampling),
        signal,
        atEnd,
        api,
        uploads: isForm(request),
        readBody,
      },
      context.services(),
    )
    if (typeof answer.body !== 'string') running.beginStream(own)
    await deliver(response, answer, { signal, idleMs, keepAlive: { ms: context.keepAliveMs, text: comment } })
  } finally {
    await form?.dispose()
    running.end(own)
  }
}

type BodyReading = {
  api: OperationApi
  context: ServerContext
  own: RunningRequest
  onField: (name: string, value: string) => void
  onSlow: () => void
}

/** Bytes of what a form has beside its files. */
const roomForFields = 1_024 * 1_024
const mostFields = 1_000

function isForm({ headers }: Request): boolean {
  return /^\s*multipart\/form-data/i.test(headers['content-type'] ?? '')
}

async function readOperationBody(
  request: Request,
  response: Response,
  { api, context, own, onField, onSlow }: BodyReading,
): Promise<{ json: unknown } | { form: Form }> {
  if (api.form && (isForm(request) || !api.json)) {
    const { fileBytes, files, bytes = fileBytes * files } = api.form
    // It may be large, and is written to a file as it comes.
    onSlow()
    const limits = { running: own, idleMs: context.patienceMs, bytes: bytes + roomForFields, fileBytes, files, onField }
    return { form: await readForm(request, response, { ...limits, fields: mostFields, fieldBytes: roomForFields }) }
  }
  const json = await readJson(request, response, {
    running: own,
    size: context.bodyLimits(),
    idleMs: context.patienceMs,
    onSlow,
  })
  return { json }
}

function textOf(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined
}
