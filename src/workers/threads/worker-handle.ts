import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { Caller, MainAccounts } from '../../accounts/instance-accounts.ts'
import { asRouterError, type RouterError } from '../../core/errors.ts'
import type { JsonAnswer, JsonRoute } from '../../http/types.ts'
import { type MainMessage, receivedError, sentError, type WorkerMessage, type WorkerSetup } from './messages.ts'
import { sharedCounter, ThreadPort } from './port.ts'
import { SentRows, type SentRowsParts } from './sent-rows.ts'

/** The data that a new thread gets; `thread` is its column of the accounts. */
export type WorkerStart = {
  port: MessagePort
  ownSent: Int32Array
  otherSent: Int32Array
  setup: WorkerSetup
  thread: number
}

/** The accounting that workers need of the main thread. */
export type AccountingPort = SentRowsParts & {
  accounts: Pick<MainAccounts, 'decide' | 'refill'>
  /** The routes that workers leave to the main thread, by `routeName`. */
  routes: ReadonlyMap<string, JsonRoute>
  /** Called with what a route has thrown. Returns the error for clients. */
  onThrown(thrown: unknown): RouterError
}

/** Three semi-spaces of 24 MB: with 16 MB collections take twice as long, 8 µs of a call; larger ones take more memory and save little. */
const youngMb = 72

type Pending = { resolve(answer: unknown): void; reject(error: Error): void }

/** One worker, as the main thread sees it. `onMessage` gets what concerns neither rows nor requests. */
export class WorkerHandle {
  readonly worker: Worker
  readonly #accounting: AccountingPort
  readonly #port: ThreadPort<MainMessage, WorkerMessage>
  readonly #onMessage: (message: WorkerMessage) => void
  readonly #bodies = new Map<number, Pending>()
  /** Answers that are sent to clients piece by piece. */
  readonly #streams = new Map<number, NonNullable<JsonAnswer['body']>>()
  readonly rows: SentRows
  readonly #caller: Caller
  #settled: number[] = []

  constructor(
    thread: number,
    setup: WorkerSetup,
    { accounting, onMessage }: { accounting: AccountingPort; onMessage(message: WorkerMessage): void },
  ) {
    this.#accounting = accounting
    this.#onMessage = onMessage
    this.rows = new SentRows(thread, accounting)
    this.#caller = { thread, isGone: false }
    const { port1, port2 } = new MessageChannel()
    const [ownSent, otherSent] = [sharedCounter(), sharedCounter()]
    const first = () => this.#takeSettled()
    const onItem = (message: WorkerMessage) => this.#handle(message)
    this.#port = new ThreadPort(port1, { counters: { ownSent, otherSent }, onItem, first })
    const start: WorkerStart = { port: port2, ownSent: otherSent, otherSent: ownSent, setup, thread }
    const script = new URL('../worker-thread-entry.ts', import.meta.url)
    const resourceLimits = { maxYoungGenerationSizeMb: youngMb }
    this.worker = new Worker(script, { workerData: start, transferList: [port2], resourceLimits })
  }

  send(message: MainMessage): void {
    this.#port.sendNow(message)
  }

  /** The thread has ended: what it sent is handled, and everything it held is released. Resolves when its column can be used again. */
  async gone(): Promise<void> {
    this.#caller.isGone = true
    this.#port.catchUp()
    this.#port.close()
    for (const id of [...this.#streams.keys()]) this.#drop(id)
    for (const { reject } of this.#bodies.values()) reject(new Error('the worker ended'))
    await this.rows.gone()
  }

  #handle(message: WorkerMessage): void {
    if (message.kind === 'rows') void this.#write(message)
    else if (message.kind === 'reserve') void this.#reserve(message)
    else if (message.kind === 'ask') void this.#answer(message)
    else if (message.kind === 'piece') this.#gotBody(message)
    else if (message.kind === 'pull') message.isOver ? this.#drop(message.id) : void this.#sendPiece(message.id)
    else this.#onMessage(message)
  }

  async #write({ id, rows }: Extract<WorkerMessage, { kind: 'rows' }>): Promise<void> {
    const refused = await this.rows.settle(rows)
    if (refused.length > 0) {
      const errors = refused.map(({ index, error }) => ({ index, error: sentError(error) }))
      return this.#port.sendNow({ kind: 'settled', ids: [id], refused: errors })
    }
    this.#settled.push(id)
    this.#port.wake()
  }

  async #reserve({ id, needs }: Extract<WorkerMessage, { kind: 'reserve' }>): Promise<void> {
    const { accounts } = this.#accounting
    if (id === undefined) return accounts.refill(needs)
    try {
      const reserved = await accounts.decide(this.#caller, needs)
      this.send({ kind: 'reserved', id, reserved })
    } catch (thrown) {
      this.send({ kind: 'reserved', id, error: sentError(asRouterError(thrown)) })
    }
  }

  #takeSettled(): MainMessage[] {
    if (this.#settled.length === 0) return []
    const ids = this.#settled
    this.#settled = []
    return [{ kind: 'settled', ids }]
  }

  async #answer({ id, route, request }: Extract<WorkerMessage, { kind: 'ask' }>): Promise<void> {
    const { routes, onThrown } = this.#accounting
    try {
      const readBody = () => this.#readBody(id)
      const { body, ...answer } = (await routes.get(route)?.answer({ ...request, readBody })) ?? {}
      if (body) this.#streams.set(id, body)
      this.send({ kind: 'answer', id, answer, ...(body && { streams: true }) })
    } catch (thrown) {
      this.send({ kind: 'answer', id, error: sentError(onThrown(thrown)) })
    }
  }

  #readBody(id: number): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#bodies.set(id, { resolve, reject })
    this.send({ kind: 'pull', id })
    return promise.finally(() => this.#bodies.delete(id))
  }

  async #sendPiece(id: number): Promise<void> {
    try {
      const next = await this.#streams.get(id)?.next()
      if (!next || next.done) this.#streams.delete(id)
      this.send({ kind: 'piece', id, ...(next && !next.done && { text: next.value }) })
    } catch (thrown) {
      this.#streams.delete(id)
      this.send({ kind: 'piece', id, error: sentError(this.#accounting.onThrown(thrown)) })
    }
  }

  /** The client has left, or the thread has ended. */
  #drop(id: number): void {
    const stream = this.#streams.get(id)
    this.#streams.delete(id)
    stream?.return?.().catch(() => {})
  }

  #gotBody({ id, body, error }: Extract<WorkerMessage, { kind: 'piece' }>): void {
    const pending = this.#bodies.get(id)
    if (error) pending?.reject(receivedError(error))
    else pending?.resolve(body)
  }
}
