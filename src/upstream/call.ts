import { RouterError } from '../core/errors.ts'
import type { FoldFacts } from '../core/fold.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { Reply } from '../core/reply.ts'
import type { TargetFacts } from '../core/request.ts'
import type { ChatEndpoint, Provider } from '../manifest/provider.ts'
import type { Target } from '../manifest/target.ts'
import { type ReadFrame, readFrame, readReply, targetFacts } from '../manifest/translate.ts'
import { type Frame, FrameError } from '../wire/frame.ts'
import { framesOf, type StreamFormat, streamFormats } from '../wire/frames.ts'
import type { Door, Incoming } from './http-client.ts'
import { type PassedHeader, post, textOf } from './post.ts'
import { refusal, reportedFailure } from './provider-error.ts'
import { redact } from './secrets.ts'

/** A provider's answer: a whole reply, or a stream whose first event has come. */
export type Answer =
  | { kind: 'whole'; body: JsonObject; reply: Reply }
  | { kind: 'stream'; batches: AsyncIterable<ReadFrame[]> }

/** How long a stream that said it is done may keep its connection before we hang up. Milliseconds. */
const farewellMs = 50

/** Sends one body to a target and waits for the reply or its first event. Throws RouterError. */
export async function exchange(
  target: Target,
  outgoing: {
    body: JsonObject
    stream: boolean
    signal: AbortSignal
    fold: FoldFacts
    passed?: readonly PassedHeader[]
  },
  door: Door,
): Promise<Answer> {
  const { provider } = target
  const endpoint = provider.chat as ChatEndpoint
  const { stream, fold, ...rest } = outgoing
  const path = stream ? endpoint.stream.path : endpoint.path
  const accept = stream ? streamFormats[endpoint.stream.format].mediaType : 'application/json'
  const incoming = await post(target, { ...rest, path, accept }, door)
  return stream ? await readStream(target, incoming) : await readWhole(target, incoming, fold)
}

/** Sends one body to a path of a target and waits for its JSON. Throws RouterError. */
export async function askJson(
  target: Target,
  outgoing: { path: string; body: JsonObject; signal: AbortSignal; passed?: readonly PassedHeader[] },
  door: Door,
): Promise<JsonObject> {
  const incoming = await post(target, { ...outgoing, accept: 'application/json' }, door)
  return parseObject(target.provider, await textOf(target.provider, incoming))
}

async function readWhole(target: Target, incoming: Incoming, fold: FoldFacts): Promise<Answer> {
  const { provider } = target
  const text = await textOf(provider, incoming)
  const { body, reply, error } = await readReply(
    provider,
    parseObject(provider, text),
    fold,
    targetFacts(provider, target),
  )
  if (error) throw reportedFailure(provider, error)
  if (reply.finish === 'error')
    throw unreadable(provider, `sent a reply that does not say how it ended: ${redact(provider, text).slice(0, 200)}`)
  return { kind: 'whole', body, reply }
}

/** Formats that may well be sent as `application/json`; a failure inside is an event like others. */
const streamsAsJson: ReadonlySet<StreamFormat> = new Set(['ndjson', 'json-array'])

async function readStream(target: Target, incoming: Incoming): Promise<Answer> {
  const { provider } = target
  const { format } = (provider.chat as ChatEndpoint).stream
  const type = String(incoming.headers['content-type'] ?? '')
  if (!streamsAsJson.has(format) && type.startsWith('application/json')) {
    const text = await textOf(provider, incoming)
    if (/"error"|^\s*\{\s*"message"/.test(text))
      throw refusal(provider, { status: 502, headers: incoming.headers, text })
    throw unreadable(provider, 'answered a request for a stream with a JSON document')
  }
  const batches = readBatches(provider, targetFacts(provider, target), incoming)
  const first = await batches.next()
  if (first.done) throw cut(provider, 'ended its stream before the first event')
  return { kind: 'stream', batches: startingWith(first.value, batches) }
}

async function* startingWith<T>(first: T, rest: AsyncGenerator<T, void>): AsyncGenerator<T, void> {
  try {
    yield first
    yield* rest
  } finally {
    await rest.return()
  }
}

/** Frames with their meaning; a failure in the middle comes after everything that was said before it. */
async function* readBatches(
  provider: Provider,
  facts: TargetFacts,
  incoming: Incoming,
): AsyncGenerator<ReadFrame[], void> {
  const { stream } = provider.chat as ChatEndpoint
  const frames = framesOf(stream.format, incoming.bytes)
  try {
    for await (const read of frames) {
      const { batch, failure, done } = await readBatch(provider, facts, read)
      if (batch.length > 0) yield batch
      if (failure) throw failure
      if (done) return await farewell(frames, incoming)
    }
  } catch (error) {
    if (!(error instanceof FrameError)) throw error
    if (error.kind === 'cut') throw cut(provider, `broke off: ${redact(provider, error.message)}`)
    throw unreadable(provider, `sent a stream that is not ${stream.format}: ${error.message}`)
  }
}

type Batch = { batch: ReadFrame[]; failure?: RouterError; done: boolean }

async function readBatch(provider: Provider, facts: TargetFacts, frames: Frame[]): Promise<Batch> {
  const end = provider.chat?.stream.done
  const batch: ReadFrame[] = []
  for (const frame of frames) {
    if (end !== undefined && frame.data === end) return { batch, done: true }
    const meaning = meaningOf(provider, facts, frame)
    const streamed = meaning instanceof Promise ? await meaning : meaning
    if (streamed instanceof RouterError) return { batch, failure: streamed, done: false }
    batch.push(streamed)
  }
  return { batch, done: false }
}

/** Reads on to the end of the connection, so that it can serve the next call; a provider that lingers is cut off. */
async function farewell(frames: AsyncGenerator<Frame[], void>, incoming: Incoming): Promise<void> {
  const timer = setTimeout(() => incoming.discard(), farewellMs)
  try {
    for (let read = await frames.next(); !read.done; read = await frames.next());
  } catch {
    // The reply is whole: how its connection ends is nobody's concern.
  } finally {
    clearTimeout(timer)
  }
}

function meaningOf(
  provider: Provider,
  facts: TargetFacts,
  frame: Frame,
): ReadFrame | RouterError | Promise<ReadFrame | RouterError> {
  const { eventField, data } = (provider.chat as ChatEndpoint).stream
  if (data === 'text') return checked(provider, readFrame(provider, frame.event, frame.data, facts))
  let payload: JsonObject
  try {
    payload = parseObject(provider, frame.data)
  } catch (error) {
    return error as RouterError
  }
  const named = eventField === undefined ? undefined : payload[eventField]
  return checked(provider, readFrame(provider, typeof named === 'string' ? named : frame.event, payload, facts))
}

function checked(provider: Provider, read: ReadFrame | Promise<ReadFrame>) {
  return read instanceof Promise ? read.then((known) => failureIn(provider, known)) : failureIn(provider, read)
}

function failureIn(provider: Provider, read: ReadFrame): ReadFrame | RouterError {
  for (const { error } of read.events) if (error) return reportedFailure(provider, error)
  return read
}

function parseObject(provider: Provider, text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw unreadable(provider, `sent something that is not JSON: ${redact(provider, text).slice(0, 200)}`)
  }
  if (!isObject(value))
    throw unreadable(provider, `sent JSON that is not an object: ${redact(provider, text).slice(0, 200)}`)
  return value
}

function unreadable(provider: Provider, what: string): RouterError {
  return new RouterError('provider_unreadable', redact(provider, `The provider ${what}`), { provider: provider.slug })
}

function cut(provider: Provider, what: string): RouterError {
  return new RouterError('provider_cut', `The provider ${what}.`, { provider: provider.slug })
}
