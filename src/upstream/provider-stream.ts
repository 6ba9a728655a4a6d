import { randomUUID } from 'node:crypto'
import { asRouterError } from '../core/errors.ts'
import { isAnswer } from '../core/events.ts'
import type { FoldFacts } from '../core/fold.ts'
import { eventsOf } from '../core/reply-events.ts'
import { mergeUsage } from '../core/usage.ts'
import type { Provider } from '../manifest/provider.ts'
import { readReply } from '../manifest/run/read-reply.ts'
import { chatEndpoint } from '../manifest/run/run-mapping.ts'
import { Snapshots } from '../manifest/run/snapshots.ts'
import { type Target, targetFacts } from '../manifest/target.ts'
import { yieldEach } from '../runtime/event-loop.ts'
import type { StreamFormat } from '../wire/frames.ts'
import { type AnswerBounds, billedAnyway, cut, parseObject, unreadable, withBilled } from './answer-body.ts'
import type { HttpResponse } from './http/types.ts'
import { openedAnswer } from './opened-answer.ts'
import { readErrorResponse, reportedFailure } from './provider-error.ts'
import { textOf } from './provider-request.ts'
import { type Reading, readBatches, type StreamFrame, usageOf } from './stream-frames.ts'
import { TextPatterns } from './text-pattern.ts'

/**
 * Frames as they arrive from the network, several at a time; the model as the first of them name it. Those of a `document` are
 * events without payloads.
 */
export type StreamedAnswer = {
  kind: 'stream'
  batches: AsyncIterable<StreamFrame[]>
  model?: string | undefined
  document?: true
}

/** Formats that providers also send as `application/json`; an error inside is an event like any other. */
const streamsAsJson: ReadonlySet<StreamFormat> = new Set(['ndjson', 'json-array'])

/** Waits for the first content of a stream of so many choices. Throws RouterError. */
export async function readStream(
  target: Target,
  response: HttpResponse,
  { bounds, choices = 1, usageWaitMs }: Pick<Reading, 'bounds' | 'usageWaitMs'> & { choices?: number },
): Promise<StreamedAnswer> {
  const { provider } = target
  const { format, data, text: path, cumulative } = chatEndpoint(provider).stream
  const type = String(response.headers['content-type'] ?? '')
  if (!streamsAsJson.has(format) && type.startsWith('application/json')) {
    const { isDocument, bytes } = await peek(response)
    const whole = { ...response, bytes }
    if (isDocument) return await readDocument(target, whole, bounds)
    return await readStream(target, { ...whole, headers: {} }, { bounds, choices, usageWaitMs })
  }
  const patterns = data === 'json' && path ? new TextPatterns(path) : undefined
  const snapshots = cumulative ? new Snapshots(provider.slug, bounds.bytes) : undefined
  const facts = targetFacts(provider, target)
  const batches = readBatches({ provider, facts, bounds, patterns, choices, usageWaitMs, snapshots }, response)
  const opening = await untilContent(batches, provider)
  const model = opening.flatMap(({ events }) => events).find((event) => event.model)?.model
  return { kind: 'stream', batches: openedAnswer(opening, batches, response), model }
}

/** Checks whether a body labelled as JSON is JSON: some providers label their streams so. */
async function peek({
  bytes,
}: HttpResponse): Promise<{ isDocument: boolean; bytes: AsyncGenerator<Uint8Array, void> }> {
  const reader = bytes[Symbol.asyncIterator]()
  const read: Uint8Array[] = []
  let begin = ''
  while (begin === '') {
    const next = await reader.next()
    if (next.done) break
    read.push(next.value)
    begin = Buffer.concat(read).toString('utf8').trimStart()
  }
  return { isDocument: begin === '' || begin.startsWith('{') || begin.startsWith('['), bytes: whole(read, reader) }
}

/** Yields the part that was read, and the rest. */
async function* whole(
  read: readonly Uint8Array[],
  reader: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* read
    for (let next = await reader.next(); !next.done; next = await reader.next()) yield next.value
  } finally {
    await reader.return?.()
  }
}

/** Returns a whole answer in place of a stream, as the events of one. Throws RouterError for one that is an error. */
async function readDocument(target: Target, response: HttpResponse, bounds: AnswerBounds): Promise<StreamedAnswer> {
  const { provider } = target
  response.progressed()
  const text = await textOf(provider, response, bounds.bytes)
  const answer = parseObject(provider, text, bounds)
  if ((answer.error ?? null) !== null || typeof answer.message === 'string') {
    throw await readErrorResponse(provider, { status: 502, headers: response.headers, text })
  }
  try {
    const { reply, error } = await readReply(provider, answer, foldFacts(provider), targetFacts(provider, target))
    if (error) throw withBilled(reportedFailure(provider, error), reply.usage)
    if (reply.finish === 'error') {
      throw unreadable(provider, 'answered a request for a stream with a JSON document that is not a reply')
    }
    const batches = yieldEach([[{ events: eventsOf(reply) }]])
    return { kind: 'stream', batches, model: reply.model, document: true }
  } catch (thrown) {
    throw await billedAnyway(provider, asRouterError(thrown), answer)
  }
}

/** Returns the frames of a stream up to its first content, or to the end of an empty reply. Throws RouterError, with the counted usage. */
async function untilContent(batches: AsyncGenerator<StreamFrame[], void>, provider: Provider): Promise<StreamFrame[]> {
  const opening: StreamFrame[] = []
  let last: string | undefined
  try {
    for (let next = await batches.next(); !next.done; next = await batches.next()) {
      for (const frame of next.value) {
        // A client of the same format gets also what means nothing here, but what only keeps the connection once.
        const silent = frame.events.length === 0 ? JSON.stringify(frame.payload) : undefined
        if (silent === undefined || silent !== last) opening.push(frame)
        last = silent
      }
      if (next.value.some(({ events }) => events.some(isAnswer))) return opening
    }
    throw cut(provider, 'ended its stream before any content')
  } catch (thrown) {
    const error = asRouterError(thrown)
    const events = opening.flatMap((frame) => frame.events)
    const model = events.find((event) => event.model)?.model
    throw withBilled(error, mergeUsage(usageOf(events), error.billed ?? {}), model)
  }
}

/** Returns the facts for folding an answer of this provider. */
export function foldFacts({ signer }: Provider): FoldFacts {
  return { signer, newId: randomUUID, now: () => Math.floor(Date.now() / 1_000) }
}
