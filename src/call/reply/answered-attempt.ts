import type { ReplyFacts } from '../../api/client-api.ts'
import { contentsOf } from '../../core/call-contents.ts'
import type { Reply } from '../../core/reply.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { Passage } from '../../routing/health.ts'
import type { ServedModel } from '../../routing/served-model.ts'
import type { AttemptSummary, Settled, Settlement } from '../admission/settlement.ts'
import { type MeasuredUsage, measuredReply } from '../attempt/measured-reply.ts'
import type { PreparedCall, Translation } from '../types.ts'

/** Everything needed to write and settle the reply of a call. */
export type ReplyContext = {
  prepared: Pick<PreparedCall, 'call' | 'request' | 'turn' | 'explanation' | 'answerBounds' | 'admission' | 'plugins'>
  settlement: Settlement
  /** Another model than the target's, where the provider's reply names one. */
  servedBy(target: Target, reported: string | undefined): ServedModel | undefined
  /** Remembers the signatures of a complete reply for the next turn. */
  remember(reply: Reply): void
}

/** A target that has answered, and the context of its reply. `untried`: the targets that have not been asked. */
export type AnsweredAttempt = AttemptSummary &
  ReplyContext & {
    translation: Translation
    passage: Passage
    untried: readonly Target[]
    served?: ServedModel | undefined
  }

/** The model that served, by its name for clients. */
export function servedId({ target, served }: Pick<AnsweredAttempt, 'target' | 'served'>): string {
  return targetId(served ? { ...target, model: served.model } : target)
}

/** What a reply used, as far as it was received. */
export function measured({ target, prepared }: AnsweredAttempt, reply: Reply, complete: boolean): MeasuredUsage {
  const used = measuredReply(reply, target, prepared.admission, complete)
  if (!prepared.call.trace?.hasContents) return used
  return { ...used, contents: contentsOf(prepared.request, reply) }
}

/** What the client is told beside a reply. */
export function replyFacts(answered: AnsweredAttempt, { usage, cost }: Settled): ReplyFacts {
  const { call, request } = answered.prepared
  const facts: ReplyFacts = { model: servedId(answered), usage, request, id: call.id }
  if (!cost.unpriced) facts.costUsd = cost.nanoUsd / 1e9
  return facts
}
