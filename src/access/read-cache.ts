import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import type { MaybePromise } from '../runtime/maybe-promise.ts'

/** A cache of the store: `read` finds a value by its name, `now` returns Unix milliseconds. */
export type ReadCacheOptions<Value> = {
  read(name: string): Promise<Value>
  now(): number
  /** Time after which a value is read again: a change by another process may go unnoticed for that long. Milliseconds. */
  rereadMs: number
  max: number
}

type Entry<Value> = { value: Value; readAt: number; isOutdated: boolean }

/** Values of the store that are returned at once while they are known. One that was read again and is equal stays the same object. */
export class ReadCache<Value extends object> {
  readonly #options: ReadCacheOptions<Value>
  readonly #known: LRUCache<string, Entry<Value>>
  /** The reads that have begun: all who miss the same value wait for one. */
  readonly #reads = new Map<string, Promise<Value>>()

  constructor(options: ReadCacheOptions<Value>) {
    this.#options = options
    this.#known = new LRUCache({ max: options.max })
  }

  /** Returns a value, or a promise of it while it is read. Rejects as `read` does; a failure is not remembered. */
  get(name: string): MaybePromise<Value> {
    const entry = this.#known.get(name)
    if (entry && !entry.isOutdated) {
      const age = this.#options.now() - entry.readAt
      // Negative: the clock was set back.
      if (age >= 0 && age < this.#options.rereadMs) return entry.value
    }
    return this.#reads.get(name) ?? this.#read(name)
  }

  /** Reads a value again when it is used next. A read that has begun may be older than the change: those who wait for it get the value anew. */
  invalidate(name: string): void {
    const entry = this.#known.get(name)
    if (entry) entry.isOutdated = true
    this.#reads.delete(name)
  }

  invalidateAll(): void {
    this.#known.clear()
    this.#reads.clear()
  }

  #read(name: string): Promise<Value> {
    const read = this.#readOnce(name, () => this.#reads.get(name) === read)
    this.#reads.set(name, read)
    return read
  }

  async #readOnce(name: string, isCurrent: () => boolean): Promise<Value> {
    const { read, now } = this.#options
    const readAt = now()
    try {
      const found = await read(name)
      if (!isCurrent()) return await this.get(name)
      const earlier = this.#known.get(name)?.value
      const value = earlier && isDeepStrictEqual(found, earlier) ? earlier : found
      this.#known.set(name, { value, readAt, isOutdated: false })
      return value
    } finally {
      if (isCurrent()) this.#reads.delete(name)
    }
  }
}
