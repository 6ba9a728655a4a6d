import type { OperationApi } from '../../api/operation-api.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { ModelEntry } from '../../core/models/model.ts'
import type { OperationRequest } from '../../core/operation.ts'
import { addUsage, mergeUsage, type Usage } from '../../core/usage.ts'
import type { OperationEndpoint } from '../../manifest/operation.ts'
import {
  type OperationContext,
  type OperationEvent,
  operationContext,
  writeOperation,
} from '../../manifest/run/translate-operation.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { yieldEach } from '../../runtime/event-loop.ts'
import type { AnswerBounds } from '../../upstream/answer-body.ts'
import type { CallMedia } from '../../upstream/files/inline.ts'
import { type KeepIds, type OperationAnswer, requestOperation } from '../../upstream/operation-answer.ts'
import type { TargetAnswer } from '../call-kind.ts'
import type { Admission, AttemptContext } from '../types.ts'
import { measureOperation } from './measured-reply.ts'
import { askByChat, isAskedByChat } from './operation-by-chat.ts'
import { inputsFor } from './operation-inputs.ts'
import { withinTime } from './within-time.ts'

/** An operation as every target gets it; `inputs` fetches the images of the request, `media` the files that a conversation needs. */
export type AskedOperation = {
  request: OperationRequest
  api: OperationApi
  inputs: CallMedia
  media: CallMedia
  admission: Pick<Admission, 'mostAt'>
  /** A stream is read to its end before any of it is sent on. */
  holds: boolean
  keep: KeepIds
}

/** Asks one target, maybe with several requests. Throws RouterError. */
export function callOperation(
  target: Target,
  asked: AskedOperation,
  attempt: AttemptContext,
): Promise<TargetAnswer<OperationAnswer>> {
  const { signal, limits } = attempt
  const ownMs = Math.min(limits.totalMs ?? Infinity, asked.request.stream ? Infinity : (limits.wholeMs ?? Infinity))
  const totalMs = ownMs === Infinity ? undefined : ownMs
  return withinTime(target, { signal, totalMs }, async (signal) => {
    const answer = await call(target, asked, { ...attempt, signal })
    if (answer.kind === 'whole') requireReadable(target, answer, asked)
    return asked.holds ? await wholeStream(answer) : answer
  })
}

/**
 * Requires an answer from which a reply can be made: any other is a failure of its target, and its usage is charged. Throws RouterError.
 */
function requireReadable(
  target: Target,
  { reply, usage, model }: Extract<OperationAnswer, { kind: 'whole' }>,
  { api, request, admission }: AskedOperation,
): void {
  try {
    api.check?.(reply, request)
  } catch (thrown) {
    const { code, message } = asRouterError(thrown)
    const error = new RouterError(code, message, { provider: target.provider.slug, cause: thrown })
    const measured = measureOperation(usage, { target, api, request, admission, reply, complete: true })
    throw billedWith(error, measured.usage, model)
  }
}

async function call(
  target: Target,
  asked: AskedOperation,
  attempt: AttemptContext,
): Promise<TargetAnswer<OperationAnswer>> {
  const { request: given, api, media, keep } = asked
  if (api.byChat && isAskedByChat(target, api)) {
    return await askByChat(target, { byChat: api.byChat, request: given, media }, attempt)
  }
  const found = operationContext(target.provider, given, target)
  if (!found) throw new RouterError('model_not_found', `'${targetId(target)}' does not support this operation.`)
  const request = await inputsFor(given, found.endpoint, asked.inputs)
  const context = { ...found, request: streamsAt(target, found) ? request : wholeOf(request) }
  const bounded = { ...attempt, bounds: boundsOf(given, attempt.bounds) }
  const ask = (request: OperationRequest, signal: AbortSignal) =>
    askOnce(target, { ...context, request }, { api, attempt: { ...bounded, signal }, keep })
  const pieces = piecesOf(context.request, context.endpoint, target.entry)
  const { signal } = attempt
  return pieces ? await askInPieces(pieces, { api, signal }, ask) : await ask(context.request, signal)
}

function streamsAt({ entry }: Target, { endpoint, request }: OperationContext): boolean {
  return request.stream && endpoint.stream !== undefined && entry?.streams !== false
}

/** Returns the same request for an answer that comes at once. */
function wholeOf(request: OperationRequest): OperationRequest {
  const { stream: _, stream_format: __, ...fields } = request.fields
  return { ...request, fields, stream: false }
}

async function askOnce(
  target: Target,
  context: OperationContext,
  { api, attempt, keep }: { api: OperationApi; attempt: AttemptContext; keep: KeepIds },
): Promise<TargetAnswer<OperationAnswer>> {
  const written = await writeOperation(context, target.model)
  attempt.report(written.dropped)
  refuseWithoutNeeds(written.dropped, api, target)
  const body = await attempt.beforeSend(written.body)
  const { stream } = context.request
  const sent = body === written.body ? written : { ...written, body }
  return await requestOperation(target, context, { ...attempt, written: sent, stream, keep }, await attempt.client())
}

/** Reads a streamed answer to its end, so that another target can be asked where it breaks off. */
async function wholeStream(answer: TargetAnswer<OperationAnswer>): Promise<TargetAnswer<OperationAnswer>> {
  if (answer.kind === 'whole') return answer
  if (answer.kind === 'bytes') return { ...answer, bytes: yieldEach(await collected(answer.bytes, answer.usage)) }
  const batches: OperationEvent[][] = []
  let usage: Usage = {}
  try {
    for await (const batch of answer.batches) {
      for (const event of batch) usage = mergeUsage(usage, event.usage ?? {})
      batches.push(batch)
    }
  } catch (thrown) {
    throw billedWith(thrown, usage)
  }
  return { ...answer, batches: yieldEach(batches) }
}

async function collected(bytes: AsyncIterable<Uint8Array>, usage: Usage): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = []
  try {
    for await (const piece of bytes) pieces.push(piece)
  } catch (thrown) {
    throw billedWith(thrown, usage)
  }
  return pieces
}

/** Returns a request whose list is longer than the model takes at once, in pieces; undefined when it is not. */
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

/** Splits a number of answers into pieces. */
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

/** Checks whether a list is one of token ids, which is one input. */
function isTokens(list: readonly Json[]): boolean {
  return typeof list[0] === 'number'
}

/**
 * Asks for the pieces, some at a time, and joins the answers. One that fails ends the others; usage counted before it is billed with it.
 */
async function askInPieces(
  { requests, offsets }: Pieces,
  { api: { join }, signal }: { api: OperationApi; signal: AbortSignal },
  ask: (request: OperationRequest, signal: AbortSignal) => Promise<TargetAnswer<OperationAnswer>>,
): Promise<TargetAnswer<OperationAnswer>> {
  if (!join) throw new Error('this operation cannot be split')
  const replies: JsonObject[] = []
  const others = new AbortController()
  const until = AbortSignal.any([signal, others.signal])
  let usage: Usage = {}
  let model: string | undefined
  let exhaustedMs: number | undefined
  let next = 0
  let failure: unknown
  const work = async () => {
    while (next < requests.length && failure === undefined) {
      const index = next++
      try {
        const answer = await ask(requests[index] as OperationRequest, until)
        if (answer.kind !== 'whole') throw new Error('an answer to a piece of a request must be whole')
        replies[index] = answer.reply
        model ??= answer.model
        exhaustedMs = answer.exhaustedMs ?? exhaustedMs
        usage = addUsage(usage, answer.usage)
      } catch (thrown) {
        // Those that are ended have not counted anything.
        failure ??= thrown
        others.abort(asRouterError(thrown))
      }
    }
  }
  await Promise.all(Array.from({ length: piecesAtOnce }, work))
  if (failure !== undefined) throw billedWith(failure, usage, model)
  try {
    return { kind: 'whole', reply: join(replies, offsets), usage, reported: undefined, model, exhaustedMs }
  } catch (thrown) {
    throw billedWith(thrown, usage, model)
  }
}

/** Returns an error of its own: the reason of an abort is that of other calls as well. */
function billedWith(thrown: unknown, usage: Usage, model?: string): RouterError {
  const error = asRouterError(thrown).withHeaders({})
  error.billedModel ??= model
  if (Object.keys(usage).length > 0) error.billed = addUsage(usage, error.billed ?? {})
  return error
}

/** Limit of concurrent pieces: a higher one would take a provider's concurrent calls from others. */
const piecesAtOnce = 4

/** Returns the bounds of an answer: vectors have more numbers, and images more bytes, than answers in words. */
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
  const message = `${targetId(target)} cannot take '${field}' in this form: send it as text.`
  throw new RouterError('invalid_request', message, { param: field })
}
