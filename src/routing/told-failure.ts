import { RouterError } from '../core/errors.ts'
import { type Target, targetId } from '../manifest/target.ts'

/** A target that was asked and failed, or was not asked because it takes no calls. */
export type FailedAttempt = { target: Target; error: RouterError }

/**
 * The error of a call whose attempts all failed: the failure that is nearest to passing, which is that of the target that takes
 * calls again soonest, else that of the first target. The others are in its `attempts`.
 */
export function toldFailure(failures: readonly [FailedAttempt, ...FailedAttempt[]]): RouterError {
  const waiting = failures.filter(({ error }) => passes.has(error.code))
  const [first] = failures
  const last = failures.at(-1) ?? first
  if (ends.has(last.error.code)) return last.error
  const told = soonest(waiting) ?? failures.findLast(({ target }) => target === first.target) ?? first
  if (failures.length === 1) return told.error
  const attempts = failures.map(({ target, error }) => ({
    model: targetId(target),
    status: error.status,
    code: error.providerCode ?? error.code,
    message: error.message,
  }))
  return told.error.with({ attempts })
}

/** Not of a target: they end the call whatever happened before. */
const ends: ReadonlySet<string> = new Set(['client_gone', 'stopping', 'internal'])

/** Failures that are over after a time that is known. */
const passes: ReadonlySet<string> = new Set(['rate_limited', 'unavailable'])

function soonest(waiting: readonly FailedAttempt[]): FailedAttempt | undefined {
  const wait = ({ error }: FailedAttempt) => error.retryAfterMs ?? Infinity
  return waiting.reduce<FailedAttempt | undefined>(
    (least, one) => (least && wait(least) <= wait(one) ? least : one),
    undefined,
  )
}

/** The failure of a target that takes no calls, without one being tried. */
export function closedTarget(target: Target, ms: number): RouterError {
  const message = `'${targetId(target)}' failed too often a moment ago. It is tried again in ${Math.ceil(ms / 1_000)} s.`
  return new RouterError('unavailable', message, { retryAfterMs: ms })
}
