import { type Listed, Roster } from '../../runtime/unordered-set.ts'
import type { LoopStalls } from './loop-stalls.ts'

/** Something that has time limits. */
export type Limited = Listed & {
  /** Ends itself where a limit has passed. `now` is what `Deadlines.now` returns. */
  checkLimits(now: number): void
}

/** Keeps the time limits of all requests with one timer: a limit ends a request at most `everyMs` late, and never early. */
export class Deadlines {
  readonly #stalls: LoopStalls
  readonly #open = new Roster<Limited>()
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
    this.#timer ??= setInterval(() => this.#check(), everyMs).unref()
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

const everyMs = 25
