import { asRouterError, type RouterError } from '../../core/errors.ts'
import type { Target } from '../../manifest/target.ts'
import { mayTryAgain } from '../../routing/attempts.ts'
import { failureClass } from '../../routing/health/failure-class.ts'
import type { Passed, Trial } from '../../routing/types.ts'
import type { Settlement } from '../admission/settlement.ts'
import type { GoOn } from '../call-kind.ts'
import type { CallResponse, ReceivedReply } from '../types.ts'

/** Returns what asks further targets after an error; undefined where none may be asked. */
export type OtherTargets = (error: RouterError) => GoOn | undefined

/**
 * Lets the remaining targets answer: an answer that cannot be read is a failure of its target as any other, also where that shows only when
 * the reply is made.
 */
export function otherTargets<Result>(
  trial: Trial<Result>,
  tried: Pick<Passed, 'untried'> & { target: Target; attempts: number },
  { begunMs, respond }: { begunMs: number; respond(trial: Trial<Result>): Promise<CallResponse> },
): OtherTargets {
  const { untried, target, attempts } = tried
  return (error) => {
    // A plugin that wants another answer may get it from the same target.
    const [first, ...others] = error.wantsOther && untried.length === 0 ? [target] : untried
    const { rules, acts } = trial
    const leftMs = (rules.totalMs ?? Infinity) - (performance.now() - begunMs)
    const isUnreadable = error.code === 'provider_unreadable' && failureClass(error).next === 'any'
    const mayFollow = (isUnreadable || error.wantsOther) && acts !== true
    if (!first || !mayFollow || !mayTryAgain(attempts, leftMs)) return undefined
    const left = { ...rules, ...(rules.totalMs !== undefined && { totalMs: leftMs }) }
    return () => respond({ ...trial, targets: [first, ...others], rules: left, before: attempts })
  }
}

/** Charges an answer of which no reply can be made. Returns what asks the remaining targets; throws the error where none may be asked. */
export async function giveUp(
  received: ReceivedReply,
  thrown: unknown,
  { settlement, handle, others }: { settlement: Settlement; handle: Passed['handle']; others: OtherTargets },
): Promise<GoOn> {
  // The provider has answered and must be paid, even if the client cannot get the answer.
  const error = asRouterError(thrown)
  const next = others(error)
  if (!next) {
    await settlement.partial(received, error)
    throw thrown
  }
  handle.failed(error)
  error.billed = received.measured.usage
  settlement.failAttempt(received, error)
  return next
}
