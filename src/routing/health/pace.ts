/**
 * Pace of the calls to a target that seems to be down, where they have no other target: a token bucket. It protects the provider from many
 * clients that all try again, and leaves a single one all its tries. The longer no call has failed, the faster it becomes, as the calls
 * in flight seem to succeed then: answers that take long do not keep others waiting. Times are milliseconds of one monotonic clock.
 */
export class Pace {
  #tokens = burst
  #filledAt = 0
  #failedAt = 0

  /** Records that a call has failed. */
  failed(now: number): void {
    this.#fill(now)
    this.#failedAt = now
  }

  /** Returns the time until the next call may begin: 0 if it may now. */
  waitMs(now: number): number {
    this.#fill(now)
    return this.#tokens >= 1 ? 0 : (1 - this.#tokens) / this.#perMs(now)
  }

  /** Counts a call that begins. */
  take(now: number): void {
    this.#fill(now)
    this.#tokens--
  }

  #fill(now: number): void {
    this.#tokens = Math.min(burst, this.#tokens + Math.max(0, now - this.#filledAt) * this.#perMs(now))
    this.#filledAt = now
  }

  #perMs(now: number): number {
    const doublings = Math.max(0, now - this.#failedAt - quietMs) / doublingMs
    return (perSecond / 1_000) * 2 ** Math.min(doublings, maxDoublings)
  }
}

/** Calls per second while calls fail: an SDK that calls without a pause makes 2.3 tries per second while all of them fail. */
const perSecond = 2.5
/** Calls that may begin together. */
const burst = 5
/** Time without a failure after which the pace grows, and the time in which it doubles from then on. */
const [quietMs, doublingMs] = [1_000, 500]
const maxDoublings = 10
