import type { OperationApi } from '../../api/operation-api.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { ModelEntry } from '../../core/model.ts'
import type { OperationRequest } from '../../core/operation.ts'
import { addUsage, type Usage } from '../../core/usage.ts'
import type { OperationEndpoint } from '../../manifest/operation.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { type OperationContext, operationContext, writeOperation } from '../../manifest/translate-operation.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { AttemptLimits } from '../../routing/trial.ts'
import type { AnswerBounds } from '../../upstream/answer-bounds.ts'
import type { HttpClient } from '../../upstream/http-client.ts'
import { type CallMedia, type MediaServices, openCallMedia } from '../../upstream/inline.ts'
import { type OperationAnswer, requestOperation } from '../../upstream/operation-answer.ts'
import { withoutSecretsOf } from '../../upstream/secrets.ts'
import type { Admission } from '../admission/admission.ts'
import { clientByPlugins } from '../plugins/plugin-targets.ts'
import { askByChat, isAskedByChat } from './operation-by-chat.ts'
import { inputsFor } from './operation-inputs.ts'
import { withinTime } from './within-time.ts'

/** The result of asking one target: its answer or an error, and the client's names of the fields that were left out. */
export type OperationResult = { dropped: string[] } & (
  | { answer: OperationAnswer; error?: undefined }
  /** `sent`: the provider has the whole request. */
  | { error: RouterError; sent: boolean }
)

/** A call as every target gets it; `inputs` fetches files for all of them. */
export type AskedOperation = {
  request: OperationRequest
  api: OperationApi
  strict: boolean
  signal: AbortSignal
  inputs: CallMedia
  admission: Pick<Admission, 'cover'>
  plugins: CallPlugins | undefined
  limits: AttemptLimits
}

type Upstream = { httpClient: HttpClient; answerBounds: AnswerBounds; media: MediaServices }

/** Asks one target. */
export function callOperation(target: Target, asked: AskedOperation, upstream: Upstream): Promise<OperationResult> {
  const { signal, limits } = asked
  return withinTime(target, { signal, totalMs: limits.totalMs }, (signal) =>
    call(target, { ...asked, signal }, upstream),
  )
}

async function call(
  target: Target,
  asked: AskedOperation,
  { answerBounds, media, ...upstream }: Upstream,
): Promise<OperationResult> {
  const progress: Progress = { dropped: [], sent: false }
  try {
    // A target that failed may have spent what was reserved.
    await asked.admission.cover(target, {})
    const httpClient = await clientByPlugins(upstream.httpClient, target, asked.plugins)
    if (isAskedByChat(target, asked.api)) {
      const answer = await askConversation(target, { asked, bounds: answerBounds, httpClient, progress }, media)
      return { dropped: progress.dropped, answer }
    }
    const found = operationContext(target.provider, asked.request, target)
    if (!found) throw new RouterError('model_not_found', `'${targetId(target)}' cannot be asked for this.`)
    const request = await inputsFor(asked.request, found.endpoint, asked.inputs)
    const streams = streamsAt(target, found)
    const context = { ...found, request: streams ? request : wholeOf(request) }
    const bounds = boundsOf(asked.request, answerBounds)
    const pieces = piecesOf(context.request, context.endpoint, target.entry)
    const ask = (request: OperationRequest, signal: AbortSignal) =>
      askOnce(target, { ...context, request }, { asked: { ...asked, signal }, bounds, httpClient, progress })
    const { signal } = asked
    const answer = pieces ? await askInPieces(pieces, asked, ask) : await ask(context.request, signal)
    return { dropped: progress.dropped, answer }
  } catch (thrown) {
    return { ...progress, error: withoutSecretsOf(target.provider, asRouterError(thrown)) }
  }
}

function streamsAt({ entry }: Target, { endpoint, request }: OperationContext): boolean {
  return request.stream && endpoint.stream !== undefined && entry?.streams !== false
}

/** The same request for an answer that comes at once. */
function wholeOf(request: OperationRequest): OperationRequest {
  const { stream: _, stream_format: __, ...fields } = request.fields
  return { ...request, fields, stream: false }
}

type Progress = { dropped: string[]; sent: boolean }

type Asking = { asked: AskedOperation; bounds: AnswerBounds; httpClient: HttpClient; progress: Progress }

async function askOnce(
  target: Target,
  context: OperationContext,
  { asked, bounds, httpClient, progress }: Asking,
): Promise<OperationAnswer> {
  const written = await writeOperation(context, target.model)
  progress.dropped = written.dropped
  refuseWithoutNeeds(written.dropped, asked.api, target)
  if (asked.strict && written.dropped.length > 0) throw lossRefused(written.dropped, target)
  const onSent = () => {
    progress.sent = true
  }
  const { stream } = context.request
  return await requestOperation(
    target,
    context,
    { written, stream, signal: asked.signal, bounds, onSent, limits: asked.limits },
    httpClient,
  )
}

async function askConversation(
  target: Target,
  { asked, bounds, httpClient, progress }: Asking,
  media: MediaServices,
): Promise<OperationAnswer> {
  const { request, api, strict, signal, limits } = asked
  if (!api.byChat) throw new Error('this operation is no conversation')
  return await askByChat(target, {
    ...{ byChat: api.byChat, request, signal, bounds, limits, httpClient },
    media: openCallMedia(media, { param: 'input', signal }),
    onWritten(dropped) {
      progress.dropped = dropped
      if (strict && dropped.length > 0) throw lossRefused(dropped, target)
    },
    onSent() {
      progress.sent = true
    },
  })
}

/** A request whose list is longer than the model takes at once, in pieces; undefined when it is not. */
function piecesOf(request: OperationRequest, { batch }: OperationEndpoint, entry?: ModelEntry): Pieces | undefined {
  const list = batch && request.fields[batch.field]
  if (batch && typeof list === 'number') return parts(request, batch, list)
  if (!batch || !Array.isArray(list) || isTokens(list)) return undefined
  const size = entry?.max_inputs ?? batch.size
  if (list.length <= size) return undefined
  const offsets = Array.from({ length: Math.ceil(list.length / size) }, (_, index) => index * size)
  const requests = offsets.map((offset) => {
    const fields = { ...request.fields, [batch.field]: list.slice(offset, offset + size) }
    return { ...request, fields }
  })
  return { requests, offsets }
}

/** A number of answers in pieces. */
function parts(request: OperationRequest, { field, size }: Batch, total: number): Pieces | undefined {
  if (total <= size) return undefined
  const offsets = Array.from({ length: Math.ceil(total / size) }, (_, index) => index * size)
  const requests = offsets.map((offset) => {
    return { ...request, fields: { ...request.fields, [field]: Math.min(size, total - offset) } }
  })
  return { requests, offsets }
}

type Batch = NonNullable<OperationEndpoint['batch']>
type Pieces = { requests: OperationRequest[]; offsets: number[] }

/** A list of token ids is one input. */
function isTokens(list: readonly Json[]): boolean {
  return typeof list[0] === 'number'
}

/**
 * Asks for the pieces, some at a time, and joins the answers. One that fails ends the others; what was counted before it is billed
 * with it.
 */
async function askInPieces(
  { requests, offsets }: Pieces,
  { api: { join }, signal }: Pick<AskedOperation, 'api' | 'signal'>,
  ask: (request: OperationRequest, signal: AbortSignal) => Promise<OperationAnswer>,
): Promise<OperationAnswer> {
  if (!join) throw new Error('this operation cannot be split')
  const replies: JsonObject[] = []
  const others = new AbortController()
  const until = AbortSignal.any([signal, others.signal])
  let usage: Usage = {}
  let next = 0
  let failure: unknown
  const work = async () => {
    while (next < requests.length && failure === undefined) {
      const index = next++
      try {
        const answer = await ask(requests[index] as OperationRequest, until)
        if (answer.kind !== 'whole') throw new Error('an answer to a piece of a request must be whole')
        replies[index] = answer.reply
        usage = addUsage(usage, answer.usage)
      } catch (thrown) {
        // Those that are ended have not counted anything.
        failure ??= thrown
        others.abort(asRouterError(thrown))
      }
    }
  }
  await Promise.all(Array.from({ length: piecesAtOnce }, work))
  if (failure !== undefined) throw billedWith(failure, usage)
  try {
    return { kind: 'whole', reply: join(replies, offsets), usage, reported: undefined }
  } catch (thrown) {
    throw billedWith(thrown, usage)
  }
}

/** An error of its own: the reason of an abort is that of other calls as well. */
function billedWith(thrown: unknown, usage: Usage): RouterError {
  const error = asRouterError(thrown).withHeaders({})
  if (Object.keys(usage).length > 0) error.billed = addUsage(usage, error.billed ?? {})
  return error
}

/** More would take a provider's limit of calls at once from others. */
const piecesAtOnce = 4

/** Vectors have more numbers, and pictures more bytes, than answers in words. */
function boundsOf({ operation }: OperationRequest, bounds: AnswerBounds): AnswerBounds {
  if (operation === 'embed') return { ...bounds, bytes: bounds.bytes * 4, values: bounds.values * 32 }
  if (operation === 'image' || operation === 'image_edit' || operation === 'speech') {
    return { ...bounds, bytes: bounds.bytes * 4, eventBytes: bounds.eventBytes * 8 }
  }
  return bounds
}

function refuseWithoutNeeds(dropped: readonly string[], { needs = [] }: OperationApi, target: Target): void {
  const field = needs.find((name) => dropped.includes(name))
  if (field === undefined) return
  const message = `${targetId(target)} cannot take '${field}' as it is: send it as text.`
  throw new RouterError('invalid_request', message, { param: field })
}

function lossRefused(dropped: readonly string[], target: Target): RouterError {
  const fields = dropped.join(', ')
  const message = `${targetId(target)} does not support: ${fields}. Remove the fields, or send the request without x-router-strict and provider.require_parameters.`
  return new RouterError('loss_refused', message, { param: dropped[0] ?? '' })
}
