import { setTimeout as wait } from 'node:timers/promises'
import type { JsonObject, PluginLog } from 'inference-router/plugin'

type Bounds = {
  every_seconds: number
  attempts: number
  max_waiting: number
  log: Pick<PluginLog, 'warn' | 'error'>
  firstPauseMs?: number
}

/** Sender of events in batches, in the background; events that cannot be sent in time are left out, and the log states how many. */
export class Batches {
  readonly #bounds: Bounds
  readonly #send: (batch: readonly JsonObject[]) => Promise<Response>
  readonly #ending = new AbortController()
  readonly #waiting: { at: number; make: () => JsonObject[] }[] = []
  #leftOut = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined

  constructor(bounds: Bounds, send: (batch: readonly JsonObject[]) => Promise<Response>) {
    this.#bounds = bounds
    this.#send = send
  }

  /** Adds the events of a call: `make` makes them when they are sent, at least the time between two batches later. Never throws. */
  add(make: () => JsonObject[]): void {
    if (this.#waiting.length >= this.#bounds.max_waiting) this.#leftOut++
    else this.#waiting.push({ at: performance.now(), make })
    this.#timer ??= setTimeout(() => this.#start(), this.#bounds.every_seconds * 1_000).unref()
  }

  /** Sends the waiting events; a batch that fails is tried once more at most. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#ending.abort()
    await this.#sending
    await this.#sendAll()
  }

  #start(): void {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
      this.#timer = undefined
      if (this.#waiting.length > 0)
        this.#timer = setTimeout(() => this.#start(), this.#bounds.every_seconds * 1_000).unref()
    })
  }

  async #sendAll(): Promise<void> {
    const settled = this.#ending.signal.aborted
      ? Number.POSITIVE_INFINITY
      : performance.now() - 0.9 * this.#bounds.every_seconds * 1_000
    const next = () => {
      const [first] = this.#waiting
      return first !== undefined && first.at <= settled ? this.#waiting.shift()?.make() : undefined
    }
    for (let events = next(); events; events = next()) {
      const batch = [...events]
      let characters = JSON.stringify(events).length
      while (characters < mostCharacters) {
        const more = next()
        if (!more) break
        batch.push(...more)
        characters += JSON.stringify(more).length
      }
      await this.#deliver(batch)
    }
    if (this.#leftOut > 0)
      this.#bounds.log.warn({ left_out: this.#leftOut }, 'calls were not exported: too many were waiting')
    this.#leftOut = 0
  }

  async #deliver(batch: readonly JsonObject[]): Promise<void> {
    const { attempts, firstPauseMs = 1_000, log } = this.#bounds
    for (let attempt = 1; ; attempt++) {
      const failure = await this.#tried(batch)
      if (!failure) return
      if (!failure.mayPass || attempt >= attempts || (this.#ending.signal.aborted && attempt > 1)) {
        log.error({ ...failure.facts, events: batch.length }, 'calls were not exported')
        return
      }
      await wait(firstPauseMs * 2 ** (attempt - 1), undefined, { signal: this.#ending.signal }).catch(() => {})
    }
  }

  async #tried(batch: readonly JsonObject[]): Promise<{ mayPass: boolean; facts: object } | undefined> {
    try {
      const response = await this.#send(batch)
      const { status } = response
      const answer = (await response.json().catch(() => ({}))) as { errors?: { status?: number; message?: string }[] }
      if (!response.ok) return { mayPass: status === 429 || status >= 500, facts: { status } }
      // Of a batch that is taken single events may be refused.
      const [refused] = answer.errors ?? []
      if (refused) this.#bounds.log.warn({ refused: answer.errors?.length, ...refused }, 'Langfuse rejected events')
      return undefined
    } catch (err) {
      return { mayPass: true, facts: { err } }
    }
  }
}

/** Langfuse takes 3.5 MB at once: a character has up to three bytes. */
const mostCharacters = 700_000
