import { asRouterError, type RouterError } from '../../core/errors.ts'
import type { Reply } from '../../core/reply.ts'
import { withoutSecrets } from '../../core/secrets.ts'
import { completionTokens } from '../../core/usage.ts'
import { andThen } from '../../manifest/run-mapping.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { SeenChat } from '../../plugin/seen-chat.ts'
import type { Tried } from '../../routing/trial.ts'
import type { ProviderAnswer, WholeAnswer } from '../../upstream/provider-answer.ts'
import type { AttemptSummary, ReceivedReply } from '../admission/settlement.ts'
import type { ProviderResult } from '../attempt/provider-call.ts'
import type { CallResponse } from '../types.ts'
import { type AnsweredAttempt, measured, type ReplyContext, replyFacts, servedId } from './answered-attempt.ts'
import type { OtherTargets } from './other-targets.ts'
import type { Recovery } from './recovery.ts'
import { streamedReply } from './streamed-reply.ts'

/** The response to a call whose attempts are over. Throws RouterError, with the same headers as a response. */
export async function clientReply(
  attempted: Tried<ProviderResult>,
  context: ReplyContext & {
    limitHeaders: CallResponse['headers']
    /** Lets another target go on with a stream that breaks off. */
    recovery?: Recovery | undefined
    /** Asks them in place of a target whose whole answer cannot be read. */
    others?: OtherTargets
  },
): Promise<CallResponse> {
  const { limitHeaders, recovery, others, prepared, settlement, servedBy, remember } = context
  const served = attempted.error ? undefined : servedBy(attempted.target, modelIn(attempted.answer))
  const headers = { ...limitHeaders, ...attemptHeaders(attempted, served) }
  let body: Awaited<ReturnType<typeof wholeReply>>
  try {
    if (attempted.error) return await settleFailure(attempted, attempted.error, context)
    const { answer, target, attempts, dropped, times, translation, passage, untried } = attempted
    const tried = { target, attempts, dropped, times, translation, passage, untried }
    const answered: AnsweredAttempt = { prepared, settlement, servedBy, remember, served, ...tried }
    if (answer.kind === 'stream') return { headers, body: streamedReply(answer, answered, recovery) }
    body = await wholeReply(answer, answered, others)
  } catch (thrown) {
    const error = asRouterError(thrown).withHeaders(headers)
    throw prepared.explanation?.addedTo(error) ?? error
  }
  return typeof body === 'string' ? { headers, body } : await body()
}

function modelIn(answer: ProviderAnswer): string | undefined {
  return answer.kind === 'stream' ? answer.model : answer.reply.model
}

async function settleFailure(
  attempted: AttemptSummary,
  error: RouterError,
  { settlement }: ReplyContext,
): Promise<never> {
  // If the ledger fails as well, it keeps the row for later: the client must be told the original error.
  await settlement.fail(attempted, error).catch(() => {})
  throw error
}

/** The client's JSON text of a whole answer, once the ledger row is on disk; or, where it cannot be read, what asks `others`. */
export async function wholeReply(
  answer: WholeAnswer,
  answered: AnsweredAttempt,
  others?: OtherTargets,
): Promise<string | (() => Promise<CallResponse>)> {
  const { translation, settlement, remember, prepared } = answered
  const { reply } = answer
  let text = ''
  try {
    remember(reply)
    const showing = prepared.plugins ? shownReply(answer, prepared.plugins) : answer
    const shown = showing instanceof Promise ? await showing : showing
    const { usage } = await settlement.complete(received(answered, reply, true), (settled) => {
      const router = prepared.explanation?.facts()
      const writing = shown === answer ? translation : (translation.changed?.() ?? translation)
      const written = writing.whole(shown, replyFacts(answered, settled))
      const own = JSON.stringify(written)
      text = router ? JSON.stringify({ ...written, router }) : own
      return writing.responseToStore(written, own)
    })
    answered.passage.produced?.(completionTokens(usage))
    return text
  } catch (thrown) {
    // The provider has answered and must be paid, even if the client cannot get the answer.
    const error = asRouterError(thrown)
    const used = received(answered, reply, false)
    const next = others?.(answered, error)
    if (!next) {
      await settlement.partial(used, error)
      throw thrown
    }
    answered.passage.failed(error)
    error.billed = used.measured.usage
    settlement.failAttempt(answered, error)
    return next
  } finally {
    answered.passage.ended()
  }
}

/** A reply as far as it came, by what it used. */
function received(answered: AnsweredAttempt, reply: Reply, complete: boolean): ReceivedReply {
  const { target, attempts, dropped, times, served } = answered
  return { target, attempts, dropped, times, served, measured: measured(answered, reply, complete) }
}

/** An answer as plugins change it; what identifies and counts it stays. */
function shownReply(answer: WholeAnswer, plugins: CallPlugins): MaybePromise<WholeAnswer> {
  if (!plugins.have('reply')) return answer
  const { reply, whole = () => reply } = answer
  const seen = new SeenChat(whole)
  return andThen(plugins.reply(seen), (shown) => {
    if (shown === seen || !('chat' in shown) || shown.chat === seen.chat) return answer
    const { id, created, usage } = reply
    return { ...answer, reply: { ...shown.chat, id, created, usage } }
  })
}

/** The model that served, or was tried last, how many models were tried, and which fields were left out. */
export function attemptHeaders(
  { target, attempts, dropped }: Pick<AttemptSummary, 'target' | 'attempts' | 'dropped'>,
  served: AnsweredAttempt['served'],
): Record<string, string> {
  const headers: Record<string, string> = {
    'x-router-model': withoutSecrets(servedId({ target, served })).slice(0, longestHeader).toWellFormed(),
    'x-router-attempts': String(attempts),
  }
  if (dropped.length > 0) headers['x-router-dropped'] = dropped.join(',')
  return headers
}

/** Longer names are cut in the header: a provider may call a model anything. */
const longestHeader = 512
