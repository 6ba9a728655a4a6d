import type { Outcome, Trial } from '../routing/trial.ts'

/** Attempts that report, beside what a target does not take, the wishes of the request that nobody heeds. */
export function reporting<Result extends Outcome>(
  unheeded: readonly string[] | undefined,
  attempt: Trial<Result>['attempt'],
): Trial<Result>['attempt'] {
  if (!unheeded) return attempt
  return async (target, limits) => {
    const result = await attempt(target, limits)
    return { ...result, dropped: [...result.dropped, ...unheeded] }
  }
}
