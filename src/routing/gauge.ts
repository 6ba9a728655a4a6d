/** Several measurements: when the last one was made, how many they are, the largest and the mean. */
export type Measured = { at: number; count: number; most: number; mean: number }

/**
 * An average of what was measured that rises at once and falls with a half-life: who became slow is known after one call.
 * While nothing is measured it falls as well, so that who was slow is tried again; but not faster than calls pass it over,
 * or it would be forgotten where calls are rare.
 */
export class Gauge {
  #value = 0
  #at = 0
  #count = 0
  #passedOver = 0

  /** How often it was measured. */
  get count(): number {
    return this.#count
  }

  /** Adds a measurement. `now` is milliseconds of one monotonic clock. */
  add(value: number, now: number): void {
    this.addSeveral({ at: now, count: 1, most: value, mean: value })
  }

  /** Adds measurements of another event loop, which may be a little older than those that are known. */
  addSeveral({ at, count, most, mean }: Measured): void {
    const kept = this.#count === 0 ? 0 : Math.min(1, 2 ** ((this.#at - at) / halfLifeMs))
    this.#value = most > this.#value ? most : this.#value * kept + mean * (1 - kept)
    this.#at = Math.max(this.#at, at)
    this.#count += count
    this.#passedOver = 0
  }

  /** What is known, as one measurement for those who know nothing yet. */
  get measured(): Measured {
    return { at: this.#at, count: this.#count, most: this.#value, mean: this.#value }
  }

  /** Another one was chosen because of it. */
  passOver(): void {
    this.#passedOver++
  }

  /** What the next measurement will be; Infinity where nothing was measured. */
  estimate(now: number): number {
    if (this.#count === 0) return Infinity
    const halvings = Math.min((now - this.#at) / halfLifeMs, this.#passedOver / callsPerHalving)
    return halvings <= 0 ? this.#value : this.#value * 2 ** -halvings
  }
}

const halfLifeMs = 10_000
const callsPerHalving = 10
