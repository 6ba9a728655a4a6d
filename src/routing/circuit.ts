import type { HealthSettings } from '../core/routing-rules.ts'
import { RecentFailures } from './recent-failures.ts'

/** Which calls a circuit lets through: all, a share of them, one at a time, or none until a moment; paused is no failure. */
export type CircuitState =
  | { kind: 'closed' }
  | { kind: 'recovering'; share: number }
  | { kind: 'half_open' }
  | { kind: 'open' | 'paused'; until: number }

const closed: CircuitState = { kind: 'closed' }

/**
 * The circuit breaker of one address, credential or target: closed while calls go through, open while they do not. Times are
 * milliseconds of one monotonic clock.
 */
export class Circuit {
  #inARow = 0
  readonly #recent = new RecentFailures()
  /** Set while it is open or half-open. */
  #openUntil: number | undefined
  /** Busy until then: this is no failure. */
  #pausedUntil = 0
  #openings = 0
  #successes = 0
  #trials = 0
  /** When it closed again; set while calls come back little by little. */
  #closedAt: number | undefined

  state(now: number, { rampMs }: HealthSettings): CircuitState {
    if (this.#openUntil !== undefined && now < this.#openUntil) return { kind: 'open', until: this.#openUntil }
    if (now < this.#pausedUntil) return { kind: 'paused', until: this.#pausedUntil }
    if (this.#openUntil !== undefined) return { kind: 'half_open' }
    if (this.#closedAt === undefined) return closed
    const share = firstShare + (1 - firstShare) * ((now - this.#closedAt) / Math.max(1, rampMs))
    if (share < 1) return { kind: 'recovering', share }
    this.#closedAt = undefined
    return closed
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

  succeeded(now: number, { windowMs }: HealthSettings): void {
    this.#inARow = 0
    this.#recent.add(false, now, windowMs)
    this.#pausedUntil = 0
    if (this.#openUntil === undefined) return
    this.#successes++
    // The next trial need not wait.
    if (this.#successes < successesToClose) this.#openUntil = Math.min(this.#openUntil, now)
    else this.#close(now)
  }

  failed(now: number, settings: HealthSettings, random: () => number): void {
    this.#inARow++
    this.#recent.add(true, now, settings.windowMs)
    const { calls, failed } = this.#recent.share()
    const isBad = this.#inARow >= settings.inARow || (calls >= settings.of && failed >= settings.share)
    // Calls that began before it opened may fail later; a trial must not.
    if (this.#openUntil === undefined ? isBad : now >= this.#openUntil) this.#open(now, settings, random)
  }

  /** Busy for so long, by its own words. */
  pause(ms: number, now: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, now + ms)
  }

  /** Open for so long, whatever happened before. */
  openFor(ms: number, now: number): void {
    this.#successes = 0
    this.#openUntil = Math.max(this.#openUntil ?? 0, now + ms)
  }

  #open(now: number, { openMs, openMostMs }: HealthSettings, random: () => number): void {
    const ms = Math.min(openMostMs, openMs * growth ** Math.min(this.#openings, mostGrowth))
    this.#openings++
    this.#successes = 0
    this.#closedAt = undefined
    this.#openUntil = now + ms * (1 + (2 * random() - 1) * spread)
  }

  #close(now: number): void {
    this.#openUntil = undefined
    this.#openings = 0
    this.#recent.clear()
    this.#closedAt = now
  }
}

/** Of all calls, when it has just closed again. */
const firstShare = 0.1
const successesToClose = 2
/** By how much an open time is longer or shorter, so that not all targets are tried again at once. */
const spread = 0.2
/** How much longer it is open each time: one that is back after a minute gets calls again within half a minute. */
const growth = 1.3
const mostGrowth = 20
