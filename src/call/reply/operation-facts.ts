import type { OperationFacts } from '../../api/operation-api.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { targetId } from '../../manifest/target.ts'
import { measuredOperation } from '../../money/measured-operation.ts'
import { boundedUsage } from '../../money/meter.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { Explanation } from '../../routing/explanation.ts'
import type { Passage } from '../../routing/health.ts'
import type { Attempted } from '../../routing/trial.ts'
import type { Admission } from '../admission/admission.ts'
import type { Settled, Settlement } from '../admission/settlement.ts'
import type { MeasuredUsage } from '../attempt/measured-reply.ts'
import type { ReplyDownloads } from './downloads.ts'

/** What the reply to a call is made of, beside the answer of a target. */
export type OperationReplyContext = {
  prepared: ReplyDownloads & {
    call: { id: string }
    admission: Admission
    explanation?: Explanation | undefined
    plugins?: CallPlugins | undefined
  }
  settlement: Settlement
}

/** A call that a target has answered. */
export type Answered = Attempted & { dropped: string[]; passage: Passage } & OperationReplyContext

/** What a call used, of which the provider counted `usage`; `reply` is as much of the answer as is known. */
export function measure(
  { prepared, target }: Answered,
  usage: Usage,
  reply: JsonObject | undefined,
  complete: boolean,
): MeasuredUsage {
  const { call, request, admission } = prepared
  const most = admission.mostAt(target, false)
  try {
    const counted = call.api.count(request, reply)
    const estimate = call.api.estimate(request, reply)
    return measuredOperation(usage, { counted, estimate, complete, entry: target.entry, most })
  } catch {
    // Providers may send anything: a call whose answer cannot be counted must still be settled.
    return { usage: boundedUsage(usage, most).usage, estimated: true }
  }
}

/** What a settled call is told with; `reported` is the provider's own usage object. */
export function factsOf(
  { prepared, target }: Answered,
  { usage, cost }: Settled,
  answer?: { reported: Json | undefined },
): OperationFacts {
  return {
    id: prepared.call.id,
    model: targetId(target),
    request: prepared.request,
    usage,
    ...(!cost.unpriced && { costUsd: cost.nanoUsd / 1e9 }),
    ...(answer && { reported: answer.reported }),
    now: Math.floor(Date.now() / 1_000),
  }
}

/** A JSON answer, or the last event of one, with what the router did for it, where the call asks for that. */
export function withRouter(made: JsonObject, { prepared: { explanation } }: Pick<Answered, 'prepared'>): JsonObject {
  return explanation ? { ...made, router: explanation.facts() } : made
}

/** The cost, for bodies that have no place for it. */
export function costHeader({ cost }: Settled): { 'x-router-cost'?: string } {
  return cost.unpriced ? {} : { 'x-router-cost': String(cost.nanoUsd / 1e9) }
}
