import type { PluginReply } from 'inference-router/plugin'

/** Result of the call that others have waited for: its client may have left before. */
export type Landing = { reply: PluginReply } | 'failed' | 'gone'

/** Calls that are asking a provider, which equal calls wait for. */
export class Flights {
  readonly #mostMs: number
  readonly #under = new Map<string, ((landing: Landing) => void)[]>()

  /** `maxMs`: how long a call waits for another. */
  constructor(mostMs: number) {
    this.#mostMs = mostMs
  }

  /** Begins a call that asks a provider. Returns whether others wait for it from now on: those for one key wait for one call. */
  begin(key: string): boolean {
    if (this.#under.has(key)) return false
    this.#under.set(key, [])
    return true
  }

  /**
   * Waits for the result of the call with this key; `gone` where there is none. A call that takes too long counts as failed. Rejects with
   * the signal.
   */
  async landing(key: string, signal: AbortSignal): Promise<Landing> {
    const waiting = this.#under.get(key)
    if (!waiting) return 'gone'
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<Landing>()
    const left = () => reject(signal.reason)
    // Nobody waits for it any more: its end may not have been reported.
    const timer = setTimeout(() => this.end(key, 'failed'), this.#mostMs)
    signal.addEventListener('abort', left, { once: true })
    waiting.push(resolve)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', left)
    }
  }

  /** Ends the call of this key: the first result counts. */
  end(key: string, landing: Landing): void {
    const waiting = this.#under.get(key) ?? []
    this.#under.delete(key)
    for (const resolve of waiting) resolve(landing)
  }

  close(): void {
    for (const key of [...this.#under.keys()]) this.end(key, 'failed')
  }
}
