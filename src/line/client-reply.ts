import type { ReplyFacts } from '../api/client-api.ts'
import { asRouterError, RouterError } from '../core/errors.ts'
import { Fold } from '../core/fold.ts'
import type { Reply } from '../core/reply.ts'
import { withoutSecrets } from '../core/secrets.ts'
import { completionTokens, mergeUsage, type Usage } from '../core/usage.ts'
import { type Target, targetId } from '../manifest/target.ts'
import type { Tried } from '../routing/attempts.ts'
import type { Passage } from '../routing/health.ts'
import type { ServedModel } from '../routing/served-model.ts'
import { foldFacts, type ProviderAnswer, type WholeAnswer } from '../upstream/provider-answer.ts'
import type { StreamedAnswer } from '../upstream/provider-stream.ts'
import { withoutSecretsOf } from '../upstream/secrets.ts'
import type { CallResponse, PreparedCall, Translation } from './call.ts'
import { type MeasuredUsage, measuredReply } from './measured-reply.ts'
import type { ProviderResult } from './provider-call.ts'
import type { AttemptSummary, Settled, Settlement } from './settlement.ts'

/** Everything needed to write and settle the reply of a call. */
export type ReplyContext = {
  prepared: Pick<PreparedCall, 'call' | 'request' | 'turn' | 'answerBounds' | 'admission'>
  settlement: Settlement
  /** Another model than the target's, where the provider's reply names one. */
  servedBy(target: Target, reported: string | undefined): ServedModel | undefined
  /** Remembers the signatures of a complete reply for the next turn. */
  remember(reply: Reply): void
}

/** A target that has answered, and the context of its reply. */
export type AnsweredAttempt = AttemptSummary &
  ReplyContext & { translation: Translation; passage: Passage; served?: ServedModel | undefined }

/** The response to a call whose attempts are over. Throws RouterError, with the same headers as a response. */
export async function clientReply(
  attempted: Tried<ProviderResult>,
  { limitHeaders, ...context }: ReplyContext & { limitHeaders: CallResponse['headers'] },
): Promise<CallResponse> {
  const served = attempted.error ? undefined : context.servedBy(attempted.target, modelIn(attempted.answer))
  const headers = { ...limitHeaders, ...attemptHeaders({ ...attempted, served }) }
  try {
    if (attempted.error) return await settleFailure(attempted, attempted.error, context)
    const answered = { ...attempted, ...context, served }
    const { answer } = attempted
    if (answer.kind === 'stream') return { headers, body: streamedReply(answer, answered) }
    return { headers, body: await wholeReply(answer, answered) }
  } catch (thrown) {
    throw asRouterError(thrown).withHeaders(headers)
  }
}

function modelIn(answer: ProviderAnswer): string | undefined {
  return answer.kind === 'stream' ? answer.model : answer.reply.model
}

/** The model that served, by its name for clients. */
function servedId({ target, served }: Pick<AnsweredAttempt, 'target' | 'served'>): string {
  return targetId(served ? { ...target, model: served.model } : target)
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

/** The client's JSON text of a whole answer, once the ledger row is on disk. */
export async function wholeReply(answer: WholeAnswer, answered: AnsweredAttempt): Promise<string> {
  const { translation, settlement, remember } = answered
  const { reply } = answer
  let text = ''
  try {
    remember(reply)
    const { usage } = await settlement.complete(
      { ...answered, measured: measured(answered, reply, true) },
      (settled) => {
        const written = translation.whole(answer, replyFacts(answered, settled))
        text = JSON.stringify(written)
        return translation.responseToStore(written, text)
      },
    )
    answered.passage.produced?.(completionTokens(usage))
    return text
  } catch (thrown) {
    // The provider has answered and must be paid, even if the client cannot get the answer.
    await settlement.partial({ ...answered, measured: measured(answered, reply, false) }, asRouterError(thrown))
    throw thrown
  } finally {
    answered.passage.ended()
  }
}

/** The client's events of a streamed answer. The ledger row is on disk before the last one; a broken reply never gets it. */
export async function* streamedReply(answer: StreamedAnswer, answered: AnsweredAttempt): AsyncGenerator<string, void> {
  const { target, translation, prepared, settlement, remember } = answered
  const stream = translation.stream(servedId(answered))
  const fold = new Fold(foldFacts(target.provider))
  let firstEventMs: number | undefined
  let isSettled = false
  const received = (complete: boolean, billed?: Usage) => {
    const reply = billed ? { ...fold.reply(), usage: mergeUsage(fold.usage, billed) } : fold.reply()
    const served = answered.served ?? answered.servedBy(target, reply.model)
    const usage = measured(answered, reply, complete)
    return { ...answered, reply, measured: usage, served, ...(firstEventMs !== undefined && { firstEventMs }) }
  }
  try {
    for await (const batch of answer.batches) {
      firstEventMs ??= settlement.elapsed()
      let text = ''
      for (const frame of batch) text += stream.translate(frame, fold)
      if (fold.size > prepared.answerBounds.bytes) throw endless(target, prepared.answerBounds.bytes)
      if (text) yield text
    }
    if (!fold.complete) throw cutStream(target)
    const complete = received(true)
    if (complete.reply.finish === 'error') throw endedInError(target, complete.reply)
    const last = stream.close(fold)
    remember(complete.reply)
    const settled = await settlement.complete(complete, (known) => {
      const whole = prepared.turn.stores && stream.reply?.(replyFacts(answered, known))
      return whole ? translation.responseToStore(whole, JSON.stringify(whole)) : undefined
    })
    isSettled = true
    answered.passage.produced?.(completionTokens(settled.usage))
    yield last + stream.end(replyFacts(answered, settled))
  } catch (thrown) {
    const error = withoutSecretsOf(target.provider, asRouterError(thrown))
    answered.passage.failed(error)
    // If the ledger fails as well, it keeps the row for later: the client must be told that the stream broke.
    await settlement.partial(received(false, error.billed), error).catch(() => {})
    isSettled = true
    if (error.code !== 'client_gone') yield stream.fail(error)
  } finally {
    answered.passage.ended()
    // A client that disconnects ends this generator at a yield: the part that was received is still paid.
    if (!isSettled)
      await settlement.partial(received(false), new RouterError('client_gone', 'The client disconnected.'))
  }
}

function measured({ target, prepared }: AnsweredAttempt, reply: Reply, complete: boolean): MeasuredUsage {
  return measuredReply(reply, target, prepared.admission, complete)
}

function replyFacts(answered: AnsweredAttempt, { usage, cost }: Settled): ReplyFacts {
  const { call, request } = answered.prepared
  const model = servedId(answered)
  return { model, usage, request, id: call.id, ...(!cost.unpriced && { costUsd: cost.nanoUsd / 1e9 }) }
}

/** The model that served, or was tried last, how many models were tried, and which fields were left out. */
export function attemptHeaders({
  attempts,
  dropped,
  ...answered
}: AttemptSummary & Pick<AnsweredAttempt, 'served'>): Record<string, string> {
  return {
    'x-router-model': withoutSecrets(servedId(answered)).slice(0, longestHeader).toWellFormed(),
    'x-router-attempts': String(attempts),
    ...(dropped.length > 0 && { 'x-router-dropped': dropped.join(',') }),
  }
}

/** Longer names are cut in the header: a provider may call a model anything. */
const longestHeader = 512

/** Only for streams: a whole reply that ends like this is refused when it is read. */
function endedInError({ provider }: Target, { finish_raw }: Reply): RouterError {
  const reason = finish_raw === undefined ? 'an error' : `the finish reason \`${finish_raw}\`, which reports a failure`
  const message = `The provider ended its reply with ${reason}.`
  return new RouterError('provider_unreadable', message, { provider: provider.slug })
}

function endless({ provider }: Target, most: number): RouterError {
  const message = `The provider sent a reply of more than ${most} characters, the answers.body_limit of this server.`
  return new RouterError('provider_unreadable', message, { provider: provider.slug })
}

function cutStream({ provider }: Target): RouterError {
  const message = 'The provider ended its stream in the middle of the reply.'
  return new RouterError('provider_cut', message, { provider: provider.slug })
}
