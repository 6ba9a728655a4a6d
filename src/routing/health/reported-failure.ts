import { RouterError } from '../../core/errors.ts'
import { type Target, targetId } from '../../manifest/target.ts'

/** A target that was asked and failed, or was not asked because it takes no calls. */
export type FailedAttempt = { target: Target; error: RouterError }

/**
 * What is told of a call whose attempts all failed: the failure that is nearest to passing, which is that of the target that takes
 * calls again soonest, else that of the first target.
 */
export function toldFailure<Failed extends FailedAttempt>(failures: readonly [Failed, ...Failed[]]): Failed {
  const waiting = failures.filter(({ error }) => passes.has(error.code) && !error.concernsSize)
  const [first] = failures
  const last = failures.at(-1) ?? first
  if (ends.has(last.error.code)) return last
  return soonest(waiting) ?? failures.findLast(({ target }) => target === first.target) ?? first
}

/** The error that is told, with all attempts where there were several. */
export function withAttempts(told: FailedAttempt, failures: readonly FailedAttempt[]): RouterError {
  const { error } = told
  if (failures.length === 1 || ends.has(error.code)) return error
  const attempts = failures.map(({ target, error }) => ({
    model: targetId(target),
    status: error.status,
    code: error.providerCode ?? error.code,
    message: error.message,
  }))
  return error.with({ attempts })
}

/** Not of a target: they end the call whatever happened before. */
const ends: ReadonlySet<string> = new Set(['client_gone', 'stopping', 'internal'])

/** Failures that are over after a time that is known. */
const passes: ReadonlySet<string> = new Set(['rate_limited', 'unavailable'])

function soonest<Failed extends FailedAttempt>(waiting: readonly Failed[]): Failed | undefined {
  const wait = ({ error }: FailedAttempt) => error.retryAfterMs ?? Infinity
  return waiting.reduce<Failed | undefined>(
    (least, one) => (least && wait(least) <= wait(one) ? least : one),
    undefined,
  )
}

/** The failure of a target that takes no calls, without one being tried. */
export function closedTarget(target: Target, ms: number): RouterError {
  const message = `'${targetId(target)}' failed too often a moment ago. It is tried again in ${Math.ceil(ms / 1_000)} s.`
  return new RouterError('unavailable', message, { retryAfterMs: ms })
}
