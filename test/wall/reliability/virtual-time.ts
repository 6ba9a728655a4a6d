import { setImmediate } from 'node:timers/promises'

type Timer = { at: number; wake(): void }

/** A clock that moves on when everything waits for it: an outage of minutes takes milliseconds. */
export class VirtualTime {
  now = 0
  /** The next one is the last. */
  readonly #timers: Timer[] = []

  /** Waits so many milliseconds. Rejects with the reason of the signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const abort = () => {
      this.#timers.splice(this.#timers.indexOf(timer), 1)
      reject(signal?.reason)
    }
    const timer: Timer = {
      at: this.now + ms,
      wake: () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      },
    }
    signal?.addEventListener('abort', abort, { once: true })
    let place = this.#timers.length
    while (place > 0 && (this.#timers[place - 1] as Timer).at <= timer.at) place--
    this.#timers.splice(place, 0, timer)
    return promise
  }

  /** Runs some work, moving the clock whenever all of it waits. */
  async run<T>(work: Promise<T>): Promise<T> {
    let isOver = false
    const end = () => {
      isOver = true
    }
    work.then(end, end)
    for (;;) {
      // Everything that does not wait for this clock happens before.
      await setImmediate()
      if (isOver) return await work
      const next = this.#timers.pop()
      if (!next) throw new Error('all of it waits, and nothing will happen')
      this.now = next.at
      next.wake()
    }
  }
}

/** A sequence of numbers from 0 to 1 that is the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
