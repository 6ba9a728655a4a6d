import type { HealthSettings } from '../../core/routing/rules.ts'
import { Closing, type ClosingFacts } from './closing.ts'
import { RecentFailures } from './recent-failures.ts'

/** Which calls a circuit lets through: all, a share of them, one at a time, or none until a moment; paused is no failure. */
export type CircuitState =
  | { kind: 'closed' }
  | { kind: 'recovering'; share: number }
  | { kind: 'half_open' }
  | { kind: 'open' | 'paused'; until: number }

const closed: CircuitState = { kind: 'closed' }

/** What one event loop has found out, as others are told it; a member that is missing does not stand. */
export type CircuitFacts = {
  failing: ClosingFacts | undefined
  refusing: ClosingFacts | undefined
  paused: ClosingFacts | undefined
  openings: number
  recovering: Recovery | undefined
}

/** When a circuit closed again, and for whom. */
type Recovery = { since: number; only: string | undefined }

/**
 * The circuit breaker of one address, credential or target: closed while calls go through, open while they do not. What only one
 * organization has met may be due to what it sends: it is closed for that one alone, until another one meets the same. Times are
 * milliseconds of one monotonic clock; `caller` is an organization, and without one the state is that of whom it is worst for.
 */
export class Circuit {
  #inARow = 0
  readonly #recent = new RecentFailures()
  /** It failed too often. */
  readonly #failing = new Closing()
  /** It refused a call for a reason that stays. */
  readonly #refusing = new Closing()
  /** It is busy, which is no failure. */
  readonly #paused = new Closing()
  #openings = 0
  #trials = 0
  /** Set while calls come back little by little. */
  #recovering: Recovery | undefined

  state(now: number, { rampMs }: HealthSettings, caller?: string): CircuitState {
    const isFailing = this.#failing.concerns(caller)
    const isRefusing = this.#refusing.concerns(caller)
    const openUntil = Math.max(isFailing ? this.#failing.until : 0, isRefusing ? this.#refusing.until : 0)
    if (now < openUntil) return { kind: 'open', until: openUntil }
    if (this.#paused.concerns(caller) && now < this.#paused.until) return { kind: 'paused', until: this.#paused.until }
    if (isFailing || isRefusing) return { kind: 'half_open' }
    if (this.#recovering === undefined) return closed
    const { since, only } = this.#recovering
    const share = firstShare + (1 - firstShare) * ((now - since) / Math.max(1, rampMs))
    if (share >= 1) this.#recovering = undefined
    else if (only === undefined || caller === undefined || caller === only) return { kind: 'recovering', share }
    return closed
  }

  /** The only organization that it is closed for; undefined where that is all, or none. */
  get only(): string | undefined {
    const standing = [this.#failing, this.#refusing, this.#paused].filter(({ stands }) => stands)
    const [first = this.#recovering, ...others] = standing
    return others.every(({ only }) => only === first?.only) ? first?.only : undefined
  }

  /** Grows with every change that others are to know. Single failures are none: each event loop counts its own. */
  get revision(): number {
    return this.#failing.revision + this.#refusing.revision + this.#paused.revision
  }

  /** Undefined where all calls go through. */
  get facts(): CircuitFacts | undefined {
    const closings = { failing: this.#failing.facts, refusing: this.#refusing.facts, paused: this.#paused.facts }
    const { failing, refusing, paused } = closings
    if (!failing && !refusing && !paused && !this.#recovering) return undefined
    return { ...closings, openings: this.#openings, recovering: this.#recovering }
  }

  /** Goes on as another event loop has told. */
  adopt(facts: CircuitFacts | undefined): void {
    const stood = this.#failing.stands
    this.#failing.adopt(facts?.failing)
    this.#refusing.adopt(facts?.refusing)
    this.#paused.adopt(facts?.paused)
    this.#openings = facts?.openings ?? 0
    this.#recovering = facts?.recovering
    if (!stood || this.#failing.stands) return
    this.#inARow = 0
    this.#recent.clear()
  }

  /** Whether no call is on its way that was let through although the circuit is open or half-open. */
  get isFree(): boolean {
    return this.#trials === 0
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

  /** Busy for so long, by its own words. */
  pause(ms: number, now: number, caller?: string): void {
    this.#paused.add(now + ms, now, caller)
  }

  /** Open for so long, whatever happened before. */
  openFor(ms: number, now: number, caller?: string): void {
    this.#refusing.add(now + ms, now, caller)
  }

  #open(now: number, { openMs, openMostMs }: HealthSettings, random: () => number, only: string | undefined): void {
    const ms = Math.min(openMostMs, openMs * growth ** Math.min(this.#openings, mostGrowth))
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

/** Of all calls, when it has just closed again. */
const firstShare = 0.1
/** By how much an open time is longer or shorter, so that not all targets are tried again at once. */
const spread = 0.2
/** How much longer it is open each time: one that is back after a minute gets calls again within half a minute. */
const growth = 1.3
const mostGrowth = 20
