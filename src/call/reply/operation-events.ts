import type { OperationEvents } from '../../api/operation-api.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import { mergeUsage, type Usage } from '../../core/usage.ts'
import type { OperationEvent } from '../../manifest/run/translate-operation.ts'
import { withoutSecretsOf } from '../../upstream/auth/secrets.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import { servedId } from './attempt-headers.ts'
import { type AnsweredOperation, eventText, factsOf, measure, withRouter } from './operation-facts.ts'
import { seenEvents } from './operation-seen.ts'

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

/** Yields the client's events. The row is on disk before the last one; a broken stream ends with an error and without it. */
export async function* eventStream(
  batches: AsyncIterable<OperationEvent[]>,
  events: OperationEvents,
  answered: AnsweredOperation,
): AsyncGenerator<string, void> {
  const { settlement, prepared, target } = answered
  const facts = { id: prepared.call.id, model: servedId(answered), request: prepared.request }
  const asked = withoutDropped(prepared.request, answered.dropped)
  let usage: Usage = {}
  let known: JsonObject = {}
  let end: JsonObject | undefined
  let firstEventMs: number | undefined
  let isSettled = false
  const hooks = prepared.plugins?.events()
  const seen = hooks && seenEvents(hooks, prepared.request.operation)
  const text = (event: JsonObject) => eventText(event, events.named)
  const received = (complete: boolean) => ({
    ...answered,
    measured: measure(answered, usage, known, complete),
    ...(firstEventMs !== undefined && { firstEventMs }),
  })
  const shown = (event: JsonObject) =>
    (seen ? seen.take(event) : [event]).map((one) => text(events.write(one, facts))).join('')
  try {
    for await (const batch of batches) {
      firstEventMs ??= settlement.elapsed()
      let written = ''
      for (const { event, usage: counted } of batch) {
        if (counted) usage = mergeUsage(usage, counted)
        if (!event) continue
        known = events.collect?.(known, event, asked) ?? known
        const isEnd = events.isEnd(event, known)
        if (!isEnd && events.isHidden?.(event)) continue
        // An event that another one follows was not the end of the stream.
        if (end) written += shown(end)
        end = isEnd ? event : undefined
        if (!isEnd) written += shown(event)
      }
      if (written) yield written
    }
    if (!end)
      throw new RouterError('provider_cut', 'The provider ended its stream in the middle.', {
        provider: target.provider.slug,
      })
    // The last event is the last one of the client as well: events that were held back come before it.
    const ends = seen ? seen.take(end) : [end]
    const heldBack = (seen?.end() ?? []).map((event) => text(events.write(event, facts))).join('')
    const settled = await settlement.complete(received(true))
    isSettled = true
    const all = factsOf(answered, settled)
    const last = [...ends.map((event) => events.write(event, all)), ...(events.after?.(all, end) ?? [])]
    const told = last.pop()
    if (told) last.push(withRouter(told, answered))
    yield heldBack + last.map(text).join('') + (events.terminator ?? '')
  } catch (thrown) {
    const error = withoutSecretsOf(target.provider, asRouterError(thrown))
    answered.handle.failed(error)
    if (error.billed) usage = mergeUsage(usage, error.billed)
    await settlement.partial(received(false), error)
    isSettled = true
    if (error.code !== 'client_gone') yield text(events.fail(prepared.explanation?.addedTo(error) ?? error))
  } finally {
    answered.handle.ended()
    if (!isSettled)
      await settlement.partial(received(false), new RouterError('client_gone', 'The client disconnected.'))
  }
}

/** Returns the request without the fields that were dropped: the one that the provider received. */
function withoutDropped(request: OperationRequest, dropped: readonly string[]): OperationRequest {
  if (dropped.length === 0) return request
  const kept = Object.entries(request.fields).filter(([name]) => !dropped.includes(name))
  return { ...request, fields: Object.fromEntries(kept) }
}
