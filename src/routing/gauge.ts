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
    const kept = this.#count === 0 ? 0 : 2 ** ((this.#at - now) / halfLifeMs)
    this.#value = value > this.#value ? value : this.#value * kept + value * (1 - kept)
    this.#at = now
    this.#count++
    this.#passedOver = 0
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
