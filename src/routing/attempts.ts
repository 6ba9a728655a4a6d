import { asRouterError, type RouterError } from '../core/errors.ts'
import type { Target } from '../manifest/target.ts'
import type { AttemptTimes } from './explanation.ts'
import type { ConcurrencyLimiter, Release } from './health/concurrency-limiter.ts'
import { failureClass } from './health/failure-class.ts'
import { closedTarget, Failures, passOver } from './health/failures.ts'
import type { AttemptHandle, ClosedFor } from './health/health.ts'
import { backoffMs, pause, spreadMs } from './health/retries.ts'
import type { Attempted, AttemptLimits, Outcome, RoutingState, Trial, Tried } from './types.ts'

/** The most attempts of one call. */
const maxAttempts = 6
/** An attempt with less time than this is not begun. */
const minMs = 5

/** Checks whether a call that has made so many attempts, and has so many milliseconds left, may make another one. */
export function mayTryAgain(attempts: number, leftMs: number): boolean {
  return attempts < maxAttempts && leftMs > minMs
}

/** Maximum number of calls that wait for one busy target. */
const maxWaiting = 100

/**
 * Tries the targets as their health and the classes of failures say, and returns the first result without an error; else
 * the failure that is nearest to passing. Throws the reason of the signal when the call ends while it waits.
 */
export function tryTargets<Result extends Outcome>(trial: Trial<Result>, state: RoutingState): Promise<Tried<Result>> {
  return new Attempts(trial, state).run()
}

/** A target of the call. `waits`: it is asked again only when it is not busy any more. */
type Candidate = { target: Target; retries: number; isTried: boolean; isOver: boolean; waits: boolean }

class Attempts<Result extends Outcome> {
  readonly #trial: Trial<Result>
  readonly #state: RoutingState
  readonly #random: () => number
  readonly #now: () => number
  readonly #endBy: number
  readonly #candidates: Candidate[]
  readonly #failures: Failures<Result>
  #count = 0
  #hasEnded = false

  constructor(trial: Trial<Result>, state: RoutingState) {
    this.#trial = trial
    this.#failures = new Failures(trial)
    this.#state = state
    this.#random = state.random ?? Math.random
    this.#now = state.now ?? (() => performance.now())
    this.#endBy = this.#now() + (trial.rules.totalMs ?? Infinity)
    this.#count = trial.before ?? 0
    this.#candidates = trial.targets.map((target) => ({
      target,
      retries: 0,
      isTried: false,
      isOver: false,
      waits: false,
    }))
  }

  async run(): Promise<Tried<Result>> {
    try {
      return await this.#tryAll()
    } catch (thrown) {
      const { signal, targets } = this.#trial
      if (!signal.aborted) throw thrown
      // The call ended while it waited.
      this.#failures.add(targets[0], asRouterError(thrown))
      return this.#failures.toReport(this.#count) as Tried<Result>
    }
  }

  async #tryAll(): Promise<Tried<Result>> {
    let next = this.#firstOpen() ?? (await this.#firstToOpen())
    while (next && this.#mayBegin()) {
      const gate = this.#state.limiters.of(next.target)
      const leave = gate ? await this.#acquire(next, gate) : undefined
      const passage = gate && !leave ? undefined : this.#enter(next.target, leave)
      if (passage) {
        const succeeded = await this.#attempt(next, passage)
        if (succeeded) return succeeded
      }
      next = this.#hasEnded
        ? undefined
        : ((await this.#sameAgain(next)) ?? this.#firstOpen() ?? (await this.#firstToOpen()))
    }
    return this.#failures.toReport(this.#count) as Tried<Result>
  }

  /** Waits until a target may be asked by one call more; undefined when that is too long. */
  async #acquire(candidate: Candidate, gate: ConcurrencyLimiter): Promise<Release | undefined> {
    const { caller, signal } = this.#trial
    try {
      return await gate.enter(caller, signal, Math.max(0, this.#leftMs))
    } catch (thrown) {
      if (signal.aborted) throw thrown
      candidate.isOver = true
      this.#failures.add(candidate.target, asRouterError(thrown))
      return undefined
    }
  }

  /** Begins an attempt; undefined where another call tries this target already, and it takes only one at a time. */
  #enter(target: Target, leave: Release | undefined): AttemptHandle | undefined {
    const { health, measurements } = this.#state
    const passage = health.enter(target, this.#trial.caller.organization)
    if (!passage) {
      leave?.()
      this.#skip(target)
      return undefined
    }
    const { kind, rules } = this.#trial
    const left = leave ? releasing(passage, leave) : passage
    if (!kind) return left
    const limitMs = kind.streams ? rules.firstEventMs : target.provider.timeouts.wholeMs
    return measurements.begin(target, { kind, limitMs }, left)
  }

  /** Makes one attempt; undefined when it failed. */
  async #attempt(candidate: Candidate, passage: AttemptHandle) {
    const { target } = candidate
    this.#failures.goOn()
    if (!candidate.isTried) this.#state.retries.earn(target, this.#trial.caller.organization)
    candidate.isTried = true
    this.#count++
    const began = this.#now()
    let rest: Promise<unknown> | undefined
    try {
      const result = await this.#trial.attempt(target, this.#limits(candidate))
      const attempts = this.#count
      if (!result.error) {
        passage.succeeded()
        if (result.exhaustedMs !== undefined) this.#state.health.exhausted(target, result.exhaustedMs)
        const times = { began }
        return {
          target,
          attempts,
          times,
          handle: this.#following({ target, times }, this.#timed(passage)),
          untried: this.#untried().map((one) => one.target),
          ...result,
        } as Tried<Result>
      }
      if (!this.#endedByCaller(result.error)) passage.failed(result.error)
      rest = result.rest
      const times = { began, ended: this.#now() }
      this.#failed(candidate, { ...result, error: result.error, target, attempts, times })
    } catch (thrown) {
      passage.ended()
      throw thrown
    }
    if (rest) void rest.finally(() => passage.ended())
    else passage.ended()
    return undefined
  }

  /** Records an answer that has begun; its attempt handle reports how it ends. */
  #following({ target, times }: { target: Target; times: AttemptTimes }, passage: AttemptHandle): AttemptHandle {
    return this.#trial.explanation?.answered(target, times, passage) ?? passage
  }

  /** Returns the limits of an attempt: the last target that is left may take all the time that is left. */
  #limits(candidate: Candidate): AttemptLimits {
    const isLast = this.#count >= maxAttempts || !this.#untried(candidate).some((one) => this.#isOpen(one, true))
    const leftMs = this.#leftMs
    return {
      ...(!isLast && { firstEventMs: this.#trial.rules.firstEventMs }),
      ...(Number.isFinite(leftMs) && { totalMs: Math.max(1, Math.ceil(leftMs)) }),
    }
  }

  #failed(candidate: Candidate, attempt: Result & Attempted & { error: RouterError }): void {
    const failure = failureClass(attempt.error)
    this.#failures.addAttempt(attempt)
    candidate.isOver = failure.same === 'never'
    candidate.waits = failure.same === 'when_told'
    const mayHaveActed = this.#trial.acts === true && attempt.sent === true && failure.mayHaveBegun === true
    if (failure.next === 'never' || mayHaveActed) this.#hasEnded = true
    if (failure.next !== 'any') this.#dropUnable(candidate.target, failure.next)
  }

  /** Excludes failures that happen later because the time of the call is up: they are not counted either. */
  #timed(passage: AttemptHandle): AttemptHandle {
    return this.#endBy === Infinity ? passage : counting(passage, (error) => !this.#endedByCaller(error))
  }

  /**
   * Checks whether the time of the call was up. Its caller may have made it as short as it liked, so that it says nothing about the target.
   */
  #endedByCaller({ code }: RouterError): boolean {
    return code === 'provider_timeout' && this.#leftMs <= minMs
  }

  /** Leaves out the targets that cannot do what this one refused. */
  #dropUnable(refusedBy: Target, next: 'larger' | 'abler' | 'if_blocked' | 'never'): void {
    const { canTake, rules, explanation } = this.#trial
    for (const other of this.#candidates) {
      const isAble =
        next === 'if_blocked'
          ? rules.onBlocked === 'next'
          : next !== 'never' && canTake?.(other.target, refusedBy, next) === true
      if (isAble) continue
      if (!other.isOver && other.target !== refusedBy) explanation?.skip(other.target, 'failover', notAfter[next])
      other.isOver = true
    }
  }

  #skip(target: Target): void {
    for (const candidate of this.#candidates) if (candidate.target === target) candidate.isOver = true
    const ms = this.#closedFor(target)?.ms ?? shortMs
    this.#failures.add(target, closedTarget(target, ms))
  }

  /** Returns the same target, after a wait, where its failure may pass. */
  async #sameAgain(candidate: Candidate): Promise<Candidate | undefined> {
    if (candidate.isOver || candidate.waits) return undefined
    const { retries } = this.#state
    const waitMs = backoffMs(candidate.retries, this.#random)
    const isAllowed =
      candidate.retries < this.#trial.rules.retries &&
      this.#count < maxAttempts &&
      this.#leftMs > waitMs + minMs &&
      this.#closedFor(candidate.target) === undefined &&
      retries.take(candidate.target, this.#trial.caller.organization)
    if (!isAllowed) {
      candidate.isOver = true
      return undefined
    }
    candidate.retries++
    await pause(waitMs, this.#trial.signal)
    return candidate
  }

  #firstOpen(): Candidate | undefined {
    const untried = this.#untried()
    const found = untried.find((one) => this.#isOpen(one, untried.length > 1))
    const { explanation } = this.#trial
    if (explanation) {
      const passed = found ? untried.slice(0, untried.indexOf(found)) : untried
      const state = { ...this.#state, organization: this.#trial.caller.organization }
      for (const { target } of passed) passOver(explanation, target, state)
    }
    return found
  }

  /**
   * Picks a target when none is open: the one that is busy for a short time, after that time; else the one that opens next, immediately, as
   * it takes one call at a time.
   */
  async #firstToOpen(): Promise<Candidate | undefined> {
    const { retries } = this.#state
    const { rules, signal, caller } = this.#trial
    const left = this.#candidates
      .filter(({ isOver }) => !isOver)
      .map((candidate) => ({ candidate, closed: this.#closedFor(candidate.target) ?? { ms: 0, isBusy: true } }))
      .sort((one, other) => one.closed.ms - other.closed.ms)
    for (const { candidate, closed } of left) {
      const { ms, isBusy } = closed
      const waitMs = spreadMs(ms, this.#random)
      if (!isBusy || ms > rules.retryAfterMs || this.#leftMs < waitMs + minMs) continue
      const { target } = candidate
      if (candidate.isTried && (candidate.retries >= rules.retries || !retries.take(target, caller.organization)))
        continue
      if (candidate.isTried) candidate.retries++
      if (await retries.wait(target, maxWaiting, () => pause(waitMs, signal))) return candidate
    }
    return left.find(({ candidate }) => !candidate.isTried)?.candidate
  }

  #untried(except?: Candidate): Candidate[] {
    return this.#candidates.filter((one) => one !== except && !one.isOver && !one.isTried)
  }

  #isOpen({ target }: Candidate, hasOthers: boolean): boolean {
    const { health, limiters } = this.#state
    return limiters.of(target)?.isOpen !== false && health.isOpen(target, hasOthers, this.#trial.caller.organization)
  }

  #closedFor(target: Target): ClosedFor | undefined {
    return this.#state.health.closedFor(target, this.#trial.caller.organization)
  }

  #mayBegin(): boolean {
    return this.#count === 0 || mayTryAgain(this.#count, this.#leftMs)
  }

  get #leftMs(): number {
    return this.#endBy - this.#now()
  }
}

/** Reasons why targets are not asked after the failure of another one. */
const notAfter = {
  larger: 'has no larger context window than the target that found the request too large',
  abler: 'is not known to support what the target that refused the request does not',
  if_blocked: 'a content filter has refused the request, and `on_blocked` is not `next`',
  never: 'another target would fail in the same way',
} as const

/** Time after which another call tries a target that may have recovered. */
const shortMs = 1_000

/** Wraps an attempt handle so that its end admits another call. */
function releasing(passage: AttemptHandle, leave: Release): AttemptHandle {
  const ended = () => {
    leave()
    passage.ended()
  }
  return { ...passage, ended }
}

/** Wraps an attempt handle so that only some failures count. */
function counting(passage: AttemptHandle, counts: (error: RouterError) => boolean): AttemptHandle {
  return {
    succeeded: () => passage.succeeded(),
    produced: (...tokens) => passage.produced?.(...tokens),
    failed: (error) => {
      if (counts(error)) passage.failed(error)
    },
    ended: () => passage.ended(),
  }
}
