import { setTimeout as delay } from 'node:timers/promises'
import { type Target, targetId } from '../../manifest/target.ts'

/**
 * Budget that bounds the retries of all calls together, by target: an outage must not multiply the calls to it. Each organization, the
 * `caller`, has its own: one that sends requests which always fail uses up nobody else's. First attempts earn retries, and so does time:
 * a caller with few calls always has one.
 */
export class RetryBudget {
  /** Cost of retries, less what has been earned back since; without an entry the whole budget is left. */
  readonly #spent = new Map<string, Spent>()
  readonly #waiting = new Map<string, number>()
  readonly #now: () => number

  /** `now` is milliseconds of a monotonic clock. */
  constructor({ now = () => performance.now() }: { now?: () => number } = {}) {
    this.#now = now
  }

  /** Counts a first attempt at a target. */
  earn(target: Target, caller: string): void {
    if (this.#spent.size === 0) return
    const id = `${targetId(target)} ${caller}`
    if (!this.#spent.has(id)) return
    const now = this.#now()
    const spent = this.#spentAt(id, now) - 1
    if (spent <= 0) this.#spent.delete(id)
    else this.#spent.set(id, { spent, at: now })
  }

  /** Checks whether a target may be asked again, and counts it. */
  take(target: Target, caller: string): boolean {
    const id = `${targetId(target)} ${caller}`
    const now = this.#now()
    const spent = this.#spentAt(id, now)
    if (spent + attemptsPerRetry > maxSaved) return false
    // Where unknown models are allowed, clients may invent names.
    if (this.#spent.size >= maxTargets) this.#spent.clear()
    this.#spent.set(id, { spent: spent + attemptsPerRetry, at: now })
    return true
  }

  #spentAt(id: string, now: number): number {
    const known = this.#spent.get(id)
    if (!known) return 0
    return Math.max(0, known.spent - ((now - known.at) / 1_000) * retriesPerSecond * attemptsPerRetry)
  }

  /** Waits for a busy target, unless as many calls wait for it already. Returns whether it has waited. */
  async wait(target: Target, most: number, waiting: () => Promise<void>): Promise<boolean> {
    const id = targetId(target)
    const others = this.#waiting.get(id) ?? 0
    if (others >= most) return false
    this.#waiting.set(id, others + 1)
    try {
      await waiting()
      return true
    } finally {
      const left = (this.#waiting.get(id) ?? 1) - 1
      if (left > 0) this.#waiting.set(id, left)
      else this.#waiting.delete(id)
    }
  }
}

type Spent = { spent: number; at: number }

/** Retries that each second earns. */
const retriesPerSecond = 1
/** Number of first attempts that earn one retry. Each earns 1 and a retry costs this many: fractions would not add up to a whole one. */
const attemptsPerRetry = 5
/** The cost of ten retries. */
const maxSaved = 10 * attemptsPerRetry
const maxTargets = 10_000

/** Returns the wait before the retry of this number, counted from 0: anything up to a bound that doubles. Milliseconds. */
export function backoffMs(retry: number, random: () => number): number {
  return random() * Math.min(maxBackoffMs, firstBackoffMs * 2 ** retry)
}

/** Returns the wait for a target that named a time: that time, and up to a fifth more, so that not all come back at once. */
export function spreadMs(toldMs: number, random: () => number): number {
  return toldMs * (1 + random() * waitSpread)
}

/** Waits, unless the call ends before. Rejects with the reason of the signal. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal })
  } catch {
    throw signal.reason
  }
}

const firstBackoffMs = 250
const maxBackoffMs = 4_000
const waitSpread = 0.2
