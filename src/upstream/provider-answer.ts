import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { asRouterError, RouterError } from '../core/errors.ts'
import type { FoldFacts } from '../core/fold.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { Reply } from '../core/reply.ts'
import type { TargetFacts } from '../core/request.ts'
import { turnFor } from '../core/turn.ts'
import { completionTokens, mergeUsage, promptTokens, type Usage } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import { readMetered, readReply } from '../manifest/read-reply.ts'
import { usageIn } from '../manifest/read-usage.ts'
import { chatEndpoint } from '../manifest/run-mapping.ts'
import type { Target } from '../manifest/target.ts'
import { targetFacts } from '../manifest/target-facts.ts'
import { type ReadFrame, readFrame } from '../manifest/translate.ts'
import type { Frame, FrameError } from '../wire/frame.ts'
import { type StreamFormat, streamFormats } from '../wire/frames.ts'
import { type AnswerBounds, defaultAnswerBounds, excessOf } from './answer-bounds.ts'
import type { HttpClient, HttpResponse } from './http-client.ts'
import { readErrorResponse, reportedFailure } from './provider-error.ts'
import { errorText, type ForwardedHeader, post, textOf } from './provider-request.ts'
import { redact } from './secrets.ts'

/** A provider's answer: a whole reply, or a stream whose first event has come. */
export type ProviderAnswer = WholeAnswer | StreamedAnswer

/** `body` is the JSON after `patch.reply`, `reply` its neutral form, as far as it was read. */
export type WholeAnswer = { kind: 'whole'; body: JsonObject; reply: Reply }

/** Frames as they arrive from the network, several at a time; the model as the first of them name it. */
export type StreamedAnswer = { kind: 'stream'; batches: AsyncIterable<StreamFrame[]>; model?: string | undefined }

/** One frame of a stream; the declared end marker has no payload. */
export type StreamFrame = Pick<ReadFrame, 'events'> & Partial<Pick<ReadFrame, 'payload'>>

/** What is sent to a provider, and how large its answer may be. */
type Outgoing = {
  body: JsonObject
  signal: AbortSignal
  forwardedHeaders: readonly ForwardedHeader[]
  bounds?: AnswerBounds
  /** Called when the provider has the whole request. */
  onSent?: () => void
}

/** How long a stream that has reached its end marker may keep its connection open before it is closed. Milliseconds. */
const drainMs = 50

/**
 * Sends one body to a target and waits for the reply or its first event. Of a whole reply that is `edited` for the client only
 * what the call itself needs is read. Throws RouterError.
 */
export async function requestAnswer(
  target: Target,
  outgoing: Outgoing & { stream: boolean; edited?: boolean },
  httpClient: HttpClient,
): Promise<ProviderAnswer> {
  const { provider } = target
  const endpoint = chatEndpoint(provider)
  const { stream, edited = false, bounds = defaultAnswerBounds, ...rest } = outgoing
  const path = stream ? endpoint.stream.path : endpoint.path
  const accept = stream ? streamFormats[endpoint.stream.format].mediaType : 'application/json'
  const response = await post(target, { ...rest, path, accept }, httpClient)
  return stream
    ? await readStream(target, response, bounds)
    : await readWhole(target, response, { bounds, read: edited ? readMetered : readReply })
}

/** Sends one body to a path of a target and waits for its JSON. Throws RouterError. */
export async function requestJson(
  target: Target,
  outgoing: Outgoing & { path: string },
  httpClient: HttpClient,
): Promise<JsonObject> {
  const { bounds = defaultAnswerBounds, ...rest } = outgoing
  const response = await post(target, { ...rest, accept: 'application/json' }, httpClient)
  return parseObject(target.provider, await textOf(target.provider, response, bounds.bytes), bounds)
}

/** The facts for folding an answer of this provider. */
export function foldFacts({ maker }: Provider): FoldFacts {
  return { maker, newId: randomUUID, now: () => Math.floor(Date.now() / 1_000) }
}

/** A long answer leaves the event loop a turn before each step. */
async function readWhole(
  target: Target,
  response: HttpResponse,
  { bounds, read }: { bounds: AnswerBounds; read: typeof readReply | typeof readMetered },
): Promise<WholeAnswer> {
  const { provider } = target
  const text = await textOf(provider, response, bounds.bytes)
  await turnFor(text.length)
  const answer = parseObject(provider, text, bounds)
  await turnFor(text.length)
  try {
    const { body, reply, error } = await read(provider, answer, foldFacts(provider), targetFacts(provider, target))
    if (error) throw withBilled(reportedFailure(provider, error), reply.usage)
    if (reply.finish === 'error')
      throw withBilled(unreadable(provider, endedInError(reply, excerpt(provider, text))), reply.usage)
    await turnFor(text.length)
    return { kind: 'whole', body, reply }
  } catch (thrown) {
    throw await billedAnyway(provider, asRouterError(thrown), answer)
  }
}

/** An answer that is no reply is paid by the usage in it. */
async function billedAnyway(provider: Provider, error: RouterError, answer: JsonObject): Promise<RouterError> {
  if (error.billed) return error
  return withBilled(error, await usageIn(provider, answer).catch(() => undefined))
}

function withBilled(error: RouterError, usage: Usage | undefined): RouterError {
  if (usage && promptTokens(usage) + completionTokens(usage) > 0) error.billed = usage
  return error
}

function endedInError({ finish_raw }: Reply, text: string): string {
  if (finish_raw === undefined) return `sent a reply without a finish reason: ${text.slice(0, 200)}`
  return `ended its reply with the finish reason \`${finish_raw}\`, which reports a failure`
}

/** Formats that providers also send as `application/json`; an error inside is an event like any other. */
const streamsAsJson: ReadonlySet<StreamFormat> = new Set(['ndjson', 'json-array'])

async function readStream(target: Target, response: HttpResponse, bounds: AnswerBounds): Promise<StreamedAnswer> {
  const { provider } = target
  const { format } = chatEndpoint(provider).stream
  const type = String(response.headers['content-type'] ?? '')
  if (!streamsAsJson.has(format) && type.startsWith('application/json')) {
    const text = await errorText(response)
    if (/"error"|^\s*\{\s*"message"/.test(text))
      throw await readErrorResponse(provider, { status: 502, headers: response.headers, text })
    const error = unreadable(provider, 'answered a request for a stream with a JSON document')
    throw await billedAnyway(provider, error, documentIn(text))
  }
  const batches = readBatches({ provider, facts: targetFacts(provider, target), bounds }, response)
  const first = await batches.next()
  if (first.done) throw cut(provider, 'ended its stream before the first event')
  const model = first.value.flatMap(({ events }) => events).find((event) => event.model)?.model
  return { kind: 'stream', batches: startingWith(first, batches), model }
}

/** The same iteration, whose first result has been read. */
function startingWith<T>(
  first: IteratorResult<T, void>,
  rest: AsyncGenerator<T, void>,
): AsyncIterableIterator<T, void> {
  let isFirst = true
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next() {
      if (!isFirst) return rest.next()
      isFirst = false
      return Promise.resolve(first)
    },
    return: () => rest.return(),
  }
}

/** How the events of one answer are read. */
type Reading = { provider: Provider; facts: TargetFacts; bounds: AnswerBounds }

/** Frames that are read before others have their turn: most chunks have fewer, but one may have thousands. */
const framesPerTurn = 256

function slices(frames: readonly Frame[]): readonly (readonly Frame[])[] {
  if (frames.length <= framesPerTurn) return [frames]
  const count = Math.ceil(frames.length / framesPerTurn)
  return Array.from({ length: count }, (_, at) => frames.slice(at * framesPerTurn, (at + 1) * framesPerTurn))
}

/** Frames with their neutral events. An error in the middle is thrown after everything that was sent before it. */
async function* readBatches(reading: Reading, response: HttpResponse): AsyncGenerator<StreamFrame[], void> {
  const { provider, bounds } = reading
  const { format } = chatEndpoint(provider).stream
  const frames = await streamFormats[format].open(bounds.eventBytes)
  const bytes = response.bytes[Symbol.asyncIterator]()
  let begun = false
  let sinceTurn = 0
  try {
    for (let next = await bytes.next(); ; next = await bytes.next()) {
      for (const some of slices(next.done ? frames.end() : frames.take(next.value))) {
        sinceTurn += some.length
        if (sinceTurn > framesPerTurn) {
          sinceTurn = 0
          await setImmediate()
        }
        const { batch, failure, done } = await readBatch(reading, some)
        begun ||= batch.length > 0
        // An end marker alone is no answer.
        if (done && begun) batch.push(endMarker)
        if (batch.length > 0) yield batch
        if (failure) throw failure
        if (done) return await drain(bytes, response)
      }
      if (frames.failure) throw brokenFrames(provider, format, frames.failure)
      if (next.done) return
    }
  } finally {
    await bytes.return?.()
  }
}

function brokenFrames(provider: Provider, format: StreamFormat, { kind, message }: FrameError): RouterError {
  if (kind === 'cut') return cut(provider, `broke off: ${redact(provider, message)}`)
  if (kind === 'long') return unreadable(provider, `sent ${message}, the answers.event_limit of this server`)
  return unreadable(provider, `sent a stream that is not ${format}: ${message}`)
}

const endMarker: StreamFrame = { events: [{ done: true }] }

type Batch = { batch: StreamFrame[]; failure?: RouterError; done: boolean }

async function readBatch(reading: Reading, frames: readonly Frame[]): Promise<Batch> {
  const { done: end } = chatEndpoint(reading.provider).stream
  const batch: StreamFrame[] = []
  try {
    for (const frame of frames) {
      if (end !== undefined && frame.data === end) return { batch, done: true }
      const read = readMappedFrame(reading, frame)
      batch.push(read instanceof Promise ? await read : read)
    }
    return { batch, done: false }
  } catch (thrown) {
    return { batch, failure: asRouterError(thrown), done: false }
  }
}

/** Reads to the end of the response, so that its connection can be used again; one that stays open is closed. */
async function drain(bytes: AsyncIterator<Uint8Array>, response: HttpResponse): Promise<void> {
  const timer = setTimeout(() => response.discard(), drainMs)
  try {
    for (let read = await bytes.next(); !read.done; read = await bytes.next());
  } catch {
    // The reply is complete: how its connection ends does not matter.
  } finally {
    clearTimeout(timer)
  }
}

function readMappedFrame({ provider, facts, bounds }: Reading, frame: Frame): ReadFrame | Promise<ReadFrame> {
  const { eventField, data } = chatEndpoint(provider).stream
  const payload = data === 'text' ? frame.data : parseObject(provider, frame.data, bounds)
  const name = eventField === undefined || typeof payload === 'string' ? undefined : payload[eventField]
  const read = readFrame(provider, typeof name === 'string' ? name : frame.event, payload, facts)
  return read instanceof Promise ? read.then((known) => throwIfError(provider, known)) : throwIfError(provider, read)
}

function throwIfError(provider: Provider, read: ReadFrame): ReadFrame {
  for (const { error } of read.events) if (error) throw withBilled(reportedFailure(provider, error), usageOf(read))
  return read
}

/** A document that is refused anyway; empty when it cannot be read. */
function documentIn(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

function usageOf({ events }: ReadFrame): Usage {
  return events.reduce<Usage>((sum, { usage }) => (usage ? mergeUsage(sum, usage) : sum), {})
}

/** Throws RouterError for a text that is no object, or exceeds the bounds. */
function parseObject(provider: Provider, text: string, bounds: AnswerBounds): JsonObject {
  const excess = excessOf(text, bounds)
  if (excess) throw unreadable(provider, excess)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unreadable(provider, `sent something that is not JSON: ${excerpt(provider, text)}`)
  }
  if (!isObject(value)) throw unreadable(provider, `sent JSON that is not an object: ${excerpt(provider, text)}`)
  return value
}

/** The beginning of a text, without secrets. */
function excerpt(provider: Provider, text: string): string {
  return redact(provider, text.slice(0, 2_000)).slice(0, 200)
}

function unreadable(provider: Provider, what: string): RouterError {
  return new RouterError('provider_unreadable', redact(provider, `The provider ${what}`), { provider: provider.slug })
}

function cut(provider: Provider, what: string): RouterError {
  return new RouterError('provider_cut', `The provider ${what}.`, { provider: provider.slug })
}
