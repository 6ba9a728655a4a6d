/** A closing that stands, as one event loop tells it to others. */
export type ClosingFacts = { until: number; only: string | undefined; successes: number; isDoubted: boolean }

/** A time in which a circuit is closed to calls: those of all organizations, or of the only one that it concerns. */
export class Closing {
  /** Grows with every change. */
  revision = 0
  #until: number | undefined
  #only: string | undefined
  #successes = 0
  /** Calls of others have succeeded in the meantime. */
  #isDoubted = false

  /** It has begun, and has not been ended. */
  get stands(): boolean {
    return this.#until !== undefined
  }

  /** 0 where it does not stand. */
  get until(): number {
    return this.#until ?? 0
  }

  get only(): string | undefined {
    return this.#only
  }

  /** Undefined where it does not stand. */
  get facts(): ClosingFacts | undefined {
    if (!this.stands) return undefined
    return { until: this.until, only: this.#only, successes: this.#successes, isDoubted: this.#isDoubted }
  }

  /** Goes on as another event loop has told. */
  adopt(facts: ClosingFacts | undefined): void {
    if (facts) this.begin(facts.until, facts.only)
    else this.end()
    this.#successes = facts?.successes ?? 0
    this.#isDoubted = facts?.isDoubted ?? false
  }

  /** Whether it stands for the calls of an organization; undefined for any. */
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

  /** One more call was turned away: of the same organization, or of another one, which makes it concern all. */
  add(until: number, now: number, caller: string | undefined): void {
    if (!this.stands || (now >= this.until && this.#only !== undefined)) this.begin(until, caller)
    else if (caller === undefined) this.begin(Math.max(this.until, until), undefined)
    else if (this.concerns(caller)) this.begin(Math.max(this.until, until), this.#only)
    else if (this.#isDoubted) this.begin(until, caller)
    else this.begin(Math.max(this.until, until), undefined)
  }

  /** A call has succeeded. Returns whether that was the one that ends it. */
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
