import { LRUCache } from 'lru-cache'

/** Which target each conversation, session or user is kept at. One for each event loop; it survives reloads. */
export class Affinity {
  /** Opened when it is needed: many routers keep nothing. */
  #kept: LRUCache<string, { target: string; until: number }> | undefined
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The id of the target that a key is kept at; undefined when it was idle for too long. */
  find(key: string): string | undefined {
    const kept = this.#kept?.get(key)
    return kept && this.#now() < kept.until ? kept.target : undefined
  }

  /** Keeps a key at a target, until it has been idle for so long. */
  keep(key: string, target: string, idleMs: number): void {
    this.#kept ??= new LRUCache({ max: mostKept })
    this.#kept.set(key, { target, until: this.#now() + idleMs })
  }
}

/** Some megabytes; the ones that were idle longest are forgotten. */
const mostKept = 50_000
