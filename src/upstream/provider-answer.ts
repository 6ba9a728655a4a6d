import { asRouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import type { Reply } from '../core/reply.ts'
import { exceededByCalls } from '../core/tool-arguments.ts'
import { readMetered, readReply } from '../manifest/run/read-reply.ts'
import { chatEndpoint } from '../manifest/run/run-mapping.ts'
import { type Target, targetFacts } from '../manifest/target.ts'
import { isLong, yieldToEventLoop } from '../runtime/event-loop.ts'
import { streamFormats } from '../wire/frames.ts'
import {
  type AnswerBounds,
  billedAnyway,
  defaultAnswerBounds,
  describeExcess,
  excerpt,
  parseObject,
  unreadable,
  withBilled,
} from './answer-body.ts'
import type { Overtime } from './http/overtime.ts'
import type { HttpClient, HttpResponse } from './http/types.ts'
import { reportedFailure } from './provider-error.ts'
import { type ForwardedHeader, sendRequest, type TimingLimits, textOf } from './provider-request.ts'
import { foldFacts, readStream, type StreamedAnswer } from './provider-stream.ts'
import { exhaustedMs } from './rate-limit-headers.ts'

/** A provider's answer: a whole reply, or a stream whose first content has come. */
export type ProviderAnswer = (WholeAnswer | StreamedAnswer) & {
  /** Time for which the provider, as it says itself, gives no more than this, in milliseconds. */
  exhaustedMs?: number | undefined
}

/**
 * `body` is the JSON after `patch.reply`, `reply` its neutral form, as far as it was read. `whole` reads all of one that was read in
 * part; it throws RouterError.
 */
export type WholeAnswer = { kind: 'whole'; body: JsonObject; reply: Reply; whole?: () => Reply }

/** Request to send to a provider, and the maximum size of its answer. */
type Outgoing = {
  body: JsonObject
  signal: AbortSignal
  forwardedHeaders: readonly ForwardedHeader[]
  bounds?: AnswerBounds
  /** Called when the provider has the whole request. */
  onSent?: () => void
  once?: boolean
  idempotencyKey?: string
  /** Time limits of this attempt where they are shorter than those of its provider, in milliseconds. */
  limits?: TimingLimits
  /** Set where the answer is read on after the call is over. */
  overtime?: Overtime | undefined
}

/**
 * Sends one body to a target and waits for the reply or its first content. Of a whole reply that is `edited` for the client, only the parts
 * that the call itself needs are read. Throws RouterError.
 */
export async function requestAnswer(
  target: Target,
  outgoing: Outgoing & { stream: boolean; edited?: boolean; choices?: number },
  httpClient: HttpClient,
): Promise<ProviderAnswer> {
  const { provider } = target
  const endpoint = chatEndpoint(provider)
  const { stream, edited = false, bounds = defaultAnswerBounds, choices = 1, limits } = outgoing
  const { body, signal, forwardedHeaders, onSent, once, idempotencyKey, overtime } = outgoing
  const path = stream ? endpoint.stream.path : endpoint.path
  const accept = stream ? streamFormats[endpoint.stream.format].mediaType : 'application/json'
  const timing = { ...limits, stream, untilContent: stream }
  const response = await sendRequest(
    target,
    { path, accept, body, signal, timing, forwardedHeaders, onSent, once, idempotencyKey, overtime },
    httpClient,
  )
  const exhausted = exhaustedMs(provider, response)
  const answer = stream
    ? await readStream(target, response, { bounds, choices, usageWaitMs: overtime?.ms })
    : await readWhole(target, response, { bounds, read: edited ? readMetered : readReply })
  return exhausted === undefined ? answer : { ...answer, exhaustedMs: exhausted }
}

/** Sends one body to a path of a target and waits for its JSON. Throws RouterError. */
export async function requestJson(
  target: Target,
  outgoing: Outgoing & { path: string },
  httpClient: HttpClient,
): Promise<{ body: JsonObject; exhaustedMs: number | undefined }> {
  const { bounds = defaultAnswerBounds, limits, ...rest } = outgoing
  const sent = { ...rest, accept: 'application/json', ...(limits && { timing: limits }) }
  const response = await sendRequest(target, sent, httpClient)
  const text = await textOf(target.provider, response, bounds.bytes)
  return { body: parseObject(target.provider, text, bounds), exhaustedMs: exhaustedMs(target.provider, response) }
}

/** Reads a whole answer; a long one yields to the event loop before each step. */
async function readWhole(
  target: Target,
  response: HttpResponse,
  { bounds, read }: { bounds: AnswerBounds; read: typeof readReply | typeof readMetered },
): Promise<WholeAnswer> {
  const { provider } = target
  const text = await textOf(provider, response, bounds.bytes)
  if (isLong(text.length)) await yieldToEventLoop()
  const answer = parseObject(provider, text, bounds)
  if (isLong(text.length)) await yieldToEventLoop()
  try {
    const { body, reply, whole, error } = await read(
      provider,
      answer,
      foldFacts(provider),
      targetFacts(provider, target),
    )
    if (error) throw withBilled(reportedFailure(provider, error), reply.usage)
    if (reply.finish === 'error')
      throw withBilled(unreadable(provider, endedInError(reply, excerpt(provider, text))), reply.usage)
    const excess = exceededByCalls([reply], bounds.values)
    if (excess) throw withBilled(unreadable(provider, describeExcess(excess, bounds)), reply.usage)
    if (isLong(text.length)) await yieldToEventLoop()
    return whole ? { kind: 'whole', body, reply, whole } : { kind: 'whole', body, reply }
  } catch (thrown) {
    throw await billedAnyway(provider, asRouterError(thrown), answer)
  }
}

function endedInError({ finish_raw }: Reply, text: string): string {
  if (finish_raw === undefined) return `sent a reply without a finish reason: ${text.slice(0, 200)}`
  return `ended its reply with the finish reason \`${finish_raw}\`, which reports a failure`
}
