/** Counts calls and their failures within about a window of time, in slots: nothing is kept of single calls. */
export class RecentFailures {
  #slots: Slot[] = []

  /** Adds the end of a call at `now`, in milliseconds of one clock, and forgets what is older than the window; `failedFor`: whose call failed. */
  add(now: number, windowMs: number, failedFor?: string): void {
    const slotMs = windowMs / slots
    let last = this.#slots.at(-1)
    if (!last || now - last.at >= slotMs) {
      last = { at: now, calls: 0, failures: new Map() }
      this.#slots = this.#slots.filter(({ at }) => at > now - windowMs)
      this.#slots.push(last)
    }
    last.calls++
    if (failedFor !== undefined) last.failures.set(failedFor, (last.failures.get(failedFor) ?? 0) + 1)
  }

  /** How many calls there were, what share of them failed, and whose calls more than half of these were. */
  share(): { calls: number; failed: number; mostly: string | undefined } {
    let calls = 0
    let failures = 0
    const byCaller = new Map<string, number>()
    for (const slot of this.#slots) {
      calls += slot.calls
      for (const [caller, count] of slot.failures) {
        failures += count
        byCaller.set(caller, (byCaller.get(caller) ?? 0) + count)
      }
    }
    const most = [...byCaller].find(([, count]) => count > failures / 2)
    return { calls, failed: calls === 0 ? 0 : failures / calls, mostly: most?.[0] || undefined }
  }

  clear(): void {
    this.#slots = []
  }
}

type Slot = { at: number; calls: number; failures: Map<string, number> }

const slots = 10
