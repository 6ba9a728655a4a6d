import { setImmediate } from 'node:timers/promises'

/**
 * How long the event loop has stood still: nothing was read in that time, neither what providers sent nor that they
 * closed a connection, so it is not theirs.
 */
export class LoopStalls {
  readonly #timer = setInterval(() => this.#tick(), everyMs).unref()
  #last = performance.now()
  #totalMs = 0
  #caughtUp: Promise<void> | undefined

  /** In all, since the start. Milliseconds. */
  get totalMs(): number {
    this.#look()
    return this.#totalMs
  }

  /** Undefined, or right after a stall a promise that resolves when all that waited has been read. */
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

  /** Between ticks as well: whether the next one is late. */
  #look(): void {
    const now = performance.now()
    const lateMs = now - this.#last - everyMs
    if (lateMs < shortMs) return
    this.#last = now
    this.#totalMs += lateMs
    const caughtUp = turns().then(() => {
      if (this.#caughtUp === caughtUp) this.#caughtUp = undefined
    })
    this.#caughtUp = caughtUp
  }
}

/** Between two of them every socket is read once; the first may come before. */
async function turns(): Promise<void> {
  await setImmediate()
  await setImmediate()
}

const [everyMs, shortMs] = [250, 250]
