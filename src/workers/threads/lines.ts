import { setTimeout } from 'node:timers/promises'
import type { RefusedCall } from '../../core/refused-call.ts'
import type { Problem } from '../../manifest/check/problem.ts'
import type { Log, WriteLines } from '../../observe/log.ts'
import type { WorkerFacts } from '../../observe/worker-metrics.ts'
import type { Finding } from '../../routing/findings.ts'
import type { ChosenFiles } from '../../snapshot/snapshot.ts'
import type { LineSetup, Said, Told } from './messages.ts'
import { type NearBooks, NearLine } from './near-line.ts'

/** The lines of a process, each in a thread of its own. */
export type Lines = {
  /** Resolves with their address when all of them listen; rejects when one cannot. They answer from `open` on. */
  started(): Promise<string>
  open(): void
  /** Every line builds a snapshot of its own from these files. Returns the problems of one that cannot. */
  prepare(generation: number, files: ChosenFiles): Promise<readonly Problem[]>
  /** Tells all lines. What they are told before a request arrives is known to them when they handle it. */
  tell(told: Told): void
  /** What a line holds of accounts. Rejects when it cannot be asked any more. */
  recall: NearLine['recall'] extends (...args: infer Args) => infer Result
    ? (line: number, ...args: Args) => Result
    : never
  /** Accepts no new connections, serves those there are, and resolves when none is left. */
  retire(): Promise<void>
  /** Their purses. */
  ids(): number[]
  /** Refuses new calls, waits for running ones, and resolves when all have ended. */
  stop(deadlineMs: number): Promise<void>
  /** Ends all threads. */
  close(): Promise<void>
  /** What the lines said last of themselves, and what those counted that have ended. */
  facts(): { facts: readonly WorkerFacts[]; ended: WorkerFacts['refused'] }
  /** The threads, for tests that end one. */
  threads(): readonly { terminate(): Promise<number> }[]
}

type OfSnapshot = keyof ChosenFiles | 'generation' | 'problems'

/** `current` is the present snapshot, with which a line starts that replaces another. */
export type LinesOptions = {
  count: number
  setup: Omit<LineSetup, OfSnapshot>
  current(): Pick<LineSetup, OfSnapshot>
  books: NearBooks
  log: Log
  /** Writes what a line logs. */
  writeLog: WriteLines
  onDamage(message: string): void
  onRefused(call: RefusedCall): void
  onSignatures(said: Extract<Said, { kind: 'signatures' }>): void
  /** Hears what a line has found out about providers; the other lines are told already. */
  onFound(said: { kind: 'found'; findings: readonly Finding[] }): void
  /** Tells a new line what it has to know. */
  onStart(line: Pick<NearLine, 'tell'>): void
}

/** A thread that ends again and again is started so often only. Milliseconds. */
const restartMs = 500

type Prepared = Extract<Said, { kind: 'prepared' }>

/** Starts all lines. */
export function startLines(options: LinesOptions): Lines {
  return new ThreadLines(options)
}

class ThreadLines implements Lines {
  readonly #options: LinesOptions
  readonly #lines = new Map<number, NearLine>()
  readonly #listening = new Set<number>()
  readonly #facts = new Map<number, WorkerFacts>()
  readonly #ended: WorkerFacts['refused'] = {}
  readonly #waiting = new Map<
    number,
    { onListening(url: string): void; onPrepared(prepared?: Prepared): void; onStopped(): void }
  >()
  #lastId = 0
  #isOpen = false
  #isStopping = false
  #isClosed = false

  readonly #first: Promise<string[]>

  constructor(options: LinesOptions) {
    this.#options = options
    this.#first = Promise.all(Array.from({ length: options.count }, () => this.#startLine()))
    // Heard of by `started`.
    this.#first.catch(() => {})
  }

  async started(): Promise<string> {
    const [url = ''] = await this.#first
    return url
  }

  open(): void {
    this.#isOpen = true
    this.tell({ kind: 'open' })
  }

  async prepare(generation: number, files: ChosenFiles): Promise<readonly Problem[]> {
    const asked = [...this.#listening].map((id) => {
      const { promise, resolve } = Promise.withResolvers<Prepared | undefined>()
      this.#waitingOf(id).onPrepared = resolve
      return promise
    })
    // Also those that have just been started: they swap when they are ready.
    this.tell({ kind: 'prepare', generation, ...files })
    const prepared = await Promise.all(asked)
    return prepared.flatMap((one) => one ?? []).find(({ problems }) => problems.length > 0)?.problems ?? []
  }

  tell(told: Told): void {
    for (const line of this.#lines.values()) line.tell(told)
  }

  recall(line: number, accounts: readonly string[]): ReturnType<NearLine['recall']> {
    return this.#lines.get(line)?.recall(accounts) ?? Promise.reject(new Error('the worker ended'))
  }

  retire(): Promise<void> {
    return this.#end({ kind: 'retire' })
  }

  facts(): ReturnType<Lines['facts']> {
    return { facts: [...this.#facts.values()], ended: this.#ended }
  }

  ids(): number[] {
    return [...this.#lines.keys()]
  }

  stop(deadlineMs: number): Promise<void> {
    return this.#end({ kind: 'stop', deadlineMs })
  }

  async #end(told: Told): Promise<void> {
    this.#isStopping = true
    const stopped = [...this.#lines].map(([id, line]) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const { onStopped } = this.#waitingOf(id)
      this.#waitingOf(id).onStopped = () => {
        onStopped()
        resolve()
      }
      line.tell(told)
      return promise
    })
    await Promise.all(stopped)
  }

  async close(): Promise<void> {
    this.#isStopping = true
    this.#isClosed = true
    await Promise.all([...this.#lines.values()].map(({ worker }) => worker.terminate()))
  }

  threads(): readonly { terminate(): Promise<number> }[] {
    return [...this.#lines.values()].map(({ worker }) => worker)
  }

  /** Resolves when it listens. */
  #startLine(): Promise<string> {
    const { setup, books, current } = this.#options
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const onSaid = (said: Said) => this.#hear(id, said)
    const line = new NearLine(id, { ...setup, ...current() }, { books, onSaid })
    this.#lines.set(id, line)
    this.#options.onStart(line)
    if (this.#isOpen) line.tell({ kind: 'open' })
    this.#waitingOf(id).onListening = resolve
    let reason: unknown = new Error('the worker exited')
    line.worker.on('error', (thrown) => {
      reason = thrown
    })
    line.worker.on('exit', () => {
      line.gone()
      const wasListening = this.#listening.delete(id)
      this.#lines.delete(id)
      this.#forget(id)
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      waiting?.onPrepared()
      waiting?.onStopped()
      reject(reason)
      if (wasListening && !this.#isStopping) void this.#replace(reason)
    })
    return promise
  }

  /** What it counted stays counted. */
  #forget(id: number): void {
    for (const [code, count] of Object.entries(this.#facts.get(id)?.refused ?? {}))
      this.#ended[code] = (this.#ended[code] ?? 0) + count
    this.#facts.delete(id)
  }

  async #replace(err: unknown): Promise<void> {
    const { log } = this.#options
    log.error({ err }, 'a worker ended: its calls are cut off, and a new worker replaces it')
    while (!this.#isStopping) {
      try {
        await this.#startLine()
        return
      } catch (thrown) {
        if (this.#isClosed) return
        log.error({ err: thrown }, 'a worker cannot be started: the others continue, and it will be retried')
        await setTimeout(restartMs, undefined, { ref: false })
      }
    }
  }

  #hear(id: number, said: Said): void {
    if (said.kind === 'log') this.#options.writeLog(said.lines)
    else if (said.kind === 'signatures') {
      this.#relay(id, said)
      this.#options.onSignatures(said)
    } else if (said.kind === 'found') {
      this.#relay(id, said)
      this.#options.onFound(said)
    } else if (said.kind === 'damaged') this.#options.onDamage(said.message)
    else if (said.kind === 'refused') this.#options.onRefused(said.call)
    else if (said.kind === 'prepared') this.#waitingOf(id).onPrepared(said)
    else if (said.kind === 'facts') this.#facts.set(id, said.facts)
    else if (said.kind === 'stopped') this.#waitingOf(id).onStopped()
    else if (said.kind === 'listening') this.#listens(id, said.url)
  }

  #listens(id: number, url: string): void {
    this.#listening.add(id)
    this.#waitingOf(id).onListening(url)
  }

  #relay(from: number, told: Told): void {
    for (const [id, line] of this.#lines) if (id !== from) line.tell(told)
  }

  #waitingOf(id: number) {
    const known = this.#waiting.get(id)
    if (known) return known
    const nobody = { onListening() {}, onPrepared() {}, onStopped() {} }
    this.#waiting.set(id, nobody)
    return nobody
  }
}
