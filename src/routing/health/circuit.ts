import type { HealthSettings } from '../../core/routing/rules.ts'
import { Pace } from './pace.ts'

/** The calls that a circuit lets through: all, a share of them, one at a time, or none until a moment; paused is not a failure. */
export type CircuitState =
  | { kind: 'closed' }
  | { kind: 'recovering'; share: number }
  | { kind: 'half_open' }
  | { kind: 'open' | 'paused'; until: number }

const closed: CircuitState = { kind: 'closed' }

/** Facts that one event loop has found out, as they are sent to others; a missing member does not apply. */
export type CircuitFacts = {
  failing: ClosureFacts | undefined
  refusing: ClosureFacts | undefined
  paused: ClosureFacts | undefined
  openings: number
  recovering: Recovery | undefined
}

/** Moment at which a circuit closed again, and the organization that it closed for. */
type Recovery = { since: number; only: string | undefined }

/**
 * The circuit breaker of one address, credential or target: closed while calls go through, open while they do not. Failures of only one
 * organization may be due to its requests: it is open for that one alone, until another one meets the same. Times are milliseconds of one
 * monotonic clock; `caller` is an organization, and without one the state is the worst of all organizations.
 */
export class Circuit {
  #inARow = 0
  readonly #recent = new RecentFailures()
  /** Reason: it failed too often. */
  readonly #failing = new Closure()
  /** Reason: it refused a call, and the cause stays. */
  readonly #refusing = new Closure()
  /** Reason: it is busy, which is not a failure. */
  readonly #paused = new Closure()
  readonly #pace = new Pace()
  #openings = 0
  #trials = 0
  /** Set while calls come back little by little. */
  #recovering: Recovery | undefined

  state(now: number, { rampUpMs }: HealthSettings, caller?: string): CircuitState {
    const isFailing = this.#failing.concerns(caller)
    const isRefusing = this.#refusing.concerns(caller)
    const openUntil = Math.max(isFailing ? this.#failing.until : 0, isRefusing ? this.#refusing.until : 0)
    if (now < openUntil) return { kind: 'open', until: openUntil }
    if (this.#paused.concerns(caller) && now < this.#paused.until) return { kind: 'paused', until: this.#paused.until }
    if (isFailing || isRefusing) return { kind: 'half_open' }
    if (this.#recovering === undefined) return closed
    const { since, only } = this.#recovering
    const share = firstShare + (1 - firstShare) * ((now - since) / Math.max(1, rampUpMs))
    if (share >= 1) this.#recovering = undefined
    else if (only === undefined || caller === undefined || caller === only) return { kind: 'recovering', share }
    return closed
  }

  /** Returns the only organization that it is closed for; undefined where that is all, or none. */
  get only(): string | undefined {
    const standing = [this.#failing, this.#refusing, this.#paused].filter(({ stands }) => stands)
    const [first = this.#recovering, ...others] = standing
    return others.every(({ only }) => only === first?.only) ? first?.only : undefined
  }

  /** Counter of the changes that others have to know. Single failures are not among them: each event loop counts its own. */
  get revision(): number {
    return this.#failing.revision + this.#refusing.revision + this.#paused.revision
  }

  /** Checks that all calls go through. */
  get isClosed(): boolean {
    const isStanding = this.#failing.stands || this.#refusing.stands || this.#paused.stands
    return !isStanding && this.#recovering === undefined
  }

  /** Facts to share; undefined where all calls go through. */
  get facts(): CircuitFacts | undefined {
    if (this.isClosed) return undefined
    const closings = { failing: this.#failing.facts, refusing: this.#refusing.facts, paused: this.#paused.facts }
    return { ...closings, openings: this.#openings, recovering: this.#recovering }
  }

  /** Takes over the state that another event loop has sent. */
  merge(facts: CircuitFacts | undefined): void {
    const stood = this.#failing.stands
    this.#failing.merge(facts?.failing)
    this.#refusing.merge(facts?.refusing)
    this.#paused.merge(facts?.paused)
    this.#openings = facts?.openings ?? 0
    this.#recovering = facts?.recovering
    if (!stood || this.#failing.stands) return
    this.#inARow = 0
    this.#recent.clear()
  }

  /** Checks that no call is in flight which was let through although the circuit is open or half-open. */
  get isFree(): boolean {
    return this.#trials === 0
  }

  /**
   * Returns the time until it lets a call through that has no other target: none while some of the recent calls succeed, as every try of
   * such a call may. Otherwise the pace decides.
   */
  lastResortMs(now: number, settings: HealthSettings, caller?: string): number {
    const isFree = !this.isDown(now, settings, caller) || this.#isTrialAllowed(settings)
    const waitMs = isFree ? 0 : this.#pace.waitMs(now)
    if (waitMs === 0) return 0
    const closings = [this.#refusing, this.#paused].filter((closing) => closing.concerns(caller))
    return Math.max(waitMs, ...closings.map(({ until }) => until - now))
  }

  /**
   * Counts a call that has no other target, and is let through although the circuit is open or half-open: as a trial, whose end must be
   * reported, or by the pace.
   */
  beginLastResort(now: number, settings: HealthSettings, caller?: string): 'trial' | 'paced' | undefined {
    if (!this.isDown(now, settings, caller)) return undefined
    if (this.#isTrialAllowed(settings)) {
      this.beginTrial()
      return 'trial'
    }
    this.takePace(now)
    return 'paced'
  }

  /** Counts a call that the pace has let through, here or in another event loop. */
  takePace(now: number): void {
    this.#pace.take(now)
  }

  /** Checks whether it is down only because it is busy or refuses calls: it says so itself to everybody who asks, one after the other. */
  #isTrialAllowed(settings: HealthSettings): boolean {
    return this.isFree && this.#inARow < settings.inARow
  }

  /** Checks whether the last calls have all failed, or it said that it takes none. */
  isDown(now: number, settings: HealthSettings, caller?: string): boolean {
    const { kind } = this.state(now, settings, caller)
    if (kind === 'closed' || kind === 'recovering') return false
    return kind === 'paused' || this.#refusing.concerns(caller) || this.#inARow >= settings.inARow
  }

  beginTrial(): void {
    this.#trials++
  }

  endTrial(): void {
    this.#trials--
  }

  succeeded(now: number, { windowMs }: HealthSettings, caller?: string): void {
    this.#inARow = 0
    this.#recent.add(now, windowMs)
    if (this.#paused.concerns(caller)) this.#paused.end()
    else this.#paused.succeeded(now, caller)
    for (const closing of [this.#failing, this.#refusing]) {
      const { only } = closing
      if (closing.succeeded(now, caller)) this.#close(now, only)
    }
  }

  failed(now: number, settings: HealthSettings, random: () => number, caller?: string): void {
    this.#inARow++
    this.#pace.failed(now)
    this.#recent.add(now, settings.windowMs, caller ?? '')
    const { calls, failed, mostly } = this.#recent.share()
    const isBad = this.#inARow >= settings.inARow || (calls >= settings.of && failed >= settings.share)
    const { stands, until } = this.#failing
    if (!stands) {
      if (isBad) this.#open(now, settings, random, mostly)
    } else if (!this.#failing.concerns(caller)) {
      // No call of anybody has succeeded since.
      if (this.#inARow >= settings.inARow) this.#open(now, settings, random, undefined)
    } else if (now >= until) {
      // Calls that began before it opened may fail later; a trial must not.
      this.#open(now, settings, random, this.#failing.only)
    }
  }

  /** Pauses a target that says it is busy for so long. */
  pause(ms: number, now: number, caller?: string): void {
    this.#pace.failed(now)
    this.#paused.add(now + ms, now, caller)
  }

  /** Opens for this time, whatever happened before. */
  openFor(ms: number, now: number, caller?: string): void {
    this.#pace.failed(now)
    this.#refusing.add(now + ms, now, caller)
  }

  #open(now: number, { openMs, maxOpenMs }: HealthSettings, random: () => number, only: string | undefined): void {
    const ms = Math.min(maxOpenMs, openMs * growth ** Math.min(this.#openings, maxGrowth))
    this.#openings++
    this.#recovering = undefined
    this.#failing.begin(now + ms * (1 + (2 * random() - 1) * spread), only)
  }

  #close(since: number, only: string | undefined): void {
    this.#openings = 0
    this.#recent.clear()
    this.#recovering = { since, only }
  }
}

/** Share of all calls that is let through when it has just closed again. */
const firstShare = 0.1
/** Fraction by which an open time is longer or shorter, so that not all targets are tried again at the same moment. */
const spread = 0.2
/** Factor by which each open time grows: a target that is back after a minute gets calls again within half a minute. */
const growth = 1.3
const maxGrowth = 20

/** Counts calls and their failures within about a window of time, in slots: nothing is kept of single calls. */
export class RecentFailures {
  #slots: Slot[] = []

  /**
   * Adds the end of a call at `now`, in milliseconds of one clock, and forgets those older than the window; `failedFor` is the organization
   * whose call failed.
   */
  add(now: number, windowMs: number, failedFor?: string): void {
    const slotMs = windowMs / slots
    let last = this.#slots.at(-1)
    if (!last || now - last.at >= slotMs) {
      last = { at: now, calls: 0, failures: new Map() }
      this.#slots = this.#slots.filter(({ at }) => at > now - windowMs)
      this.#slots.push(last)
    }
    last.calls++
    if (failedFor !== undefined) last.failures.set(failedFor, (last.failures.get(failedFor) ?? 0) + 1)
  }

  /** Returns the number of calls, the number that failed, and the organization that made more than half of these. */
  share(): { calls: number; failed: number; mostly: string | undefined } {
    let calls = 0
    let failures = 0
    const byCaller = new Map<string, number>()
    for (const slot of this.#slots) {
      calls += slot.calls
      for (const [caller, count] of slot.failures) {
        failures += count
        byCaller.set(caller, (byCaller.get(caller) ?? 0) + count)
      }
    }
    const most = [...byCaller].find(([, count]) => count > failures / 2)
    return { calls, failed: calls === 0 ? 0 : failures / calls, mostly: most?.[0] || undefined }
  }

  clear(): void {
    this.#slots = []
  }
}

type Slot = { at: number; calls: number; failures: Map<string, number> }

const slots = 10

/** A circuit reason that applies, as one event loop sends it to others. */
type ClosureFacts = { until: number; only: string | undefined; successes: number; isDoubted: boolean }

/** A time in which a circuit is closed to calls: those of all organizations, or of the only one that it concerns. */
class Closure {
  /** Grows with every change. */
  revision = 0
  #until: number | undefined
  #only: string | undefined
  #successes = 0
  /** Calls of others have succeeded in the meantime. */
  #isDoubted = false

  /** Checks that it has begun and has not been ended. */
  get stands(): boolean {
    return this.#until !== undefined
  }

  /** End of the time for which it applies; 0 where it does not. */
  get until(): number {
    return this.#until ?? 0
  }

  get only(): string | undefined {
    return this.#only
  }

  /** Facts to share; undefined where it does not apply. */
  get facts(): ClosureFacts | undefined {
    if (!this.stands) return undefined
    return { until: this.until, only: this.#only, successes: this.#successes, isDoubted: this.#isDoubted }
  }

  /** Takes over the state that another event loop has sent. */
  merge(facts: ClosureFacts | undefined): void {
    if (facts) this.begin(facts.until, facts.only)
    else this.end()
    this.#successes = facts?.successes ?? 0
    this.#isDoubted = facts?.isDoubted ?? false
  }

  /** Checks whether it applies to the calls of an organization; undefined for any. */
  concerns(caller: string | undefined): boolean {
    return this.stands && (this.#only === undefined || caller === undefined || caller === this.#only)
  }

  begin(until: number, only: string | undefined): void {
    this.#until = until
    this.#only = only
    this.#successes = 0
    this.#isDoubted = false
    this.revision++
  }

  /** Records one more call that was turned away: of the same organization, or of another one, which makes it concern all. */
  add(until: number, now: number, caller: string | undefined): void {
    if (!this.stands || (now >= this.until && this.#only !== undefined)) this.begin(until, caller)
    else if (caller === undefined) this.begin(Math.max(this.until, until), undefined)
    else if (this.concerns(caller)) this.begin(Math.max(this.until, until), this.#only)
    else if (this.#isDoubted) this.begin(until, caller)
    else this.begin(Math.max(this.until, until), undefined)
  }

  /** Records a call that has succeeded. Returns whether it was the one that ends it. */
  succeeded(now: number, caller: string | undefined): boolean {
    if (!this.stands) return false
    if (!this.concerns(caller)) {
      if (!this.#isDoubted) this.revision++
      this.#isDoubted = true
      return false
    }
    this.#successes++
    this.revision++
    // The next trial need not wait.
    if (this.#successes < successesToEnd) this.#until = Math.min(this.until, now)
    else this.end()
    return !this.stands
  }

  end(): void {
    this.#until = undefined
    this.#only = undefined
    this.revision++
  }
}

const successesToEnd = 2
