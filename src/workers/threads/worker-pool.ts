import { setTimeout } from 'node:timers/promises'
import type { RefusedCall } from '../../core/refused-call.ts'
import type { Problem } from '../../manifest/check/problem.ts'
import type { Log, WriteLines } from '../../observe/log.ts'
import type { WorkerFacts } from '../../observe/worker-metrics.ts'
import type { Finding } from '../../routing/findings.ts'
import type { ChosenFiles } from '../../snapshot/snapshot.ts'
import type { MainMessage, WorkerMessage, WorkerSetup } from './messages.ts'
import type { SentRows } from './sent-rows.ts'
import { type AccountingPort, WorkerHandle } from './worker-handle.ts'

/** The workers of a process, each in a thread of its own. */
export type WorkerPool = {
  /** Resolves with their address when all of them listen; rejects when one cannot. They answer from `open` on. */
  started(): Promise<string>
  open(): void
  /** Every worker builds a snapshot of its own from these files. Returns the problems of one that cannot. */
  prepare(generation: number, files: ChosenFiles): Promise<readonly Problem[]>
  /** Sends a message to all workers. They have handled it before they handle a request that arrives later. */
  send(message: MainMessage): void
  /** The rows that the workers have sent. */
  rows(): readonly SentRows[]
  /** Accepts no new connections, serves those there are, and resolves when none is left. */
  retire(): Promise<void>
  /** Refuses new calls, waits for running ones, and resolves when all have ended. */
  stop(deadlineMs: number): Promise<void>
  /** Ends all threads. */
  close(): Promise<void>
  /** Returns what the workers reported last, and the counts of those that have ended. */
  facts(): { facts: readonly WorkerFacts[]; ended: WorkerFacts['refused'] }
  /** The threads, for tests that end one. */
  threads(): readonly { terminate(): Promise<number> }[]
}

type OfSnapshot = keyof ChosenFiles | 'generation' | 'problems'

/** `current` is the present snapshot, with which a worker starts that replaces another. */
export type WorkerPoolOptions = {
  count: number
  setup: Omit<WorkerSetup, OfSnapshot>
  current(): Pick<WorkerSetup, OfSnapshot>
  accounting: AccountingPort
  log: Log
  /** Writes the log lines of workers. */
  writeLog: WriteLines
  onDamage(message: string): void
  onRefused(call: RefusedCall): void
  onSignatures(message: Extract<WorkerMessage, { kind: 'signatures' }>): void
  /** Called with what a worker has found out about providers; the other workers have it already. */
  onFound(message: { kind: 'found'; findings: readonly Finding[] }): void
  /** Called with a new worker, which has to be sent what the others know. */
  onStart(worker: Pick<WorkerHandle, 'send'>): void
}

/** A thread that ends again and again is started so often only. Milliseconds. */
const restartMs = 500

type Prepared = Extract<WorkerMessage, { kind: 'prepared' }>

/** Starts all workers. */
export function startWorkers(options: WorkerPoolOptions): WorkerPool {
  return new ThreadPool(options)
}

class ThreadPool implements WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #workers = new Map<number, WorkerHandle>()
  /** Columns of the accounts that no worker has. */
  readonly #columns: number[]
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

  constructor(options: WorkerPoolOptions) {
    this.#options = options
    this.#columns = Array.from({ length: options.count }, (_, index) => index + 1)
    this.#first = Promise.all(Array.from({ length: options.count }, () => this.#startWorker()))
    // Reported by `started`.
    this.#first.catch(() => {})
  }

  async started(): Promise<string> {
    const [url = ''] = await this.#first
    return url
  }

  open(): void {
    this.#isOpen = true
    this.send({ kind: 'open' })
  }

  async prepare(generation: number, files: ChosenFiles): Promise<readonly Problem[]> {
    const asked = [...this.#listening].map((id) => {
      const { promise, resolve } = Promise.withResolvers<Prepared | undefined>()
      this.#waitingOf(id).onPrepared = resolve
      return promise
    })
    // Also those that have just been started: they swap when they are ready.
    this.send({ kind: 'prepare', generation, ...files })
    const prepared = await Promise.all(asked)
    return prepared.flatMap((one) => one ?? []).find(({ problems }) => problems.length > 0)?.problems ?? []
  }

  send(message: MainMessage): void {
    for (const worker of this.#workers.values()) worker.send(message)
  }

  rows(): readonly SentRows[] {
    return [...this.#workers.values()].map(({ rows }) => rows)
  }

  retire(): Promise<void> {
    return this.#end({ kind: 'stop', deadlineMs: undefined })
  }

  facts(): ReturnType<WorkerPool['facts']> {
    return { facts: [...this.#facts.values()], ended: this.#ended }
  }

  stop(deadlineMs: number): Promise<void> {
    return this.#end({ kind: 'stop', deadlineMs })
  }

  async #end(message: MainMessage): Promise<void> {
    this.#isStopping = true
    const stopped = [...this.#workers].map(([id, worker]) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const { onStopped } = this.#waitingOf(id)
      this.#waitingOf(id).onStopped = () => {
        onStopped()
        resolve()
      }
      worker.send(message)
      return promise
    })
    await Promise.all(stopped)
  }

  async close(): Promise<void> {
    this.#isStopping = true
    this.#isClosed = true
    await Promise.all([...this.#workers.values()].map(({ worker }) => worker.terminate()))
  }

  threads(): readonly { terminate(): Promise<number> }[] {
    return [...this.#workers.values()].map(({ worker }) => worker)
  }

  /** Resolves when it listens. */
  #startWorker(): Promise<string> {
    const { setup, accounting, current } = this.#options
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const onMessage = (message: WorkerMessage) => this.#handle(id, message)
    const column = this.#columns.shift() as number
    const handle = new WorkerHandle(column, { ...setup, ...current() }, { accounting, onMessage })
    this.#workers.set(id, handle)
    this.#options.onStart(handle)
    if (this.#isOpen) handle.send({ kind: 'open' })
    this.#waitingOf(id).onListening = resolve
    let reason: unknown = new Error('the worker exited')
    handle.worker.on('error', (thrown) => {
      reason = thrown
    })
    handle.worker.on('exit', () => {
      const released = handle.gone().then(() => void this.#columns.push(column))
      const wasListening = this.#listening.delete(id)
      this.#workers.delete(id)
      this.#forget(id)
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      waiting?.onPrepared()
      waiting?.onStopped()
      // Its column is needed for the next one.
      void released.then(() => {
        reject(reason)
        if (wasListening && !this.#isStopping) void this.#replace(reason)
      })
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
        await this.#startWorker()
        return
      } catch (thrown) {
        if (this.#isClosed) return
        log.error({ err: thrown }, 'a worker cannot be started: the others continue, and it will be retried')
        await setTimeout(restartMs, undefined, { ref: false })
      }
    }
  }

  #handle(id: number, message: WorkerMessage): void {
    const { writeLog, onSignatures, onFound, onDamage, onRefused } = this.#options
    if (message.kind === 'log') writeLog(message.lines)
    else if (message.kind === 'signatures') {
      this.#relay(id, message)
      onSignatures(message)
    } else if (message.kind === 'found') {
      this.#relay(id, message)
      onFound(message)
    } else if (message.kind === 'damaged') onDamage(message.message)
    else if (message.kind === 'refused') onRefused(message.call)
    else if (message.kind === 'prepared') this.#waitingOf(id).onPrepared(message)
    else if (message.kind === 'facts') this.#facts.set(id, message.facts)
    else if (message.kind === 'stopped') this.#waitingOf(id).onStopped()
    else if (message.kind === 'listening') this.#listens(id, message.url)
  }

  #listens(id: number, url: string): void {
    this.#listening.add(id)
    this.#waitingOf(id).onListening(url)
  }

  #relay(from: number, message: MainMessage): void {
    for (const [id, worker] of this.#workers) if (id !== from) worker.send(message)
  }

  #waitingOf(id: number) {
    const known = this.#waiting.get(id)
    if (known) return known
    const nobody = { onListening() {}, onPrepared() {}, onStopped() {} }
    this.#waiting.set(id, nobody)
    return nobody
  }
}
