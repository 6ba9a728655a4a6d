import type { RouterError } from '../../core/errors.ts'
import { mayTryAgain } from '../../routing/attempts.ts'
import { failureClass } from '../../routing/failure-class.ts'
import type { Trial } from '../../routing/trial.ts'
import type { ProviderResult } from '../attempt/provider-call.ts'
import type { CallResponse } from '../types.ts'
import type { AnsweredAttempt } from './answered-attempt.ts'

/** What asks the targets that are left after an answer that failed when it was to be written; undefined where none may be asked. */
export type OtherTargets = (
  failed: Pick<AnsweredAttempt, 'untried' | 'attempts'>,
  error: RouterError,
) => (() => Promise<CallResponse>) | undefined

/** An answer that cannot be read is a failure of its target as any other, also where it is read only because plugins look at it. */
export function otherTargets(
  trial: Trial<ProviderResult>,
  respond: (trial: Trial<ProviderResult>) => Promise<CallResponse>,
): OtherTargets {
  const begun = performance.now()
  return ({ untried, attempts }, error) => {
    const [first, ...others] = untried
    const { rules, acts } = trial
    const leftMs = (rules.totalMs ?? Infinity) - (performance.now() - begun)
    const mayFollow = error.code === 'provider_unreadable' && failureClass(error).next === 'any' && acts !== true
    if (!first || !mayFollow || !mayTryAgain(attempts, leftMs)) return undefined
    const left = { ...rules, ...(rules.totalMs !== undefined && { totalMs: leftMs }) }
    return () => respond({ ...trial, targets: [first, ...others], rules: left, before: attempts })
  }
}
