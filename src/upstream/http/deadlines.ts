import { setImmediate } from 'node:timers/promises'
import { type Listed, UnorderedSet } from '../../runtime/unordered-set.ts'

/** A request that has time limits. */
export type Limited = Listed & {
  /** Ends itself where a limit has passed. `now` is what `Deadlines.now` returns. */
  checkLimits(now: number): void
}

/** Time limits of all requests, kept with one timer: a limit ends a request at most `everyMs` late, and never early. */
export class Deadlines {
  readonly #stalls: LoopStalls
  readonly #open = new UnorderedSet<Limited>()
  #timer: NodeJS.Timeout | undefined

  constructor(stalls: LoopStalls) {
    this.#stalls = stalls
  }

  /** Milliseconds of a clock that stops while the event loop stands still: that time is nobody's. */
  get now(): number {
    return performance.now() - this.#stalls.totalMs
  }

  add(limited: Limited): void {
    this.#open.add(limited)
    this.#timer ??= setInterval(() => this.#check(), checkEveryMs).unref()
  }

  delete(limited: Limited): void {
    this.#open.delete(limited)
  }

  #check(): void {
    if (this.#open.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    const { now } = this
    for (const limited of this.#open) limited.checkLimits(now)
  }
}

const checkEveryMs = 25

/**
 * Time for which the event loop has been blocked: nothing was read in that time, neither data from providers nor closed connections, so
 * providers are not charged for it.
 */
export class LoopStalls {
  readonly #timer = setInterval(() => this.#tick(), measureEveryMs).unref()
  #last = performance.now()
  #totalMs = 0
  #caughtUp: Promise<void> | undefined

  /** Returns the total since the start. Milliseconds. */
  get totalMs(): number {
    this.#look()
    return this.#totalMs
  }

  /** Undefined, or right after a stall a promise that resolves when all data that waited has been read. */
  get catchingUp(): Promise<void> | undefined {
    this.#look()
    return this.#caughtUp
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    this.#look()
    this.#last = performance.now()
  }

  /** Checks, between ticks as well, whether the next one is late. */
  #look(): void {
    const now = performance.now()
    const lateMs = now - this.#last - measureEveryMs
    if (lateMs < shortMs) return
    this.#last = now
    this.#totalMs += lateMs
    const caughtUp = twoTicks().then(() => {
      if (this.#caughtUp === caughtUp) this.#caughtUp = undefined
    })
    this.#caughtUp = caughtUp
  }
}

/** Waits for two turns of the event loop: between them every socket is read once; the first may come before. */
async function twoTicks(): Promise<void> {
  await setImmediate()
  await setImmediate()
}

const [measureEveryMs, shortMs] = [250, 250]

/** Settles as `work` does, or rejects with the reason of a signal that is aborted first. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  // The promise that loses the race may reject later, which must not be an unhandled rejection.
  aborted.catch(() => {})
  work.catch(() => {})
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([aborted, work])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
