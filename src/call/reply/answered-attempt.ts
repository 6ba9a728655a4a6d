import type { ReplyFacts } from '../../api/client-api.ts'
import { contentsOf } from '../../core/call.ts'
import type { Reply } from '../../core/reply.ts'
import { measuredReply, type Reception } from '../attempt/measured-reply.ts'
import type { ProviderResult } from '../attempt/provider-call.ts'
import type { PreparedCall, Translation } from '../attempt/types.ts'
import type { AnsweredCall } from '../call-kind.ts'
import type { MeasuredUsage, Settled } from '../types.ts'
import { servedId } from './attempt-headers.ts'

/** A conversation that a target has answered, and the context of its reply. */
export type AnsweredAttempt = Omit<AnsweredCall<ProviderResult>, 'answer' | 'trial' | 'headers'> & {
  prepared: Pick<
    PreparedCall,
    'call' | 'request' | 'turn' | 'holds' | 'explanation' | 'answerBounds' | 'admission' | 'plugins'
  >
  translation: Translation
  /** Remembers the signatures of a complete reply for the next turn. */
  remember(reply: Reply): void
}

/** Measures the usage of a reply, as far as it was received. */
export function measured(
  { target, prepared, times }: AnsweredAttempt,
  reply: Reply,
  received: Omit<Reception, 'ms'>,
): MeasuredUsage {
  const ms = times ? performance.now() - times.began : 0
  const used = measuredReply(reply, target, prepared.admission, { ...received, ms })
  if (!prepared.call.trace?.hasContents) return used
  return { ...used, contents: contentsOf(prepared.request, reply) }
}

/** Returns the facts of a reply besides its content. */
export function replyFacts(answered: AnsweredAttempt, { usage, cost }: Settled): ReplyFacts {
  const { call, request } = answered.prepared
  const facts: ReplyFacts = { model: servedId(answered), usage, request, id: call.id }
  if (!cost.unpriced) facts.costUsd = cost.nanoUsd / 1e9
  return facts
}
