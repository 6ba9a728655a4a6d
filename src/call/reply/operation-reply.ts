import type { OperationApi, OperationBytes, OperationEvents } from '../../api/operation-api.ts'
import { asRouterError, type RouterError } from '../../core/errors.ts'
import { withoutSecrets } from '../../core/secrets.ts'
import { yieldEach } from '../../core/yield-each.ts'
import { targetId } from '../../manifest/target.ts'
import type { PluginReply } from '../../plugin/contract.ts'
import type { Tried } from '../../routing/trial.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import { withoutSecretsOf } from '../../upstream/secrets.ts'
import type { Settled } from '../admission/settlement.ts'
import type { OperationResult } from '../attempt/operation-call.ts'
import type { CallResponse } from '../types.ts'
import { downloadedReply } from './downloads.ts'
import { bytesResponse, bytesType } from './operation-bytes.ts'
import { eventStream, eventsOf } from './operation-events.ts'
import {
  type Answered,
  costHeader,
  factsOf,
  measure,
  type OperationReplyContext,
  withRouter,
} from './operation-facts.ts'

/** The response to a call whose attempts are over. Throws RouterError, with the same headers as a response. */
export async function operationReply(
  attempted: Tried<OperationResult>,
  context: OperationReplyContext,
): Promise<CallResponse> {
  const { target, attempts, dropped } = attempted
  const headers = {
    ...context.prepared.admission.headers,
    'x-router-model': withoutSecrets(targetId(target)).slice(0, 512).toWellFormed(),
    'x-router-attempts': String(attempts),
    ...(dropped.length > 0 && { 'x-router-dropped': dropped.join(',') }),
  }
  try {
    if (attempted.error) {
      await context.settlement.fail(attempted, attempted.error).catch(() => {})
      throw attempted.error
    }
    const response = await respond(attempted.answer, { ...attempted, ...context }, headers)
    // What is streamed ends its passage itself.
    if (typeof response.body === 'string') attempted.passage.ended()
    return response
  } catch (thrown) {
    const error = asRouterError(thrown)
    if (!attempted.error) {
      attempted.passage.ended()
      await giveUp(attempted.answer, { ...attempted, ...context }, error)
    }
    const told = error.withHeaders(headers)
    throw context.prepared.explanation?.addedTo(told) ?? told
  }
}

/** Closes an answer that there is no reply from, and settles its call, unless that is done. */
async function giveUp(answer: OperationAnswer, answered: Answered, error: RouterError): Promise<void> {
  await discard(answer).catch(() => {})
  error.billed ??= answer.usage
  await answered.settlement.fail({ ...answered, sent: true }, error).catch(() => {})
}

/** Ends a stream that nobody reads: one that has not begun would not close its connection. */
async function discard(answer: OperationAnswer): Promise<void> {
  if (answer.kind === 'whole') return
  const pieces: AsyncIterable<unknown> = answer.kind === 'bytes' ? answer.bytes : answer.batches
  const reader = pieces[Symbol.asyncIterator]()
  await reader.next()
  await reader.return?.()
}

/** What the client wants, of what the provider gave. */
async function respond(
  given: OperationAnswer,
  answered: Answered,
  headers: CallResponse['headers'],
): Promise<CallResponse> {
  const { api } = answered.prepared.call
  const { request } = answered.prepared
  const wanted = api.wants(request)
  const answer = given.kind === 'whole' ? await withDownloads(given, answered) : given
  if (wanted === 'events' && api.events) {
    const batches = await eventsOrSettled(answer, answered, api.events)
    return { headers, body: eventStream(batches, api.events, answered) }
  }
  if (wanted === 'bytes' && api.bytes) {
    if (answer.kind === 'whole') return await wholeBytes(answer, answered, { api: api.bytes, headers })
    return bytesResponse(answer, answered, { api: api.bytes, headers })
  }
  const { write } = api
  if (answer.kind !== 'whole' || !write) throw new Error(`an answer in ${answer.kind} that nobody asked for`)
  const { reply } = answered.prepared.plugins ? await seenByPlugins(answer, answered, write) : answer
  const settled = await settleWhole(answer, answered, (known) => write(reply, factsOf(answered, known, answer)))
  const text = typeof settled.made === 'string' ? settled.made : JSON.stringify(withRouter(settled.made, answered))
  const mediaType = typeof settled.made === 'string' ? { mediaType: 'text/plain; charset=utf-8' } : {}
  return { headers: { ...headers, ...costHeader(settled) }, body: text, ...mediaType }
}

/** The events of an answer; the whole one that has none is paid all the same. */
async function eventsOrSettled(answer: OperationAnswer, answered: Answered, events: OperationEvents) {
  try {
    return eventsOf(answer, events, answered.prepared.request)
  } catch (thrown) {
    const measured = measure(answered, answer.usage ?? {}, undefined, true)
    await answered.settlement.partial({ ...answered, measured }, asRouterError(thrown))
    throw withoutSecretsOf(answered.target.provider, asRouterError(thrown))
  }
}

type Whole = Extract<OperationAnswer, { kind: 'whole' }>

/** An answer with the files that the client wants of it; one that cannot be fetched is paid all the same. */
async function withDownloads(answer: Whole, answered: Answered): Promise<Whole> {
  const { settlement, target } = answered
  try {
    return { ...answer, reply: await downloadedReply(answer.reply, answered.prepared) }
  } catch (thrown) {
    const error = withoutSecretsOf(target.provider, asRouterError(thrown))
    const received = { ...answered, measured: measure(answered, answer.usage, answer.reply, true) }
    await settlement.partial(received, error).catch(() => {})
    throw error
  }
}

/** An answer as plugins change it; one that a plugin refuses is paid all the same. */
async function seenByPlugins(
  answer: Whole,
  answered: Answered,
  write: NonNullable<OperationApi['write']>,
): Promise<Pick<Whole, 'reply'>> {
  const { settlement, prepared } = answered
  const { operation } = prepared.request
  const facts = factsOf(answered, { usage: {}, cost: { nanoUsd: 0, parts: {}, priceVersion: '' } }, answer)
  const readable = (reply: PluginReply) => void ('json' in reply && write(reply.json, facts))
  try {
    const shown = await prepared.plugins?.reply({ operation, json: answer.reply }, readable)
    return shown && 'json' in shown ? { reply: shown.json } : answer
  } catch (thrown) {
    const received = { ...answered, measured: measure(answered, answer.usage, answer.reply, true) }
    await settlement.partial(received, asRouterError(thrown)).catch(() => {})
    throw thrown
  }
}

/** Makes something of a whole answer, and settles the call with it; what cannot be made is paid all the same. */
async function settleWhole<Made>(
  answer: Whole,
  answered: Answered,
  make: (settled: Settled) => Made,
): Promise<Settled & { made: Made }> {
  const { settlement } = answered
  const received = { ...answered, measured: measure(answered, answer.usage, answer.reply, true) }
  let made: Made | undefined
  try {
    const settled = await settlement.complete(received, (known) => {
      made = make(known)
      return undefined
    })
    return { ...settled, made: made as Made }
  } catch (thrown) {
    await settlement.partial(received, asRouterError(thrown))
    throw withoutSecretsOf(answered.target.provider, asRouterError(thrown))
  }
}

/** The bytes of a whole answer, which have no place for the cost. */
async function wholeBytes(
  answer: Whole,
  answered: Answered,
  { api, headers }: { api: OperationBytes; headers: CallResponse['headers'] },
): Promise<CallResponse> {
  const { request } = answered.prepared
  const settled = await settleWhole(answer, answered, () => api.ofWhole(answer.reply, request))
  const { bytes, mediaType } = settled.made
  answered.passage.ended()
  const told = api.headers(bytes, mediaType, request)
  return { headers: { ...headers, ...costHeader(settled), ...told }, mediaType: bytesType, body: yieldEach([bytes]) }
}
