import type { MaybePromise } from '../runtime/maybe-promise.ts'

/** Facts of the database on which a synchronous step depends, each read once. */
export type Lookups = {
  /** Returns a fact by its name; `meanwhile` where it is not known yet. */
  find<Fact>(name: string, read: () => Promise<Fact>, meanwhile: Fact): Fact
  /** True where all facts that were asked for are known. */
  readonly areComplete: boolean
  /** Returns the same facts for another step, which reads none of those that are not known. */
  known(): Lookups
}

/**
 * Takes a synchronous step that depends on facts of the database: at once where it needs none that has to be read. Else it is taken again
 * when they have been read, until it knows them all; what it returned or threw before does not count.
 */
export function withLookups<Result>(step: (lookups: Lookups) => Result): MaybePromise<Result> {
  return attempt(step, new ReadLookups())
}

function attempt<Result>(step: (lookups: Lookups) => Result, lookups: ReadLookups): MaybePromise<Result> {
  try {
    const result = step(lookups)
    if (lookups.areComplete) return result
  } catch (thrown) {
    if (lookups.areComplete) throw thrown
  }
  return lookups.complete().then(() => attempt(step, lookups))
}

/** Most calls ask for no fact. */
class ReadLookups implements Lookups {
  areComplete = true
  #known: Map<string, unknown> | undefined
  #reads: Map<string, Promise<unknown>> | undefined

  find<Fact>(name: string, read: () => Promise<Fact>, meanwhile: Fact): Fact {
    if (this.#known?.has(name)) return this.#known.get(name) as Fact
    this.areComplete = false
    this.#reads ??= new Map()
    if (!this.#reads.has(name)) {
      const reading = read()
      // Whoever waits for it gets the error.
      reading.catch(() => {})
      this.#reads.set(name, reading)
    }
    return meanwhile
  }

  known(): Lookups {
    return new KnownLookups(this.#known)
  }

  /** Waits for the facts that are not known. */
  async complete(): Promise<void> {
    const reads = this.#reads ?? []
    this.#reads = undefined
    this.areComplete = true
    this.#known ??= new Map()
    for (const [name, reading] of reads) this.#known.set(name, await reading)
  }
}

class KnownLookups implements Lookups {
  areComplete = true
  readonly #known: ReadonlyMap<string, unknown> | undefined

  constructor(known: ReadonlyMap<string, unknown> | undefined) {
    this.#known = known
  }

  find<Fact>(name: string, _read: () => Promise<Fact>, meanwhile: Fact): Fact {
    if (this.#known?.has(name)) return this.#known.get(name) as Fact
    this.areComplete = false
    return meanwhile
  }

  known(): Lookups {
    return new KnownLookups(this.#known)
  }
}
