import { type ErrorCode, RouterError } from '../../core/errors.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { Explanation, SkipStep } from '../explanation.ts'
import type { Attempted, Failure, Outcome, RoutingState, Trial } from '../types.ts'
import type { ClosedFor, TargetOutage } from './health.ts'

/** An attempt that failed. */
type Failed<Result> = Result & Attempted & { error: RouterError }

/** Receiver of failures. */
type FailureListeners<Result> = Pick<Trial<Result>, 'onFailed' | 'explanation'>

/** Steps of the explanation for targets that are not asked, by error code. */
const steps: { readonly [code in ErrorCode]?: SkipStep } = { unavailable: 'health', rate_limited: 'capacity' }

/** The failures of one call: those of its attempts, and of targets that were not asked. */
export class Failures<Result extends Outcome> {
  readonly #all: (FailedAttempt & { attempt?: Failed<Result> })[] = []
  readonly #trial: FailureListeners<Result>
  /** The attempt that failed last, until another one follows. */
  #last: Failed<Result> | undefined
  #mayHaveActed = false

  constructor(trial: FailureListeners<Result>) {
    this.#trial = trial
  }

  /** Records that a target was not asked, or that the call ended before it was. */
  add(target: Target, error: RouterError): void {
    this.#all.push({ target, error })
    const step = steps[error.code]
    if (step) this.#trial.explanation?.skip(target, step, error.message)
  }

  /** Records an attempt; `mayHaveActed`: its provider may have begun to act for the caller. */
  addAttempt(attempt: Failed<Result>, { mayHaveActed }: { mayHaveActed: boolean }): void {
    const { target, error, times } = attempt
    if (mayHaveActed) this.#mayHaveActed = true
    this.#all.push({ target, error, attempt })
    this.#last = attempt
    if (times) this.#trial.explanation?.failed(target, times, error)
  }

  /** Records that another attempt follows: the last one gets its own row, with its usage. */
  goOn(): void {
    if (this.#last) this.#trial.onFailed(this.#last)
    this.#last = undefined
  }

  /** Returns the failure to report after so many attempts: the target and the error are those of one failure. */
  toReport(attempts: number): Failure & Attempted {
    const [first, ...others] = this.#all
    if (!first) throw new Error('a call without targets')
    const { target, error, attempt } = failureToReport([first, ...others])
    const isLast = attempt !== undefined && attempt === this.#last
    if (!isLast) this.goOn()
    const all = withAttempts({ target, error }, this.#all)
    // Whichever failure is reported: the whole call must not be made again.
    const reported = this.#mayHaveActed ? all.with({ mayHaveActed: true }) : all
    return {
      dropped: attempt?.dropped ?? [],
      sent: attempt?.sent ?? false,
      // What other attempts used is in their rows.
      error: isLast ? reported : reported.with({ billed: undefined }),
      target,
      attempts,
      hasRows: !isLast,
      ...(attempt?.times && { times: attempt.times }),
      ...(isLast && attempt.rest && { rest: attempt.rest }),
      ...(isLast && attempt.served && { served: attempt.served }),
    }
  }
}

/** A target that was asked and failed, or was not asked because it takes no calls. */
type FailedAttempt = { target: Target; error: RouterError }

/**
 * Picks the failure to report for a call whose attempts all failed: the one that will pass first, which is that of the target that takes
 * calls again soonest, else that of the first target, unless it lasts and that of another one may pass.
 */
function failureToReport<Failed extends FailedAttempt>(failures: readonly [Failed, ...Failed[]]): Failed {
  const last = failures.at(-1) ?? failures[0]
  if (ends.has(last.error.code)) return last
  const passing = failures.filter(({ error }) => error.mayBeRetried)
  const [first = failures[0]] = passing
  const candidates = passing.length > 0 ? passing : failures
  const waiting = candidates.filter(({ error }) => passes.has(error.code) && !error.concernsSize)
  return soonest(waiting) ?? candidates.findLast(({ target }) => target === first.target) ?? first
}

/** Returns the error to report, with all attempts where there were several. */
function withAttempts(reported: FailedAttempt, failures: readonly FailedAttempt[]): RouterError {
  const { error } = reported
  if (failures.length === 1 || ends.has(error.code)) return error
  const attempts = failures.map(({ target, error }) => ({
    model: targetId(target),
    status: error.status,
    code: error.providerCode ?? error.code,
    message: error.message,
  }))
  return error.with({ attempts })
}

/** Error codes that do not come from a target: they end the call whatever happened before. */
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

/** Returns the failure of a target that takes no calls, without one being tried. */
export function closedTarget(target: Target, ms: number): RouterError {
  const message = `'${targetId(target)}' failed too often recently. It will be tried again in ${Math.ceil(ms / 1_000)} s.`
  return new RouterError('unavailable', message, { retryAfterMs: ms })
}

/** State of targets; `organization` is the one that makes the call. */
type State = Pick<RoutingState, 'health' | 'limiters'> & { organization?: string }

/** Explains why a target that is passed over is not asked now. */
export function passOver(explanation: Explanation, target: Target, state: State): void {
  if (skipClosed(explanation, target, state)) return
  explanation.skip(target, 'health', someCalls)
}

/** Notes a target that takes no calls now, and why. Returns whether it takes none. */
export function skipClosed(
  explanation: Explanation,
  target: Target,
  { health, limiters, organization }: State,
): boolean {
  const closed = health.closedFor(target, organization)
  if (closed) {
    explanation.skip(target, 'health', noCalls(closed))
    return true
  }
  if (limiters.of(target)?.isOpen !== false) return false
  explanation.skip(target, 'capacity', 'is at its limit of concurrent calls')
  return true
}

/** Notes a target that takes no calls of an organization, or not all, by what all event loops report. */
export function skipDegraded(
  explanation: Explanation,
  target: Target,
  { organization, troubled: degraded }: { organization: string; troubled: readonly TargetOutage[] },
): void {
  const names = { target: targetId(target), credential: target.provider.slug, address: target.provider.slug }
  for (const { scope, name, state, until, organization: only = organization } of degraded) {
    if (name !== names[scope] || only !== organization) continue
    const isClosed = until !== undefined
    explanation.skip(
      target,
      'health',
      isClosed ? noCalls({ ms: until - Date.now(), isBusy: state === 'paused' }) : someCalls,
    )
    if (isClosed) return
  }
}

function noCalls({ ms, isBusy }: ClosedFor): string {
  const why = isBusy ? 'because it reported that it is busy' : 'after failures'
  return `takes no calls for ${Math.max(1, Math.ceil(ms / 1_000))} s, ${why}`
}

const someCalls = 'failed recently, and takes only some calls until more of them have succeeded'
