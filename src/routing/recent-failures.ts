/** Counts calls and their failures within about a window of time, in slots: nothing is kept of single calls. */
export class RecentFailures {
  #slots: { at: number; calls: number; failures: number }[] = []

  /** Adds the end of a call at `now`, in milliseconds of one clock, and forgets what is older than the window. */
  add(isFailure: boolean, now: number, windowMs: number): void {
    const slotMs = windowMs / slots
    let last = this.#slots.at(-1)
    if (!last || now - last.at >= slotMs) {
      last = { at: now, calls: 0, failures: 0 }
      this.#slots = this.#slots.filter(({ at }) => at > now - windowMs)
      this.#slots.push(last)
    }
    last.calls++
    if (isFailure) last.failures++
  }

  /** How many calls there were, and what share of them failed. */
  share(): { calls: number; failed: number } {
    let calls = 0
    let failures = 0
    for (const slot of this.#slots) {
      calls += slot.calls
      failures += slot.failures
    }
    return { calls, failed: calls === 0 ? 0 : failures / calls }
  }

  clear(): void {
    this.#slots = []
  }
}

const slots = 10
