import type { OperationEvents } from '../../api/operation-api.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import { mergeUsage, type Usage } from '../../core/usage.ts'
import type { OperationEvent } from '../../manifest/run/translate-operation.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import { withoutSecretsOf } from '../../upstream/auth/secrets.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import type { ReceivedReply, Settled } from '../types.ts'
import { servedId } from './attempt-headers.ts'
import { begunStream, StreamStart, withDueBatches } from './begun-stream.ts'
import { type AnsweredOperation, eventText, factsOf, measure, withRouter } from './operation-facts.ts'
import { lastEvents, type SeenEvents, seenEvents } from './operation-seen.ts'

/** Returns the events of an answer of any kind. Throws RouterError for a whole one that lacks required parts. */
export function eventsOf(
  answer: OperationAnswer,
  events: OperationEvents,
  request: OperationRequest,
): AsyncIterable<OperationEvent[]> {
  if (answer.kind === 'events') return answer.batches
  if (answer.kind === 'bytes') return eventsOfBytes(answer, events)
  return eventsOfWhole(events.ofWhole(answer.reply, request), answer.usage)
}

async function* eventsOfWhole(made: JsonObject[], usage: Usage): AsyncGenerator<OperationEvent[], void> {
  yield made.map((event, at) => ({ event, ...(at === made.length - 1 && { usage }) }))
}

async function* eventsOfBytes(
  answer: Extract<OperationAnswer, { kind: 'bytes' }>,
  events: OperationEvents,
): AsyncGenerator<OperationEvent[], void> {
  for await (const piece of answer.bytes) {
    const event = events.ofBytes?.(piece)
    if (event) yield [{ event }]
  }
  const end = events.endOfBytes?.()
  if (end) yield [{ event: end, usage: answer.usage }]
}

/**
 * Returns the client's events. The row is on disk before the last one; a broken stream ends with an error and without it. Where plugins may
 * refuse the answer, it waits for the first event, `afterMs` at most, and rejects with a refusal before that.
 */
export function eventStream(
  batches: AsyncIterable<OperationEvent[]>,
  events: OperationEvents,
  answered: AnsweredOperation,
): MaybePromise<AsyncGenerator<string, void>> {
  const { plugins, request, call } = answered.prepared
  const hooks = plugins?.events()
  const start = new StreamStart(!hooks)
  if (!hooks) return writtenEvents(batches, { events, answered, start })
  const seen = seenEvents(hooks, request.operation)
  const due = withDueBatches(batches, seen.dueMs)
  return begunStream(writtenEvents(due, { events, answered, start, seen }), start, call.afterMs)
}

type Writing = { events: OperationEvents; answered: AnsweredOperation; start: StreamStart; seen?: SeenEvents }

async function* writtenEvents(
  batches: AsyncIterable<OperationEvent[]>,
  { events, answered, start, seen }: Writing,
): AsyncGenerator<string, void> {
  const { settlement, prepared, target } = answered
  const received = new ReceivedEvents(events, answered)
  const writer = new EventWriter(events, answered, seen)
  let isSettled = false
  try {
    for await (const batch of batches) {
      let written = await writer.due()
      for (const event of received.take(batch)) written += await writer.write(event)
      if (written) yield start.sent(written)
    }
    const { end } = received
    if (!end)
      throw new RouterError('provider_cut', 'The provider ended its stream in the middle.', {
        provider: target.provider.slug,
      })
    const ending = await writer.ending(end)
    const settled = await settlement.complete(received.reply(true))
    isSettled = true
    yield ending(settled)
  } catch (thrown) {
    const error = withoutSecretsOf(target.provider, asRouterError(thrown))
    answered.handle.failed(error)
    if (error.billed) received.usage = mergeUsage(received.usage, error.billed)
    await settlement.partial(received.reply(error.pluginRefusal !== undefined && received.end !== undefined), error)
    isSettled = true
    start.requireEvent(error)
    if (error.code !== 'client_gone')
      yield eventText(events.fail(prepared.explanation?.addedTo(error) ?? error), events.named)
  } finally {
    answered.handle.ended()
    if (!isSettled)
      await settlement.partial(received.reply(false), new RouterError('client_gone', 'The client disconnected.'))
  }
}

/** The events of a provider as far as they have come, by which the call is charged. */
class ReceivedEvents {
  usage: Usage = {}
  /** The event that ends the stream, unless another one follows. */
  end: JsonObject | undefined
  readonly #events: OperationEvents
  readonly #answered: AnsweredOperation
  readonly #asked: OperationRequest
  #known: JsonObject = {}
  #firstEventMs: number | undefined

  constructor(events: OperationEvents, answered: AnsweredOperation) {
    this.#events = events
    this.#answered = answered
    this.#asked = withoutDropped(answered.prepared.request, answered.dropped)
  }

  /** Takes events, and returns those that the client may get now. */
  take(batch: readonly OperationEvent[]): JsonObject[] {
    if (batch.length > 0) this.#firstEventMs ??= this.#answered.settlement.elapsed()
    return batch.flatMap(({ event, usage }) => {
      if (usage) this.usage = mergeUsage(this.usage, usage)
      return event ? this.#takeOne(event) : []
    })
  }

  #takeOne(event: JsonObject): JsonObject[] {
    this.#known = this.#events.collect?.(this.#known, event, this.#asked) ?? this.#known
    const isEnd = this.#events.isEnd(event, this.#known)
    if (!isEnd && this.#events.isHidden?.(event)) return []
    // An event that another one follows was not the end of the stream.
    const earlier = this.end ? [this.end] : []
    this.end = isEnd ? event : undefined
    return isEnd ? earlier : [...earlier, event]
  }

  reply(complete: boolean): ReceivedReply {
    return {
      ...this.#answered,
      measured: measure(this.#answered, this.usage, this.#known, complete),
      ...(this.#firstEventMs !== undefined && { firstEventMs: this.#firstEventMs }),
    }
  }
}

/** Writes events as plugins change them. */
class EventWriter {
  readonly #events: OperationEvents
  readonly #answered: AnsweredOperation
  readonly #seen: SeenEvents | undefined

  constructor(events: OperationEvents, answered: AnsweredOperation, seen: SeenEvents | undefined) {
    this.#events = events
    this.#answered = answered
    this.#seen = seen
  }

  write(event: JsonObject): MaybePromise<string> {
    return this.#seen ? andThen(this.#seen.take(event), (events) => this.#text(events)) : this.#text([event])
  }

  /** Returns the events that plugins have kept back for long enough. */
  due(): MaybePromise<string> {
    if (this.#seen?.dueMs() !== 0) return ''
    return andThen(this.#seen.due(), (events) => this.#text(events))
  }

  /** Shows plugins the last event. It is the last one of the client as well: events that were held back come before it. */
  async ending(end: JsonObject): Promise<(settled: Settled) => string> {
    const { before, last } = this.#seen ? await lastEvents(end, this.#seen) : { before: [], last: [end] }
    return (settled) => {
      const { after, terminator = '' } = this.#events
      const all = factsOf(this.#answered, settled)
      const written = [...last.map((event) => this.#events.write(event, all)), ...(after?.(all, end) ?? [])]
      const told = written.pop()
      if (told) written.push(withRouter(told, this.#answered))
      return this.#text(before) + written.map((event) => eventText(event, this.#events.named)).join('') + terminator
    }
  }

  #text(events: readonly JsonObject[]): string {
    const { id } = this.#answered.prepared.call
    const facts = { id, model: servedId(this.#answered), request: this.#answered.prepared.request }
    return events.map((event) => eventText(this.#events.write(event, facts), this.#events.named)).join('')
  }
}

/** Returns the request without the fields that were dropped: the one that the provider received. */
function withoutDropped(request: OperationRequest, dropped: readonly string[]): OperationRequest {
  if (dropped.length === 0) return request
  const kept = Object.entries(request.fields).filter(([name]) => !dropped.includes(name))
  return { ...request, fields: Object.fromEntries(kept) }
}
