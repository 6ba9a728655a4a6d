import { asRouterError, type RouterError } from '../core/errors.ts'
import type { Target } from '../manifest/target.ts'
import { counting, releasing } from './attempt-handles.ts'
import { limitsBefore } from './attempt-limits.ts'
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
/** The most failed attempts of one call that are billed: a client that tries again pays them each time. */
const maxBilled = 2

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

/**
 * A target of the call. `waits`: it is asked again only when it is not busy any more; `waitedMs`: for how long the call has waited for that;
 * `lostRaces`: how often another call was faster to try it; `mayRepeat`: a retry of it has been counted and not been made; `isHurried`: the caller's
 * time did not leave it its own.
 */
type Candidate = {
  target: Target
  retries: number
  isTried: boolean
  isOver: boolean
  lostRaces: number
  waits: boolean
  waitedMs: number
  mayRepeat: boolean
  isHurried: boolean
}

/** A target to be asked next. `isLast`: the call has no other one, so that it is asked although it may not be open. */
type Next = { candidate: Candidate; isLast: boolean }

class Attempts<Result extends Outcome> {
  readonly #trial: Trial<Result>
  readonly #state: RoutingState
  readonly #random: () => number
  readonly #now: () => number
  readonly #pause: typeof pause
  readonly #endBy: number
  readonly #candidates: Candidate[]
  readonly #failures: Failures<Result>
  #count = 0
  #billed = 0
  #hasEnded = false

  constructor(trial: Trial<Result>, state: RoutingState) {
    this.#trial = trial
    this.#failures = new Failures(trial)
    this.#state = state
    this.#random = state.random ?? Math.random
    this.#now = state.now ?? (() => performance.now())
    this.#pause = state.pause ?? pause
    this.#endBy = this.#now() + (trial.rules.totalMs ?? Infinity)
    this.#count = trial.before ?? 0
    this.#candidates = trial.targets.map((target) => ({
      target,
      retries: 0,
      isTried: false,
      isOver: false,
      lostRaces: 0,
      waits: false,
      waitedMs: 0,
      mayRepeat: false,
      isHurried: false,
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
    let next = await this.#next()
    while (next && this.#mayBegin()) {
      const { candidate } = next
      const gate = this.#state.limiters.of(candidate.target)
      const leave = gate ? await this.#acquire(candidate, gate) : undefined
      const handle = gate && !leave ? undefined : this.#enter(next, leave)
      if (handle) {
        const succeeded = await this.#attempt(candidate, handle)
        if (succeeded) return succeeded
      }
      next = this.#hasEnded ? undefined : await this.#next()
    }
    return this.#failures.toReport(this.#count) as Tried<Result>
  }

  /** Picks the next target: each that is open is asked once before any is asked again, and those that are not open come last. */
  async #next(): Promise<Next | undefined> {
    const open = this.#firstOpen()
    if (open) return { candidate: open, isLast: false }
    if (this.#count >= maxAttempts) return undefined
    const last = (await this.#again()) ?? (await this.#firstToOpen())
    return last && { candidate: last, isLast: true }
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

  /** Begins an attempt; undefined where other calls try this target already, and it takes no more. */
  #enter({ candidate, isLast }: Next, leave: Release | undefined): AttemptHandle | undefined {
    const { target } = candidate
    const { health, measurements } = this.#state
    const { organization } = this.#trial.caller
    const closed = isLast ? this.#closedFor(target) : undefined
    if (
      closed?.isBusy &&
      this.#mayWait(
        candidate,
        closed.ms,
        spreadMs(closed.ms, () => 1),
      )
    ) {
      // It became busy while the call waited.
      leave?.()
      return undefined
    }
    const handle = isLast ? health.enterAsLastResort(target, organization) : health.enter(target, organization)
    if (!handle) {
      leave?.()
      if (isLast) this.#skip(candidate)
      // It may still be the only one that is left.
      else candidate.lostRaces++
      return undefined
    }
    const { kind, rules } = this.#trial
    const left = leave ? releasing(handle, leave) : handle
    if (!kind) return left
    const limitMs = kind.streams ? rules.firstEventMs : target.provider.timeouts.wholeMs
    return measurements.begin(target, { kind, limitMs }, left)
  }

  /** Makes one attempt; undefined when it failed. */
  async #attempt(candidate: Candidate, handle: AttemptHandle) {
    const { target } = candidate
    this.#failures.goOn()
    if (!candidate.isTried) this.#state.retries.earn(target, this.#trial.caller.organization)
    candidate.isTried = true
    candidate.mayRepeat = false
    this.#count++
    const began = this.#now()
    let rest: Promise<unknown> | undefined
    try {
      const result = await this.#trial.attempt(target, this.#limits(candidate))
      const attempts = this.#count
      if (!result.error) {
        handle.succeeded()
        if (result.exhaustedMs !== undefined) this.#state.health.exhausted(target, result.exhaustedMs)
        const times = { began }
        return {
          target,
          attempts,
          times,
          handle: this.#following({ target, times }, this.#timed(handle)),
          untried: this.#untried().map((one) => one.target),
          ...result,
        } as Tried<Result>
      }
      if (!this.#endedByCaller(result.error, candidate)) handle.failed(result.error)
      rest = result.rest
      const times = { began, ended: this.#now() }
      this.#failed(candidate, { ...result, error: result.error, target, attempts, times })
    } catch (thrown) {
      handle.ended()
      throw thrown
    }
    if (rest) void rest.finally(() => handle.ended())
    else handle.ended()
    return undefined
  }

  /** Records an answer that has begun; its attempt handle reports how it ends. */
  #following({ target, times }: { target: Target; times: AttemptTimes }, handle: AttemptHandle): AttemptHandle {
    return this.#trial.explanation?.answered(target, times, handle) ?? handle
  }

  /** Returns the limits of an attempt: the last target that is left may take all the time that is left. */
  #limits(candidate: Candidate): AttemptLimits {
    const { rules, kind, caller } = this.#trial
    const others = this.#untried(candidate)
    const usable = others.filter((one) => !this.#state.health.isDown(one.target, caller.organization))
    const following = Math.min(usable.length, maxAttempts - this.#count)
    const leftMs = this.#leftMs
    const isOpen = others.some((one) => this.#isOpen(one, true))
    const limitsIn = (leftMs: number) => limitsBefore(following, { leftMs, target: candidate.target, rules, isOpen })
    const name = kind?.streams ? 'firstEventMs' : 'wholeMs'
    const limits: AttemptLimits = following > 0 ? limitsIn(leftMs) : {}
    candidate.isHurried = rules.isTotalOfCaller === true && (limits[name] ?? Infinity) < limitsIn(Infinity)[name]
    return { ...limits, ...(Number.isFinite(leftMs) && { totalMs: Math.max(1, Math.ceil(leftMs)) }) }
  }

  #failed(candidate: Candidate, attempt: Result & Attempted & { error: RouterError }): void {
    const failure = failureClass(attempt.error)
    // A failure that is reported inside of an answer was found after the provider had begun.
    const { provider, providerStatus } = attempt.error
    const hasBegun = failure.mayHaveBegun === true || (provider !== undefined && providerStatus === undefined)
    const mayHaveActed = this.#trial.acts === true && attempt.sent === true && hasBegun
    this.#failures.addAttempt(attempt, { mayHaveActed })
    // Whether to pay once more for the same is left to the client.
    const isBilled = attempt.error.billed !== undefined
    if (isBilled) this.#billed++
    candidate.isOver = failure.same === 'never' || isBilled
    candidate.waits = failure.same === 'when_told'
    if (failure.next === 'never' || mayHaveActed || this.#billed >= maxBilled) this.#hasEnded = true
    if (failure.next !== 'any') this.#dropUnable(candidate.target, failure.next)
  }

  /** Excludes failures that happen later because the time of the call is up: they are not counted either. */
  #timed(handle: AttemptHandle): AttemptHandle {
    return this.#endBy === Infinity ? handle : counting(handle, (error) => !this.#endedByCaller(error))
  }

  /**
   * Checks whether the time of the call was up, or too short. Its caller may have made it as short as it liked, so that it says nothing
   * about the target.
   */
  #endedByCaller({ code }: RouterError, candidate?: Candidate): boolean {
    return code === 'provider_timeout' && (this.#leftMs <= minMs || candidate?.isHurried === true)
  }

  /** Leaves out the targets that cannot do what this one refused; those that have been asked did not refuse it. */
  #dropUnable(refusedBy: Target, next: 'larger' | 'abler' | 'if_blocked' | 'never'): void {
    const { canTake, rules, explanation } = this.#trial
    for (const other of this.#candidates) {
      const isAble =
        next === 'if_blocked'
          ? rules.onBlocked === 'next'
          : next !== 'never' && canTake?.(other.target, refusedBy, next) === true
      if (isAble || (other.isTried && other.target !== refusedBy)) continue
      if (!other.isOver && other.target !== refusedBy) explanation?.skip(other.target, 'failover', notAfter[next])
      other.isOver = true
    }
  }

  #skip(candidate: Candidate): void {
    const { target, isTried } = candidate
    candidate.isOver = true
    if (isTried) return
    const ms = this.#state.health.lastResortMs(target, this.#trial.caller.organization)
    this.#failures.add(target, closedTarget(target, Math.max(ms, shortMs)))
  }

  /** Picks a target to be asked again after a wait, where its failure may pass: the one that was asked again least often. */
  async #again(): Promise<Candidate | undefined> {
    const { organization } = this.#trial.caller
    const tried = this.#candidates
      .filter(({ isTried, isOver, waits }) => isTried && !isOver && !waits)
      .sort((one, other) => one.retries - other.retries)
    for (const candidate of tried) {
      const waitMs = backoffMs(candidate.retries, this.#random)
      const isAllowed =
        this.#count < maxAttempts &&
        this.#leftMs > waitMs + minMs &&
        !this.#state.health.isDown(candidate.target, organization) &&
        this.#mayRepeat(candidate)
      if (!isAllowed) continue
      await this.#pause(waitMs, this.#trial.signal)
      return candidate
    }
    return undefined
  }

  /** Checks whether a target may be asked once more by this call and by all calls together, and counts it. */
  #mayRepeat(candidate: Candidate): boolean {
    if (candidate.mayRepeat) return true
    const { rules, caller } = this.#trial
    if (candidate.retries >= rules.retries) return false
    if (!this.#state.retries.take(candidate.target, caller.organization)) return false
    candidate.retries++
    candidate.mayRepeat = true
    return true
  }

  #firstOpen(): Candidate | undefined {
    const untried = this.#untried()
    const findOpen = (lostRaces: number) =>
      untried.find((one) => one.lostRaces === lostRaces && this.#isOpen(one, untried.length > 1))
    const found = findOpen(0) ?? findOpen(1)
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
   * it takes some calls.
   */
  async #firstToOpen(): Promise<Candidate | undefined> {
    const left = this.#candidates
      .filter(({ isOver, isTried, waits }) => !isOver && (!isTried || waits))
      .map((candidate) => ({ candidate, closed: this.#closedFor(candidate.target) ?? { ms: 0, isBusy: true } }))
      .sort((one, other) => one.closed.ms - other.closed.ms)
    for (const { candidate, closed } of left) {
      const waitMs = spreadMs(closed.ms, this.#random)
      if (!closed.isBusy || !this.#mayWait(candidate, closed.ms, waitMs)) continue
      if (candidate.isTried && !this.#mayRepeat(candidate)) continue
      const waiting = () => this.#pause(waitMs, this.#trial.signal)
      candidate.waitedMs += closed.ms
      if (await this.#state.retries.wait(candidate.target, maxWaiting, waiting)) return candidate
    }
    return left.find(({ candidate }) => !candidate.isTried)?.candidate
  }

  /** Checks whether the call may wait for a target that is busy: all its waits together are bounded. */
  #mayWait(candidate: Candidate, ms: number, waitMs: number): boolean {
    return candidate.waitedMs + ms <= this.#trial.rules.retryAfterMs && this.#leftMs >= waitMs + minMs
  }

  #untried(except?: Candidate): Candidate[] {
    return this.#candidates.filter((one) => one !== except && !one.isOver && !one.isTried)
  }

  #isOpen({ target }: Candidate, hasOthers: boolean): boolean {
    const { health, limiters } = this.#state
    const { key, organization } = this.#trial.caller
    return limiters.of(target)?.isOpenTo(key) !== false && health.isOpen(target, hasOthers, organization)
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
