import type { OperationApi, OperationBytes } from '../../api/operation-api.ts'
import { asRouterError } from '../../core/errors.ts'
import type { PluginReply } from '../../plugin/contract.ts'
import { yieldEach } from '../../runtime/event-loop.ts'
import { withoutSecretsOf } from '../../upstream/auth/secrets.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import type { GoOn } from '../call-kind.ts'
import type { CallResponse, Settled } from '../types.ts'
import { downloadedReply } from './downloads.ts'
import { bytesResponse } from './operation-bytes.ts'
import { eventStream, eventsOf } from './operation-events.ts'
import { type AnsweredOperation, bytesType, costHeader, factsOf, measure, withRouter } from './operation-facts.ts'

/** Returns the response to an operation that a target has answered; or, where it cannot be made, what asks the remaining targets. */
export async function operationReply(
  answer: OperationAnswer,
  answered: AnsweredOperation,
): Promise<CallResponse | GoOn> {
  try {
    return await respond(answer, answered)
  } catch (thrown) {
    const error = withoutSecretsOf(answered.target.provider, asRouterError(thrown))
    if (answer.kind === 'whole') {
      return await answered.giveUp(
        { ...answered, measured: measure(answered, answer.usage, answer.reply, true) },
        error,
      )
    }
    await discard(answer).catch(() => {})
    error.billed ??= answer.usage
    await answered.settlement.fail({ ...answered, sent: true }, error)
    throw error
  }
}

/** Ends a stream that nobody reads: one that has not begun would not close its connection. */
async function discard(answer: Exclude<OperationAnswer, { kind: 'whole' }>): Promise<void> {
  const pieces: AsyncIterable<unknown> = answer.kind === 'bytes' ? answer.bytes : answer.batches
  const reader = pieces[Symbol.asyncIterator]()
  await reader.next()
  await reader.return?.()
}

/** Makes the response that the client wants from the provider's answer. */
async function respond(given: OperationAnswer, answered: AnsweredOperation): Promise<CallResponse> {
  const { headers, prepared } = answered
  const { request, call } = prepared
  const { api } = call
  const wanted = api.wants(request)
  const answer = given.kind === 'whole' ? { ...given, reply: await downloadedReply(given.reply, prepared) } : given
  if (wanted === 'events' && api.events) {
    return { headers, body: await eventStream(eventsOf(answer, api.events, request), api.events, answered) }
  }
  if (wanted === 'bytes' && api.bytes) {
    return answer.kind === 'whole'
      ? await wholeBytes(answer, answered, api.bytes)
      : bytesResponse(answer, answered, api.bytes)
  }
  const { write } = api
  if (answer.kind !== 'whole' || !write) throw new Error(`an unrequested answer in ${answer.kind}`)
  const { reply } = prepared.plugins ? await seenByPlugins(answer, answered, write) : answer
  const settled = await settleWhole(answer, answered, (known) => write(reply, factsOf(answered, known, answer)))
  const text = typeof settled.made === 'string' ? settled.made : JSON.stringify(withRouter(settled.made, answered))
  const mediaType = typeof settled.made === 'string' ? { mediaType: 'text/plain; charset=utf-8' } : {}
  return { headers: { ...headers, ...costHeader(settled) }, body: text, ...mediaType }
}

type Whole = Extract<OperationAnswer, { kind: 'whole' }>

/** Lets plugins change an answer. */
async function seenByPlugins(
  answer: Whole,
  answered: AnsweredOperation,
  write: NonNullable<OperationApi['write']>,
): Promise<Pick<Whole, 'reply'>> {
  const { prepared } = answered
  const { operation } = prepared.request
  const facts = factsOf(answered, { usage: {}, cost: { nanoUsd: 0, parts: {}, priceVersion: '' } }, answer)
  const readable = (reply: PluginReply) => void ('json' in reply && write(reply.json, facts))
  const shown = await prepared.plugins?.reply({ operation, json: answer.reply }, readable, answered.mayRetry?.())
  return shown && 'json' in shown ? { reply: shown.json } : answer
}

/** Makes something of a whole answer, and settles the call with it. */
async function settleWhole<Made>(
  answer: Whole,
  answered: AnsweredOperation,
  make: (settled: Settled) => Made,
): Promise<Settled & { made: Made }> {
  const received = { ...answered, measured: measure(answered, answer.usage, answer.reply, true) }
  let made: Made | undefined
  const settled = await answered.settlement.complete(received, (known) => {
    made = make(known)
    return undefined
  })
  return { ...settled, made: made as Made }
}

/** Returns the bytes of a whole answer, which have no place for the cost. */
async function wholeBytes(answer: Whole, answered: AnsweredOperation, api: OperationBytes): Promise<CallResponse> {
  const { request } = answered.prepared
  const settled = await settleWhole(answer, answered, () => api.ofWhole(answer.reply, request))
  const { bytes, mediaType } = settled.made
  answered.handle.ended()
  const told = api.headers(bytes, mediaType, request)
  const headers = { ...answered.headers, ...costHeader(settled), ...told }
  return { headers, mediaType: bytesType, body: yieldEach([bytes]) }
}
