import type { ErrorCode, RouterError } from '../../core/errors.ts'
import type { Target } from '../../manifest/target.ts'
import type { SkipStep } from '../explanation.ts'
import type { Attempted, Failure, Outcome, Trial } from '../types.ts'
import { type FailedAttempt, toldFailure, withAttempts } from './reported-failure.ts'

/** An attempt that failed. */
type Failed<Result> = Result & Attempted & { error: RouterError }

/** What hears of failures. */
type Heard<Result> = Pick<Trial<Result>, 'onFailed' | 'explanation'>

/** Why targets are not asked. */
const steps: { readonly [code in ErrorCode]?: SkipStep } = { unavailable: 'health', rate_limited: 'capacity' }

/** The failures of one call: those of its attempts, and of targets that were not asked. */
export class Failures<Result extends Outcome> {
  readonly #all: (FailedAttempt & { attempt?: Failed<Result> })[] = []
  readonly #trial: Heard<Result>
  /** The attempt that failed last, until another one follows. */
  #last: Failed<Result> | undefined

  constructor(trial: Heard<Result>) {
    this.#trial = trial
  }

  /** A target was not asked, or the call ended before it was. */
  add(target: Target, error: RouterError): void {
    this.#all.push({ target, error })
    const step = steps[error.code]
    if (step) this.#trial.explanation?.skip(target, step, error.message)
  }

  addAttempt(attempt: Failed<Result>): void {
    const { target, error, times } = attempt
    this.#all.push({ target, error, attempt })
    this.#last = attempt
    if (times) this.#trial.explanation?.failed(target, times, error)
  }

  /** Another attempt follows: the last one gets its own row, with what it used. */
  goOn(): void {
    if (this.#last) this.#trial.onFailed(this.#last)
    this.#last = undefined
  }

  /** What is told after so many attempts: the target and the error are those of one failure. */
  told(attempts: number): Failure & Attempted {
    const [first, ...others] = this.#all
    if (!first) throw new Error('a call without targets')
    const { target, error, attempt } = toldFailure([first, ...others])
    const isLast = attempt !== undefined && attempt === this.#last
    if (!isLast) this.goOn()
    const told = withAttempts({ target, error }, this.#all)
    return {
      dropped: attempt?.dropped ?? [],
      sent: attempt?.sent ?? false,
      // What other attempts used is in their rows.
      error: isLast ? told : told.with({ billed: undefined }),
      target,
      attempts,
      hasRows: !isLast,
      ...(attempt?.times && { times: attempt.times }),
    }
  }
}
