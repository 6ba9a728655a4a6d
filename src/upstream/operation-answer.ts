import { idsOfAnswer } from '../api/returned-ids.ts'
import { RouterError } from '../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { UploadedFile } from '../core/operation.ts'
import { mergeUsage, type Usage } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import { reportedFailureOf } from '../manifest/run/read-reply.ts'
import {
  type OperationContext,
  type OperationEvent,
  readOperationEvent,
  readOperationReply,
  type WrittenOperation,
} from '../manifest/run/translate-operation.ts'
import type { Target } from '../manifest/target.ts'
import { isLong, yieldToEventLoop } from '../runtime/event-loop.ts'
import type { Frame } from '../wire/frame.ts'
import { streamFormats } from '../wire/frames.ts'
import { type AnswerBounds, cut, parseObject, unreadable, withBilled } from './answer-body.ts'
import type { HttpClient, HttpResponse } from './http/types.ts'
import { type JobOptions, resultOf } from './job.ts'
import { openedAnswer } from './opened-answer.ts'
import {
  bytesBody,
  formBody,
  jsonBody,
  type MultipartEntry,
  multipartBody,
  type OutgoingBody,
  withFiles,
} from './outgoing-body.ts'
import { reportedFailure } from './provider-error.ts'
import { sendRequest, type TimingLimits, textOf } from './provider-request.ts'
import { exhaustedMs } from './rate-limit-headers.ts'
import { withUploads } from './upload.ts'

/**
 * A provider's answer to an operation: a whole reply in the client's words, or bytes or events of which the first have come.
 * `reported` is the provider's own usage object.
 */
export type OperationAnswer = (
  | { kind: 'whole'; reply: JsonObject; usage: Usage; reported: Json | undefined }
  | { kind: 'bytes'; first: Uint8Array; bytes: AsyncIterable<Uint8Array>; mediaType: string; usage: Usage }
  | { kind: 'events'; batches: AsyncIterable<OperationEvent[]>; usage?: undefined }
) & {
  /** The model that served, in the words of the provider. */
  model?: string | undefined
  /** Time for which the provider gives no more than this, in milliseconds. */
  exhaustedMs?: number | undefined
}

/** Request to send, and the maximum size of its answer. */
type OutgoingOperation = {
  written: WrittenOperation
  stream: boolean
  signal: AbortSignal
  bounds: AnswerBounds
  limits?: TimingLimits
  onSent?: () => void
  once?: boolean
  idempotencyKey?: string
  keep: KeepIds
}

/** Takes the ids by which the provider keeps what it has made, before anything of the answer that has them is sent on. */
export type KeepIds = (ids: readonly string[]) => void

/** Sends a request to the endpoint of a target, and waits for the answer or its beginning. Throws RouterError. */
export async function requestOperation(
  target: Target,
  context: OperationContext,
  { written, stream, ...outgoing }: OutgoingOperation,
  httpClient: HttpClient,
): Promise<OperationAnswer> {
  const { endpoint } = context
  const streamed = stream || endpoint.answer === 'events' ? endpoint.stream : undefined
  const path = withFields(streamed?.path ?? endpoint.path, context.request.fields)
  const accept = acceptOf(context, streamed !== undefined)
  const { signal, onSent, limits, once, idempotencyKey } = outgoing
  const timing = { ...limits, stream: streamed !== undefined || endpoint.answer === 'bytes' }
  const { upload } = endpoint
  const named = upload
    ? await withUploads(
        target,
        upload,
        { body: written.body, files: context.request.files },
        { ...outgoing, httpClient },
      )
    : written.body
  const body = outgoingBody(context, named)
  const sent = { path, query: written.query, accept, body, signal, timing, onSent, once, idempotencyKey }
  const response = await sendRequest(target, sent, httpClient)
  const answer = await readAnswer(context, response, {
    target,
    streamed: streamed !== undefined,
    httpClient,
    ...outgoing,
  })
  const exhausted = exhaustedMs(target.provider, response)
  return exhausted === undefined ? answer : { ...answer, exhaustedMs: exhausted }
}

async function readAnswer(
  context: OperationContext,
  response: HttpResponse,
  { streamed, ...outgoing }: JobOptions & { target: Target; streamed: boolean; keep: KeepIds },
): Promise<OperationAnswer> {
  const { endpoint } = context
  if (streamed && !isOfType(response, /^(application\/json\b|audio\/)/i)) {
    return await readEvents(context, response, outgoing)
  }
  const isBytes = endpoint.answer === 'bytes' || isOfType(response, /^audio\//i)
  if (isBytes) return await readBytes(context, response, outgoing)
  return await readJson(context, response, outgoing)
}

/** Checks the media type of a response: some models have no events, whatever they are asked for. */
function isOfType({ headers }: HttpResponse, type: RegExp): boolean {
  return type.test(String(headers['content-type'] ?? ''))
}

function acceptOf({ endpoint }: OperationContext, stream: boolean): string {
  if (stream && endpoint.stream) return streamFormats[endpoint.stream.format].mediaType
  return endpoint.answer === 'bytes' ? '*/*' : 'application/json'
}

async function readJson(
  context: OperationContext,
  response: HttpResponse,
  { target, bounds, keep, ...options }: JobOptions & { target: Target; keep: KeepIds },
): Promise<OperationAnswer> {
  const { provider, endpoint } = context
  const text = await textOf(provider, response, bounds.bytes)
  if (isLong(text.length)) await yieldToEventLoop()
  const first = parseObject(provider, text, bounds)
  const answer = endpoint.job ? await resultOf(target, endpoint.job, first, { bounds, ...options }) : first
  return await wholeOf(context, answer, { headers: headersOf(response), keep })
}

/** Returns a whole answer in the client's words. Throws RouterError for one that reports a failure. */
async function wholeOf(
  context: OperationContext,
  answer: JsonObject,
  { headers, keep }: { headers: JsonObject; keep: KeepIds },
): Promise<OperationAnswer> {
  keep(idsOfAnswer(context.request.operation, answer))
  const read = await readOperationReply(context, answer, headers)
  const failure = isObject(read.reply.error) ? reportedFailureOf(read.reply.error) : undefined
  if (failure) throw withBilled(reportedFailure(context.provider, failure), read.usage, answer.model)
  const { model } = answer
  return { kind: 'whole', ...read, ...(typeof model === 'string' && { model }) }
}

/** Reads bytes as they arrive; those that a mapping reads are gathered first. */
async function readBytes(
  context: OperationContext,
  response: HttpResponse,
  { bounds, keep }: { bounds: AnswerBounds; keep: KeepIds },
): Promise<OperationAnswer> {
  const mediaType = String(response.headers['content-type'] ?? 'application/octet-stream')
  const headers = headersOf(response)
  if (!context.endpoint.reply) {
    try {
      if (/^(application\/json|text\/)/i.test(mediaType))
        throw unreadable(context.provider, `sent ${mediaType} instead`)
      const { usage } = await readOperationReply(context, {}, headers)
      const rest = upTo(context.provider, response.bytes, bounds.bytes)
      const first = await rest.next()
      if (first.done) throw unreadable(context.provider, 'sent an empty answer')
      return { kind: 'bytes', first: first.value, bytes: openedAnswer(first.value, rest, response), mediaType, usage }
    } catch (thrown) {
      response.discard()
      throw thrown
    }
  }
  const chunks: Uint8Array[] = []
  for await (const chunk of upTo(context.provider, response.bytes, bounds.bytes)) chunks.push(chunk)
  const read = { base64: Buffer.concat(chunks).toString('base64'), media_type: mediaType }
  return await wholeOf(context, read, { headers, keep })
}

/** Yields bytes as they arrive. Throws RouterError when they are too many. */
async function* upTo(
  provider: Provider,
  bytes: AsyncIterable<Uint8Array>,
  most: number,
): AsyncGenerator<Uint8Array, void> {
  let length = 0
  for await (const chunk of bytes) {
    length += chunk.length
    if (length > most) throw unreadable(provider, `sent more than ${most} bytes`)
    yield chunk
  }
}

/** Waits for the first event, so that a failure before it can be another target's turn. */
async function readEvents(
  context: OperationContext,
  response: HttpResponse,
  reading: EventReading,
): Promise<OperationAnswer> {
  const batches = readBatches(context, response, reading)
  const first = await batches.next()
  if (first.done) throw cut(context.provider, 'ended its stream before the first event')
  const model = first.value.map(({ event }) => event?.model).find((name) => typeof name === 'string')
  return {
    kind: 'events',
    batches: openedAnswer(first.value, batches, response),
    ...(model !== undefined && { model }),
  }
}

type EventReading = { bounds: AnswerBounds; keep: KeepIds }

async function* readBatches(
  context: OperationContext,
  response: HttpResponse,
  { bounds, keep }: EventReading,
): AsyncGenerator<OperationEvent[], void> {
  const { provider } = context
  const { format = 'sse', done } = context.endpoint.stream ?? {}
  const frames = await streamFormats[format].open(bounds.eventBytes)
  const bytes = response.bytes[Symbol.asyncIterator]()
  let length = 0
  try {
    for (let next = await bytes.next(); ; next = await bytes.next()) {
      length += next.value?.length ?? 0
      if (length > bounds.bytes) throw unreadable(provider, `sent a stream of more than ${bounds.bytes} bytes`)
      const received = next.done ? frames.end() : frames.take(next.value)
      const { events, isDone, failure } = await readFrames(context, received, { done, bounds, keep })
      if (events.length > 0) yield events
      if (failure !== undefined) throw failure
      if (isDone) return
      const broken = frames.failure()
      if (broken) throw unreadable(provider, `sent a stream that is not ${format}: ${broken.message}`)
      if (next.done) return
    }
  } finally {
    await bytes.return?.()
  }
}

/** Returns the events that came together: those before a failure are not lost. */
async function readFrames(
  context: OperationContext,
  frames: Iterable<Frame>,
  { done, ...reading }: EventReading & { done: string | undefined },
): Promise<{ events: OperationEvent[]; isDone: boolean; failure?: unknown }> {
  const events: OperationEvent[] = []
  try {
    for (const frame of frames) {
      if (done !== undefined && frame.data === done) return { events, isDone: true }
      events.push(...(await readFrame(context, frame, reading)))
    }
    return { events, isDone: false }
  } catch (failure) {
    return { events, isDone: false, failure }
  }
}

async function readFrame(
  context: OperationContext,
  frame: Frame,
  { bounds, keep }: EventReading,
): Promise<OperationEvent[]> {
  const { provider, endpoint } = context
  const data = parseObject(provider, frame.data, bounds)
  keep(idsOfAnswer(context.request.operation, data))
  const field = endpoint.stream?.eventField
  const named = field === undefined ? frame.event : data[field]
  const { events, failure } = await readOperationEvent(context, typeof named === 'string' ? named : undefined, data)
  if (!failure) return events
  const usage = events.reduce<Usage>((sum, one) => mergeUsage(sum, one.usage ?? {}), {})
  throw withBilled(reportedFailure(provider, failure), usage, data.model)
}

function headersOf({ headers }: HttpResponse): JsonObject {
  const texts = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value])
  return isObject(headers) ? (Object.fromEntries(texts) as JsonObject) : {}
}

/** Returns a body in the form that an endpoint takes, with the files that stand in it. Throws RouterError. */
function outgoingBody(context: OperationContext, body: JsonObject): JsonObject | OutgoingBody {
  const { endpoint, request, provider } = context
  const { files } = request
  switch (endpoint.body) {
    case 'json':
      return files.length > 0 ? jsonBody(body, files) : body
    case 'multipart':
      return multipartBody(entriesOf(body).map(([name, value]) => entryOf(name, value, files)))
    case 'multipart_or_json': {
      const hasFiles = entriesOf(body).some(([, value]) => fileIn(value, files))
      return outgoingBody({ ...context, endpoint: { ...endpoint, body: hasFiles ? 'multipart' : 'json' } }, body)
    }
    case 'form':
      return formBody(entriesOf(body).map(([name, value]) => [name, textOfValue(value)]))
    case 'bytes': {
      const file = Object.values(body)
        .map((value) => fileIn(value, files))
        .find((found) => found)
      if (file) return bytesBody(file)
      const message = `The request could not be translated for ${provider.slug}: it has no file to send.`
      throw new RouterError('invalid_request', message, { param: 'file' })
    }
  }
}

/** Returns the fields of a form; a list is several of the name that OpenAI's forms have for lists, unless the name says it already. */
function entriesOf(body: JsonObject): [name: string, value: Json][] {
  return Object.entries(body).flatMap(([name, value]): [string, Json][] => {
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) return [[name, value]]
    const repeated = name.endsWith('[]') ? name : `${name}[]`
    return value.map((item) => [repeated, item])
  })
}

function entryOf(name: string, value: Json, files: readonly UploadedFile[]): MultipartEntry {
  const file = fileIn(value, files)
  if (!file) {
    const pieces = typeof value === 'object' && value !== null && files.length > 0 ? withFiles(value, files) : []
    return pieces.length > 1 ? { name, pieces } : { name, value: textOfValue(value) }
  }
  const { filename, mediaType, size } = file
  return { name, filename: filename || 'file', mediaType, size, read: () => file.read() }
}

/** Returns the file that a value stands for. */
function fileIn(value: Json | undefined, files: readonly UploadedFile[]): UploadedFile | undefined {
  return isObject(value) && typeof value.$file === 'number' ? files[value.$file] : undefined
}

function textOfValue(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/**
 * Returns a path in which `{name}` stands for a field of the client, as one segment: a text, a number, or the `id` of an object. `{model}`
 * and `{+model}` stay. Throws RouterError 400 for a field that is missing, or would lead to another path.
 */
function withFields(path: string, fields: JsonObject): string {
  return path.replaceAll(/\{(?!\+?model\})(\w+)\}/g, (_, name: string) => {
    const text = segmentOf(fields[name])
    if (text !== undefined && !/^\.{0,2}$/.test(text)) return encodeURIComponent(text.toWellFormed())
    const message = `'${name}' must be a name that can be part of an address.`
    throw new RouterError('invalid_request', message, { param: name })
  })
}

function segmentOf(value: Json | undefined): string | undefined {
  if (isObject(value)) return segmentOf(value.id)
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}
