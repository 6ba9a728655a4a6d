import { setTimeout as wait } from 'node:timers/promises'
import type { PluginLog } from 'inference-router/plugin'

type Bounds = {
  every_seconds: number
  attempts: number
  max_waiting: number
  max_waiting_characters: number
  log: Pick<PluginLog, 'error'>
  firstPauseMs?: number
}

/** Text of a call that waits, made when it is sent, and the memory that it takes until then, in characters. */
type Entry = { text: () => string; size: number }

/**
 * Sender of calls in batches, in the background. Calls that cannot be sent in time are left out; the log counts them, with one line a
 * minute at most.
 */
export class Batches {
  readonly #bounds: Bounds
  readonly #send: (texts: readonly string[]) => Promise<Response>
  readonly #ending = new AbortController()
  readonly #waiting: (Entry & { at: number })[] = []
  #size = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #lost = 0
  #reportedAt = Number.NEGATIVE_INFINITY
  #lastFacts: object = {}

  constructor(bounds: Bounds, send: (texts: readonly string[]) => Promise<Response>) {
    this.#bounds = bounds
    this.#send = send
  }

  /** Adds a call: its text is made when it is sent, nearly the time between two batches later at the earliest. Never throws. */
  add({ text, size }: Entry): void {
    const { max_waiting, max_waiting_characters, every_seconds } = this.#bounds
    if (this.#waiting.length >= max_waiting || this.#size + size > max_waiting_characters) {
      this.#lose(1, { reason: 'too many calls were waiting' })
    } else {
      this.#waiting.push({ at: performance.now(), text, size })
      this.#size += size
    }
    this.#timer ??= setTimeout(() => this.#start(), every_seconds * 1_000).unref()
  }

  /** Sends the waiting calls; if a batch fails twice, the rest is given up. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#ending.abort()
    await this.#sending
    await this.#sendAll()
    if (this.#lost > 0) this.#report()
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
    const settled = performance.now() - 0.9 * this.#bounds.every_seconds * 1_000
    for (let batch = this.#batch(settled); batch.length > 0; batch = this.#batch(settled)) {
      const failure = await this.#deliver(batch)
      if (!failure) continue
      const isEnding = this.#ending.signal.aborted
      this.#lose(batch.length + (isEnding ? this.#waiting.splice(0).length : 0), failure)
    }
  }

  /** Takes calls that have waited long enough, or any when this ends, up to what is accepted at once. */
  #batch(settled: number): string[] {
    const batch: string[] = []
    for (let characters = 0; characters < maxCharacters; characters += batch.at(-1)?.length ?? 0) {
      const [first] = this.#waiting
      if (!first || (first.at > settled && !this.#ending.signal.aborted)) break
      this.#waiting.shift()
      this.#size -= first.size
      batch.push(first.text())
    }
    return batch
  }

  /** Returns why a batch could not be delivered. */
  async #deliver(batch: readonly string[]): Promise<object | undefined> {
    const { attempts, firstPauseMs = 1_000 } = this.#bounds
    for (let attempt = 1; ; attempt++) {
      const failure = await this.#attempt(batch)
      if (!failure) return undefined
      const isLast = attempt >= attempts || (this.#ending.signal.aborted && attempt > 1)
      if (!failure.mayPass || isLast) return failure.facts
      const pauseMs = Math.max(firstPauseMs * 2 ** (attempt - 1), failure.pauseMs ?? 0)
      await wait(pauseMs, undefined, { signal: this.#ending.signal }).catch(() => {})
    }
  }

  async #attempt(batch: readonly string[]): Promise<{ mayPass: boolean; facts: object; pauseMs?: number } | undefined> {
    try {
      const response = await this.#send(batch)
      const { status } = response
      const answer = (await response.json().catch(() => ({}))) as Answer | null
      if (response.ok) {
        this.#seeRejected(answer)
        return undefined
      }
      const pauseMs = Math.min(Number(response.headers.get('retry-after')) * 1_000 || 0, maxPauseMs)
      const error = answer?.error ?? answer?.message
      const facts = { status, ...(typeof error === 'string' && { error: error.slice(0, maxErrorLength) }) }
      return { mayPass: status === 429 || status >= 500, facts, pauseMs }
    } catch (err) {
      return { mayPass: true, facts: { err } }
    }
  }

  /** Counts spans that are refused although their batch is accepted. */
  #seeRejected(answer: Answer | null): void {
    const { rejectedSpans, errorMessage } = answer?.partialSuccess ?? {}
    const rejected = Number(rejectedSpans ?? 0)
    if (rejected > 0) this.#lose(rejected, { error: String(errorMessage ?? '').slice(0, maxErrorLength) })
  }

  #lose(calls: number, facts: object): void {
    this.#lost += calls
    this.#lastFacts = facts
    if (performance.now() - this.#reportedAt >= reportEveryMs) this.#report()
  }

  #report(): void {
    this.#bounds.log.error({ ...this.#lastFacts, calls: this.#lost }, 'calls were not exported')
    this.#lost = 0
    this.#reportedAt = performance.now()
  }
}

type Answer = {
  error?: unknown
  message?: unknown
  partialSuccess?: { rejectedSpans?: unknown; errorMessage?: unknown }
}

/** Langfuse accepts 3.5 MB at once: a character has up to three bytes. */
const maxCharacters = 700_000
const maxErrorLength = 500
const maxPauseMs = 60_000
const reportEveryMs = 60_000
