import type { OperationApi } from '../../api/operation-api.ts'
import type { JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import type { Reply } from '../../core/reply.ts'
import type { Usage } from '../../core/usage.ts'
import { endpointFor } from '../../manifest/operation.ts'
import { requestWithin } from '../../manifest/run/translate-operation.ts'
import type { Target } from '../../manifest/target.ts'
import { withUncounted } from '../../money/max-cost.ts'
import { boundedUsage, measuredOperation, measuredUsage } from '../../money/meter.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import type { Admission, MeasuredUsage } from '../types.ts'

/**
 * State of a reply that was received: to its end or not, for how long, the estimated tokens of a part that was not kept, and the share of
 * it that came after its tokens were last counted.
 */
export type Reception = { complete: boolean; ms: number; unseenTokens?: number; early?: number }

/** Returns the usage of a reply as far as it was received. */
export function measuredReply(
  reply: Reply,
  target: Target,
  {
    promptTokens,
    choices,
    mostAt,
    hiddenUsage,
  }: Pick<Admission, 'promptTokens' | 'choices' | 'mostAt' | 'hiddenUsage'>,
  { ms, ...received }: Reception,
): MeasuredUsage {
  try {
    const bounds = mostAt(target, hasRemoteParts(reply))
    const hidden = () => hiddenUsage(target, ms, reply.parts)
    const counted = { ...reply, usage: withUncounted(reply.usage, reply.parts, target) }
    return measuredUsage(counted, { promptTokens, choices, bounds, hidden, ...received })
  } catch {
    // Providers may send anything: a call whose reply cannot be counted must still be settled.
    return { usage: reply.usage, estimated: true }
  }
}

/** An operation that a target has answered, as far as its usage depends on it; `reply` is as much of the answer as is known. */
export type MeasuredAnswer = {
  target: Target
  api: OperationApi
  request: OperationRequest
  admission: Pick<Admission, 'mostAt'>
  reply: JsonObject | undefined
  complete: boolean
}

/** Measures what an operation used, of which the provider counted `usage`. */
export function measureOperation(
  usage: Usage,
  { target, api, request, admission, reply, complete }: MeasuredAnswer,
): MeasuredUsage {
  const bounds = admission.mostAt(target, false)
  try {
    const { provider, entry } = target
    const endpoint = endpointFor(provider, request.operation, entry)
    const taken = endpoint ? requestWithin(endpoint, request) : request
    const counted = api.count(taken, reply, entry)
    const estimate = api.estimate(request, reply)
    return measuredOperation(usage, { counted, estimate, complete, entry: target.entry, bounds })
  } catch {
    // Providers may send anything: a call whose answer cannot be counted must still be settled.
    return { usage: boundedUsage(usage, bounds).usage, estimated: true }
  }
}

/** Measures an answer that no client receives: one that hides usage comes whole. */
export function measureUnseenOperation(
  answer: OperationAnswer,
  asked: Omit<MeasuredAnswer, 'reply' | 'complete'>,
): MeasuredUsage {
  const reply = answer.kind === 'whole' ? answer.reply : undefined
  return measureOperation(answer.usage ?? {}, { ...asked, reply, complete: reply !== undefined })
}

function hasRemoteParts({ parts }: Reply): boolean {
  return parts.some(({ type }) => type === 'search' || type === 'opaque')
}
