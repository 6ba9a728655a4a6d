import type { RouterError } from '../core/errors.ts'
import type { RoutingRules } from '../core/routing/rules.ts'
import type { Usage } from '../core/usage.ts'
import type { Target } from '../manifest/target.ts'
import type { Affinity } from './affinity.ts'
import type { AttemptTimes, Explanation } from './explanation.ts'
import type { Caller, ConcurrencyLimiters } from './health/concurrency-limiter.ts'
import type { AttemptHandle, Health } from './health/health.ts'
import type { RetryBudget } from './health/retries.ts'
import type { CallClass, Measurements } from './measurements.ts'
import type { Targets } from './names/resolve.ts'
import type { ServedModel } from './served-model.ts'

/** The target of an attempt, its number, and its times. */
export type Attempted = { target: Target; attempts: number; times?: AttemptTimes | undefined }

/**
 * Maximum times of one attempt, in milliseconds: where other targets are left, until the first content of a stream, and for an answer that is
 * not streamed; and in all.
 */
export type AttemptLimits = { firstEventMs?: number; wholeMs?: number; totalMs?: number }

/** State that attempts share beyond one call. */
export type RoutingState = {
  health: Health
  retries: RetryBudget
  measurements: Measurements
  affinity: Affinity
  limiters: ConcurrencyLimiters
  random?: () => number
  now?: () => number
  /** Waits so many milliseconds. Rejects with the reason of the signal. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** One call to be tried at the targets of a name, in their order. */
export type Trial<Result> = {
  targets: Targets
  rules: RoutingRules
  /** Aborted when the client disconnects or the process stops. */
  signal: AbortSignal
  caller: Caller
  /** Attempts of the same call that were made before. */
  before?: number
  /** A provider may act for the caller: it is asked again only where it cannot have begun to. */
  acts?: boolean
  /** The calls with which its times are compared; without it nothing is measured. */
  kind?: CallClass
  /** Receives everything, where the call asks for an explanation. */
  explanation?: Explanation | undefined
  attempt(target: Target, limits: AttemptLimits): Promise<Result>
  /** Called when an attempt failed and another one follows, or the failure of another one is reported. */
  onFailed(failed: Result & Attempted & { error: RouterError }): void
  /** Checks whether one target can take a call that another one found too large, or refused. */
  canTake?(other: Target, refusedBy: Target, how: 'larger' | 'abler'): boolean
}

/**
 * Outcome of an attempt. `dropped`: the fields that were left out; `sent`: the provider has the whole request; `rest` resolves when its
 * answer, of which nobody receives anything, has been read; `served`: another model that has served; `exhaustedMs`: for how long it gives no more than this answer.
 */
export type Outcome = {
  dropped: string[]
  error?: RouterError | undefined
  sent?: boolean
  rest?: Promise<UnseenUsage>
  served?: ServedModel | undefined
  exhaustedMs?: number | undefined
}

/** Usage of an answer that no client has received, or the part that its provider counted of one that failed. */
export type UnseenUsage =
  | { measured: { usage: Usage; estimated: boolean }; served: ServedModel | undefined }
  | { measured?: undefined; billed: Usage | undefined; served: ServedModel | undefined }

/**
 * A call that failed: the attempts are over, or none was begun. The error is that of the target. `hasRows`: `onFailed` has received all
 * attempts; otherwise the reported one is left.
 */
export type Failure = {
  dropped: string[]
  error: RouterError
  sent: boolean
  hasRows: boolean
  rest?: Promise<UnseenUsage>
  served?: ServedModel
}

/** The result of the attempts; that of one without an error has its attempt handle, which is still open. */
export type Tried<Result> = ((Extract<Result, { error?: undefined }> & Passed) | Failure) & Attempted

/** `untried`: the targets that have not been asked. */
export type Passed = { handle: AttemptHandle; untried: Target[] }
