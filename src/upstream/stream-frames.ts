import { setImmediate } from 'node:timers/promises'
import { asRouterError, type RouterError } from '../core/errors.ts'
import { hasContent, isAnswer, type ProviderEvent } from '../core/events.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { TargetFacts } from '../core/request.ts'
import { completionTokens, mergeUsage, type Usage } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import { andThen, chatEndpoint } from '../manifest/run/run-mapping.ts'
import type { Snapshots } from '../manifest/run/snapshots.ts'
import { readFrame } from '../manifest/run/translate.ts'
import type { Frame, FrameError } from '../wire/frame.ts'
import { type StreamFormat, streamFormats } from '../wire/frames.ts'
import { type AnswerBounds, billedAnyway, cut, excessOf, parseObject, unreadable, withBilled } from './answer-body.ts'
import { redact } from './auth/secrets.ts'
import type { HttpResponse } from './http/types.ts'
import { reportedFailure } from './provider-error.ts'
import type { TextPattern, TextPatterns } from './text-pattern.ts'

/** One frame of a stream; the declared end marker has no payload. Frames of one pattern differ in their text alone. */
export type StreamFrame = {
  readonly events: readonly ProviderEvent[]
  readonly payload?: JsonObject
  readonly pattern?: TextPattern
  /** Set where the provider sent bytes that are not JSON, in the middle of a text. */
  readonly damaged?: true
}

/** Time for which a stream that has reached its end marker may keep its connection open before it is closed. Milliseconds. */
const drainMs = 50
/** Time for which counts and end marker are waited for after a finish reason, where no usage is hidden. Milliseconds. */
const lingerMs = 2_000

/**
 * Way of reading the events of one answer; `choices` is the number of those that are streamed side by side. `usageWaitMs`: how long the
 * counts of an answer that hides usage are waited for after its finish reason.
 */
export type Reading = {
  provider: Provider
  facts: TargetFacts
  bounds: AnswerBounds
  patterns: TextPatterns | undefined
  choices: number
  usageWaitMs?: number | undefined
  /** Set where events repeat the whole text so far. */
  snapshots?: Snapshots | undefined
}

/** Number of frames that are read before the event loop is yielded: most chunks have fewer, but one may have thousands. */
const framesPerYield = 256

function slices(frames: readonly Frame[]): readonly (readonly Frame[])[] {
  if (frames.length <= framesPerYield) return [frames]
  const count = Math.ceil(frames.length / framesPerYield)
  return Array.from({ length: count }, (_, at) => frames.slice(at * framesPerYield, (at + 1) * framesPerYield))
}

/** Number of events that are given on at once: an event that repeats a whole reply stands for as many as that has parts. */
const eventsPerYield = 1_000

/** Divides frames among batches of few events. The payload of a frame comes with the last of its events. */
function withFewEvents(batch: StreamFrame[]): StreamFrame[][] {
  if (batch.length === 0) return []
  if (batch.every(({ events }) => events.length <= eventsPerYield)) return [batch]
  return batch.flatMap((frame) => {
    const { events, ...rest } = frame
    const count = Math.max(1, Math.ceil(events.length / eventsPerYield))
    return Array.from({ length: count }, (_, at) => {
      const some = events.slice(at * eventsPerYield, (at + 1) * eventsPerYield)
      return [at === count - 1 ? { ...rest, events: some } : { events: some }]
    })
  })
}

/**
 * Yields frames with their neutral events. An error in the middle is thrown after everything that was sent before it. How a stream ends
 * after its finish reason is nobody's concern, unless the provider itself calls it an error.
 */
export async function* readBatches(reading: Reading, response: HttpResponse): AsyncGenerator<StreamFrame[], void> {
  const { provider, bounds } = reading
  const { format } = chatEndpoint(provider).stream
  const progress = new Progress(reading, response)
  const frames = await streamFormats[format].open(bounds.eventBytes)
  const bytes = response.bytes[Symbol.asyncIterator]()
  let begun = false
  let sinceTurn = 0
  try {
    for (let next = await bytes.next(); ; next = await bytes.next()) {
      for (const some of slices(next.done ? frames.end() : frames.take(next.value))) {
        sinceTurn += some.length
        if (sinceTurn > framesPerYield) {
          sinceTurn = 0
          await setImmediate()
        }
        const { batch, failure, done } = await readBatch(reading, some, progress)
        begun ||= batch.length > 0
        // An end marker alone is not an answer.
        if (done && begun) batch.push(endMarker)
        for (const [index, few] of withFewEvents(batch).entries()) {
          if (index > 0) await setImmediate()
          yield few
        }
        if (failure) throw failure
        if (done) return await drain(bytes, response)
      }
      const broken = frames.failure()
      if (broken) throw brokenFrames(provider, format, broken)
      if (next.done) return
    }
  } catch (thrown) {
    if (!progress.isEnding || progress.isReported || isOurs(asRouterError(thrown))) throw thrown
  } finally {
    progress.end()
    await bytes.return?.()
  }
}

/** Checks whether it is the end of the call, not of the answer. */
function isOurs({ code }: RouterError): boolean {
  return code === 'client_gone' || code === 'stopping'
}

/** Progress of a stream. */
class Progress {
  readonly #reading: Reading
  readonly #response: HttpResponse
  #ending: NodeJS.Timeout | undefined
  /** Set while the counts are waited for that follow the finish reason. */
  #isUncounted = false
  /** Choices that have ended, where there are several. */
  #finished: Set<unknown> | undefined
  /** The last content was text. */
  #isText = false
  #isDamaged = false
  /** Size of the part before the first content, which is all held back. */
  #held = 0
  #hasAnswered = false
  /** The provider has reported an error. */
  isReported = false

  constructor(reading: Reading, response: HttpResponse) {
    this.#reading = reading
    this.#response = response
  }

  /** Checks whether the reply has ended, and only its counts and its end marker may follow. */
  get isEnding(): boolean {
    return this.#ending !== undefined
  }

  /** Throws RouterError when more is held back than an answer may have; `length` is that of the frame. */
  take({ events, payload }: StreamFrame, length: number): void {
    if (!this.#hasAnswered) this.#buffer(events, length)
    if (this.#reading.choices > 1) this.#takeChoices(payload)
    else this.#takeEvents(events)
    if (this.isEnding && this.#isUncounted) this.#takeCounts(events)
  }

  /** Checks whether a frame that cannot be read may be skipped: once, in the middle of a text. */
  mayPassOver(): boolean {
    if (this.#isDamaged || !this.#isText || this.isEnding) return false
    this.#isDamaged = true
    return true
  }

  end(): void {
    clearTimeout(this.#ending)
  }

  #buffer(events: readonly ProviderEvent[], length: number): void {
    const { provider, bounds } = this.#reading
    this.#hasAnswered = events.some(isAnswer)
    this.#held += frameBytes + length
    if (this.#hasAnswered || this.#held <= bounds.bytes) return
    const most = `${bounds.bytes} bytes before any content, the answers.body_limit of this server`
    throw unreadable(provider, `sent more than ${most}`)
  }

  #takeEvents(events: readonly ProviderEvent[]): void {
    let hasEnded = false
    for (const event of events) {
      hasEnded ||= event.finish !== undefined && event.finish !== 'error'
      if (!hasContent(event)) continue
      this.#isText = Boolean(event.text)
      this.#response.progressed()
      clearTimeout(this.#ending)
      this.#ending = undefined
    }
    // Content that arrives together with the finish reason comes before it.
    if (hasEnded) this.#beginEnding()
  }

  /** Follows the ends of several choices: the mapping reads the first of several choices only, which one format alone has. */
  #takeChoices(payload: JsonObject | undefined): void {
    this.#response.progressed()
    const choices = Array.isArray(payload?.choices) ? payload.choices.filter(isObject) : []
    this.#finished ??= new Set()
    for (const { index, finish_reason } of choices) if ((finish_reason ?? null) !== null) this.#finished.add(index)
    if (this.#finished.size >= this.#reading.choices) this.#beginEnding()
  }

  #beginEnding(): void {
    if (this.#ending) return
    const { usageWaitMs = 0 } = this.#reading
    this.#isUncounted = usageWaitMs > lingerMs
    this.#endWithin(Math.max(usageWaitMs, lingerMs))
  }

  #takeCounts(events: readonly ProviderEvent[]): void {
    if (completionTokens(usageOf(events)) === 0) return
    this.#isUncounted = false
    this.#endWithin(lingerMs)
  }

  #endWithin(ms: number): void {
    clearTimeout(this.#ending)
    this.#ending = setTimeout(() => this.#response.discard(), ms)
  }
}

/** Approximate size of a frame besides its text. */
const frameBytes = 500

function brokenFrames(provider: Provider, format: StreamFormat, { kind, message }: FrameError): RouterError {
  if (kind === 'cut') return cut(provider, `broke off: ${redact(provider, message)}`)
  if (kind === 'long') return unreadable(provider, `sent ${message}, the answers.event_limit of this server`)
  return unreadable(provider, `sent a stream that is not ${format}: ${message}`)
}

const endMarker: StreamFrame = { events: [{ done: true }] }

type Batch = { batch: StreamFrame[]; failure?: RouterError; done: boolean }

async function readBatch(reading: Reading, frames: readonly Frame[], progress: Progress): Promise<Batch> {
  const { done: end } = chatEndpoint(reading.provider).stream
  const batch: StreamFrame[] = []
  try {
    for (const frame of frames) {
      if (end !== undefined && frame.data === end) return { batch, done: true }
      const read = readOrPassOver(reading, frame, progress)
      const known = read instanceof Promise ? await read : read
      const failure = known.pattern ? undefined : errorIn(reading.provider, known)
      if (failure) {
        progress.isReported = true
        const { payload } = known
        return {
          batch,
          failure: payload ? await billedAnyway(reading.provider, failure, payload) : failure,
          done: false,
        }
      }
      progress.take(known, frame.data.length)
      batch.push(known)
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

function readOrPassOver(reading: Reading, frame: Frame, progress: Progress): StreamFrame | Promise<StreamFrame> {
  try {
    return readMappedFrame(reading, frame)
  } catch (thrown) {
    const isText = chatEndpoint(reading.provider).stream.data === 'text'
    if (isText || isReadable(frame.data, reading.bounds) || !progress.mayPassOver()) throw thrown
    return damaged
  }
}

const damaged: StreamFrame = { events: [], damaged: true }

/** Checks whether a text is JSON, or too much to find out. */
function isReadable(text: string, bounds: AnswerBounds): boolean {
  if (excessOf(text, bounds)) return true
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function readMappedFrame(
  { provider, facts, bounds, patterns, snapshots }: Reading,
  frame: Frame,
): StreamFrame | Promise<StreamFrame> {
  const repeated = patterns?.read(frame)
  if (repeated) return repeated
  const { eventField, data } = chatEndpoint(provider).stream
  const payload = data === 'text' ? frame.data : parseObject(provider, frame.data, bounds)
  const name = eventField === undefined || typeof payload === 'string' ? undefined : payload[eventField]
  const read = readFrame(provider, typeof name === 'string' ? name : frame.event, payload, facts)
  if (snapshots) return andThen(read, (whole) => ({ ...whole, events: snapshots.take(whole.events) }))
  if (read instanceof Promise) return read
  const pattern = patterns?.learn(frame, read)
  return pattern ? { ...read, pattern } : read
}

function errorIn(provider: Provider, { events }: StreamFrame): RouterError | undefined {
  for (const { error } of events) if (error) return withBilled(reportedFailure(provider, error), usageOf(events))
  return undefined
}

/** Returns the usage that the events of one stream have counted. */
export function usageOf(events: readonly ProviderEvent[]): Usage {
  return events.reduce<Usage>((sum, { usage }) => (usage ? mergeUsage(sum, usage) : sum), {})
}
