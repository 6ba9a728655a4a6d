import { setImmediate } from 'node:timers/promises'
import { asRouterError, type RouterError } from '../core/errors.ts'
import { hasContent, type ProviderEvent } from '../core/events.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { TargetFacts } from '../core/request.ts'
import { mergeUsage, type Usage } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import { chatEndpoint } from '../manifest/run-mapping.ts'
import type { Target } from '../manifest/target.ts'
import { targetFacts } from '../manifest/target-facts.ts'
import { type ReadFrame, readFrame } from '../manifest/translate.ts'
import type { Frame, FrameError } from '../wire/frame.ts'
import { type StreamFormat, streamFormats } from '../wire/frames.ts'
import type { AnswerBounds } from './answer-bounds.ts'
import { billedAnyway, cut, parseObject, unreadable, withBilled } from './answer-json.ts'
import type { HttpResponse } from './http-client.ts'
import { readErrorResponse, reportedFailure } from './provider-error.ts'
import { errorText } from './provider-request.ts'
import { redact } from './secrets.ts'
import { type TextPattern, TextPatterns } from './text-pattern.ts'

/** Frames as they arrive from the network, several at a time; the model as the first of them name it. */
export type StreamedAnswer = { kind: 'stream'; batches: AsyncIterable<StreamFrame[]>; model?: string | undefined }

/** One frame of a stream; the declared end marker has no payload. Frames of one pattern differ in their text alone. */
export type StreamFrame = {
  readonly events: readonly ProviderEvent[]
  readonly payload?: JsonObject
  readonly pattern?: TextPattern
}

/** How long a stream that has reached its end marker may keep its connection open before it is closed. Milliseconds. */
const drainMs = 50

/** Formats that providers also send as `application/json`; an error inside is an event like any other. */
const streamsAsJson: ReadonlySet<StreamFormat> = new Set(['ndjson', 'json-array'])

/** Waits for the first content of a stream. Throws RouterError. */
export async function readStream(
  target: Target,
  response: HttpResponse,
  bounds: AnswerBounds,
): Promise<StreamedAnswer> {
  const { provider } = target
  const { format, data, text: path } = chatEndpoint(provider).stream
  const type = String(response.headers['content-type'] ?? '')
  if (!streamsAsJson.has(format) && type.startsWith('application/json')) {
    const text = await errorText(response)
    if (/"error"|^\s*\{\s*"message"/.test(text))
      throw await readErrorResponse(provider, { status: 502, headers: response.headers, text })
    const error = unreadable(provider, 'answered a request for a stream with a JSON document')
    throw await billedAnyway(provider, error, documentIn(text))
  }
  const patterns = data === 'json' && path ? new TextPatterns(path) : undefined
  const batches = readBatches({ provider, facts: targetFacts(provider, target), bounds, patterns }, response)
  const opening = await untilContent(batches)
  if (!opening) throw cut(provider, 'ended its stream before any content')
  const model = opening.flatMap(({ events }) => events).find((event) => event.model)?.model
  return { kind: 'stream', batches: startingWith(opening, batches), model }
}

/** The frames of a stream up to its first content, or to the end of an empty reply; undefined for a stream that ends before. */
async function untilContent(batches: AsyncGenerator<StreamFrame[], void>): Promise<StreamFrame[] | undefined> {
  let opening: StreamFrame[] = []
  for (let next = await batches.next(); !next.done; next = await batches.next()) {
    // What does nothing but keep the connection is not kept.
    const telling = next.value.filter(({ events }) => events.length > 0)
    opening = opening.length === 0 ? next.value : opening.concat(telling)
    if (next.value.some(({ events }) => events.some(isAnswer))) return opening
  }
  return undefined
}

/** Content, or the end of a reply that has none. */
function isAnswer(event: ProviderEvent): boolean {
  return hasContent(event) || event.finish !== undefined || event.done === true
}

/** The same iteration with this before it. */
function startingWith<T>(first: T, rest: AsyncGenerator<T, void>): AsyncIterableIterator<T, void> {
  let isFirst = true
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next() {
      if (!isFirst) return rest.next()
      isFirst = false
      return Promise.resolve({ done: false, value: first })
    },
    return: () => rest.return(),
  }
}

/** How the events of one answer are read. */
type Reading = { provider: Provider; facts: TargetFacts; bounds: AnswerBounds; patterns: TextPatterns | undefined }

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
        if (batch.some(({ events }) => events.some(hasContent))) response.progressed()
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

function readMappedFrame(
  { provider, facts, bounds, patterns }: Reading,
  frame: Frame,
): StreamFrame | Promise<StreamFrame> {
  const repeated = patterns?.read(frame)
  if (repeated) return repeated
  const { eventField, data } = chatEndpoint(provider).stream
  const payload = data === 'text' ? frame.data : parseObject(provider, frame.data, bounds)
  const name = eventField === undefined || typeof payload === 'string' ? undefined : payload[eventField]
  const read = readFrame(provider, typeof name === 'string' ? name : frame.event, payload, facts)
  if (read instanceof Promise) return read.then((known) => throwIfError(provider, known))
  throwIfError(provider, read)
  const pattern = patterns?.learn(frame, read)
  return pattern ? { ...read, pattern } : read
}

function throwIfError(provider: Provider, read: ReadFrame): ReadFrame {
  for (const { error } of read.events) if (error) throw withBilled(reportedFailure(provider, error), usageOf(read))
  return read
}

function usageOf({ events }: ReadFrame): Usage {
  return events.reduce<Usage>((sum, { usage }) => (usage ? mergeUsage(sum, usage) : sum), {})
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
