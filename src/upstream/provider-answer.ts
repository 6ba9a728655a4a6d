import { asRouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import { jsonText } from '../core/json-pieces.ts'
import type { Reply } from '../core/reply.ts'
import { eventsOf } from '../core/reply-events.ts'
import { exceededByCalls } from '../core/tool-arguments.ts'
import { readMetered, readReply } from '../manifest/run/read-reply.ts'
import { chatEndpoint, runMapping } from '../manifest/run/run-mapping.ts'
import { type Target, targetFacts } from '../manifest/target.ts'
import { isLong, yieldEach, yieldToEventLoop } from '../runtime/event-loop.ts'
import { streamFormats } from '../wire/frames.ts'
import {
  type AnswerBounds,
  billedAnyway,
  defaultAnswerBounds,
  describeExcess,
  excerpt,
  parseObject,
  unreadable,
  withBilled,
} from './answer-body.ts'
import type { Overtime } from './http/overtime.ts'
import type { HttpClient, HttpResponse } from './http/types.ts'
import { cancelJob, resultOf } from './job.ts'
import { reportedFailure } from './provider-error.ts'
import { type ForwardedHeader, sendRequest, type TimingLimits, textOf } from './provider-request.ts'
import { foldFacts, readStream, type StreamedAnswer } from './provider-stream.ts'
import { exhaustedMs } from './rate-limit-headers.ts'

/** A provider's answer: a whole reply, or a stream whose first content has come. */
export type ProviderAnswer = (WholeAnswer | StreamedAnswer) & {
  /** Time for which the provider, as it says itself, gives no more than this, in milliseconds. */
  exhaustedMs?: number | undefined
}

/**
 * `body` is the JSON after `patch.reply`, `reply` its neutral form, as far as it was read. `whole` reads all of one that was read in
 * part; it throws RouterError.
 */
export type WholeAnswer = { kind: 'whole'; body: JsonObject; reply: Reply; whole?: () => Reply }

/** Request to send to a provider, and the maximum size of its answer. */
type Outgoing = {
  body: JsonObject
  signal: AbortSignal
  forwardedHeaders: readonly ForwardedHeader[]
  bounds?: AnswerBounds
  /** Called when the provider has the whole request. */
  onSent?: () => void
  once?: boolean
  idempotencyKey?: string
  /** Time limits of this attempt where they are shorter than those of its provider, in milliseconds. */
  limits?: TimingLimits
  /** Set where the answer is read on after the call is over. */
  overtime?: Overtime | undefined
}

/**
 * Sends one body to a target and waits for the reply or its first content. Of a whole reply that is `edited` for the client, only the parts
 * that the call itself needs are read. Throws RouterError.
 */
export async function requestAnswer(
  target: Target,
  outgoing: Outgoing & { stream: boolean; edited?: boolean; choices?: number },
  httpClient: HttpClient,
): Promise<ProviderAnswer> {
  const { provider } = target
  const endpoint = chatEndpoint(provider)
  const { edited = false, bounds = defaultAnswerBounds, choices = 1, limits } = outgoing
  const { body, signal, forwardedHeaders, onSent, once, idempotencyKey, overtime } = outgoing
  const stream = outgoing.stream && !endpoint.stream.whole
  const isEvents = stream && !endpoint.stream.address
  const path = stream ? endpoint.stream.path : endpoint.path
  const accept = isEvents ? streamFormats[endpoint.stream.format].mediaType : 'application/json'
  const timing = { ...limits, stream: isEvents, untilContent: isEvents }
  const response = await sendRequest(
    target,
    { path, accept, body, signal, timing, forwardedHeaders, onSent, once, idempotencyKey, overtime },
    httpClient,
  )
  const exhausted = exhaustedMs(provider, response)
  const reading = { bounds, choices, usageWaitMs: overtime?.ms }
  const read = edited && !outgoing.stream ? readMetered : readReply
  const answer = isEvents
    ? await readStream(target, response, reading)
    : await readFirst(target, response, { ...outgoing, bounds, read, httpClient, reading, stream })
  const given = outgoing.stream && answer.kind === 'whole' ? asStream(answer) : answer
  return exhausted === undefined ? given : { ...given, exhaustedMs: exhausted }
}

/** Returns a whole answer as the stream of a client that wants one. */
function asStream({ reply }: WholeAnswer): StreamedAnswer {
  return { kind: 'stream', batches: yieldEach([[{ events: eventsOf(reply) }]]), model: reply.model, document: true }
}

/** Sends one body to a path of a target and waits for its JSON. Throws RouterError. */
export async function requestJson(
  target: Target,
  outgoing: Outgoing & { path: string },
  httpClient: HttpClient,
): Promise<{ body: JsonObject; exhaustedMs: number | undefined }> {
  const { bounds = defaultAnswerBounds, limits, ...rest } = outgoing
  const sent = { ...rest, accept: 'application/json', ...(limits && { timing: limits }) }
  const response = await sendRequest(target, sent, httpClient)
  const text = await textOf(target.provider, response, bounds.bytes)
  return { body: parseObject(target.provider, text, bounds), exhaustedMs: exhaustedMs(target.provider, response) }
}

/** Way of reading a first answer that is JSON: the whole one, a job, or one that names the address of a stream. */
type ReadingFirst = Pick<Outgoing, 'signal' | 'limits' | 'overtime'> & {
  bounds: AnswerBounds
  read: typeof readReply | typeof readMetered
  httpClient: HttpClient
  reading: Parameters<typeof readStream>[2]
  /** The client wants a stream, and the provider has one. */
  stream: boolean
}

/** Reads a first answer and what follows it; a long one yields to the event loop before each step. */
async function readFirst(target: Target, response: HttpResponse, options: ReadingFirst): Promise<ProviderAnswer> {
  const { bounds, read, stream, signal, httpClient } = options
  const { provider } = target
  const { job, stream: form } = chatEndpoint(provider)
  const text = await textOf(provider, response, bounds.bytes)
  if (isLong(text.length)) await yieldToEventLoop()
  const first = parseObject(provider, text, bounds)
  if (isLong(text.length)) await yieldToEventLoop()
  if (stream && form.address) {
    const named = await runMapping(provider, 'stream.url', form.address.url, first)
    if (typeof named === 'string') return await streamAt(target, named, first, options)
    if (!job) throw unreadable(provider, 'answered without the address of a stream')
  }
  if (!job) return await readWhole(target, first, { bounds, read, text })
  const result = await resultOf(target, job, first, { signal, bounds, httpClient })
  return await readWhole(target, result, { bounds, read, text: jsonText(result) })
}

/** Reads the stream at an address that the first answer names. What is not read to its end is cancelled where it is a job. */
async function streamAt(
  target: Target,
  url: string,
  first: JsonObject,
  { signal, limits, overtime, httpClient, reading }: ReadingFirst,
): Promise<StreamedAnswer> {
  const { job, stream } = chatEndpoint(target.provider)
  const cancel = () => void (job && cancelJob(target, job, first, httpClient))
  try {
    const response = await sendRequest(
      target,
      {
        method: 'GET',
        path: url,
        hosts: stream.address?.hosts ?? [],
        accept: streamFormats[stream.format].mediaType,
        signal,
        timing: { ...limits, stream: true, untilContent: true },
        overtime,
      },
      httpClient,
    )
    const answer = await readStream(target, response, reading)
    return { ...answer, batches: unlessLeft(answer.batches, cancel) }
  } catch (thrown) {
    cancel()
    throw thrown
  }
}

/** Yields all batches, and calls back where they are not read to their end. */
async function* unlessLeft<Batch>(batches: AsyncIterable<Batch>, onLeft: () => void): AsyncGenerator<Batch, void> {
  let isOver = false
  try {
    yield* batches
    isOver = true
  } finally {
    if (!isOver) onLeft()
  }
}

/** Reads a whole answer, of which `text` is the JSON. */
async function readWhole(
  target: Target,
  answer: JsonObject,
  { bounds, read, text }: { bounds: AnswerBounds; read: typeof readReply | typeof readMetered; text: string },
): Promise<WholeAnswer> {
  const { provider } = target
  try {
    const { body, reply, whole, error } = await read(
      provider,
      answer,
      foldFacts(provider),
      targetFacts(provider, target),
    )
    if (error) throw withBilled(reportedFailure(provider, error), reply.usage)
    if (reply.finish === 'error')
      throw withBilled(unreadable(provider, endedInError(reply, excerpt(provider, text))), reply.usage)
    const excess = exceededByCalls([reply], bounds.values)
    if (excess) throw withBilled(unreadable(provider, describeExcess(excess, bounds)), reply.usage)
    if (isLong(text.length)) await yieldToEventLoop()
    return whole ? { kind: 'whole', body, reply, whole } : { kind: 'whole', body, reply }
  } catch (thrown) {
    throw await billedAnyway(provider, asRouterError(thrown), answer)
  }
}

function endedInError({ finish_raw }: Reply, text: string): string {
  if (finish_raw === undefined) return `sent a reply without a finish reason: ${text.slice(0, 200)}`
  return `ended its reply with the finish reason \`${finish_raw}\`, which reports a failure`
}
