import type { MaybePromise } from '../runtime/maybe-promise.ts'

/** Facts of the database on which a synchronous step depends, each read once. */
export type Lookups = {
  /** Returns a fact by its name; `meanwhile` where it is not known yet. */
  find<Fact>(name: string, read: () => Promise<Fact>, meanwhile: Fact): Fact
  /** True where all facts that were asked for are known. */
  readonly areComplete: boolean
}

/**
 * Takes a synchronous step that depends on facts of the database: at once where it needs none that has to be read. Else it is taken again
 * when they have been read, until it knows them all; what it returned or threw before does not count.
 */
export function withLookups<Result>(step: (lookups: Lookups) => Result): MaybePromise<Result> {
  const lookups = new ReadLookups()
  const attempt = (): MaybePromise<Result> => {
    try {
      const result = step(lookups)
      if (lookups.areComplete) return result
    } catch (thrown) {
      if (lookups.areComplete) throw thrown
    }
    return lookups.complete().then(attempt)
  }
  return attempt()
}

class ReadLookups implements Lookups {
  readonly #known = new Map<string, unknown>()
  readonly #reads = new Map<string, Promise<unknown>>()

  find<Fact>(name: string, read: () => Promise<Fact>, meanwhile: Fact): Fact {
    if (this.#known.has(name)) return this.#known.get(name) as Fact
    if (!this.#reads.has(name)) {
      const reading = read()
      // Whoever waits for it gets the error.
      reading.catch(() => {})
      this.#reads.set(name, reading)
    }
    return meanwhile
  }

  get areComplete(): boolean {
    return this.#reads.size === 0
  }

  /** Waits for the facts that are not known. */
  async complete(): Promise<void> {
    const reads = [...this.#reads]
    this.#reads.clear()
    for (const [name, reading] of reads) this.#known.set(name, await reading)
  }
}
