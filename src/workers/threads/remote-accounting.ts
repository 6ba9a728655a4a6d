import type { MessagePort } from 'node:worker_threads'
import type { Need, Reserved } from '../../accounts/account.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import type { Payment } from '../../accounts/table.ts'
import type { CallLedger } from '../../call/types.ts'
import type { CallRecord } from '../../core/call.ts'
import { asRouterError, type RouterError } from '../../core/errors.ts'
import type { JsonAnswer, JsonRequest, JsonRoute } from '../../http/types.ts'
import { maxBatch } from '../../money/ledger-entries.ts'
import { combined, paymentOf } from '../../money/payments.ts'
import type { Finding } from '../../routing/findings.ts'
import { type SentResponse, sentResponse } from '../../store/responses.ts'
import {
  type MainMessage,
  receivedError,
  routeName,
  type SentError,
  sentError,
  type WorkerMessage,
} from './messages.ts'
import { type Counters, ThreadPort } from './port.ts'

/** The interval between messages with rows while each has several. */
const gatherMs = 4

/** A row that the main thread has not answered. */
type PendingRow = { payment: Payment; resolve(): void; reject(error: RouterError): void }
type UnsentRow = PendingRow & { record: CallRecord; response: SentResponse | undefined }
type PendingPiece = { resolve(piece: IteratorResult<string, void>): void; reject(error: RouterError): void }
type PendingRequest = { request: JsonRequest; resolve(answer: JsonAnswer): void; reject(error: RouterError): void }

type PendingReservation = { resolve(reserved: Reserved): void; reject(error: RouterError): void }

type RemoteOptions = {
  counters: Counters
  accounts: Pick<Accounts, 'written'>
  /** Called with what concerns neither rows nor requests. */
  onMessage(message: MainMessage): void
}

/** The accounting of the process as a worker sees it: it is in the main thread. */
export class RemoteAccounting {
  readonly port: ThreadPort<WorkerMessage, MainMessage>
  readonly #options: RemoteOptions
  #unsent: UnsentRow[] = []
  /** The rows of each message that is not answered. */
  readonly #sent = new Map<number, readonly PendingRow[]>()
  #sentAt = 0
  #gathers = false
  #found: Finding[] = []
  readonly #requests = new Map<number, PendingRequest>()
  readonly #reservations = new Map<number, PendingReservation>()
  readonly #pieces = new Map<number, PendingPiece>()
  #lastId = 0
  #emptied = () => {}

  constructor(port: MessagePort, options: RemoteOptions) {
    this.#options = options
    const onItem = (message: MainMessage) => this.#handle(message)
    this.port = new ThreadPort(port, { counters: options.counters, onItem, first: () => this.#first() })
  }

  /** Resolves when the row is on disk, as the ledger's own `settle`. */
  readonly ledger: CallLedger = {
    settle: (record, response) =>
      new Promise((resolve, reject) => {
        const sent = response && sentResponse(response)
        this.#unsent.push({ record, payment: paymentOf(record), response: sent, resolve, reject })
        this.port.wake(this.#waitMs())
      }),
  }

  /** Reserves what the grants of this instance do not cover: the main thread decides. */
  reserve(needs: readonly Need[]): Promise<Reserved> {
    const id = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<Reserved>()
    this.#reservations.set(id, { resolve, reject })
    this.port.sendNow({ kind: 'reserve', id, needs })
    return promise
  }

  /** Asks for more of accounts of which little is left, in the background. */
  refill(needs: readonly Need[]): void {
    this.port.send({ kind: 'reserve', needs })
  }

  /** Sends lines for the log of the process. */
  log(lines: string): void {
    this.port.send({ kind: 'log', lines }, this.#waitMs())
  }

  /** Reports what this worker has found out about providers. The others know it before the rows of the same turn are answered. */
  found(finding: Finding): void {
    this.#found.push(finding)
    this.port.wake(this.#waitMs())
  }

  /** Resolves when every row is answered. */
  async allSettled(): Promise<void> {
    if (this.#isSettled()) return
    await new Promise<void>((resolve) => {
      this.#emptied = resolve
    })
  }

  /** Returns a route that the main thread answers. */
  remote(route: JsonRoute): JsonRoute {
    const name = routeName(route)
    return {
      ...route,
      answer: (request) => {
        const id = ++this.#lastId
        const { headers, params, query } = request
        const { promise, resolve, reject } = Promise.withResolvers<JsonAnswer>()
        this.#requests.set(id, { request, resolve, reject })
        const plain = { headers: { ...headers }, params: { ...params }, query: { ...query } }
        this.port.sendNow({ kind: 'ask', id, route: name, request: plain })
        return promise
      },
    }
  }

  #handle(message: MainMessage): void {
    if (message.kind === 'settled') this.#settled(message.ids, message.refused)
    else if (message.kind === 'reserved') this.#reserved(message)
    else if (message.kind === 'pull') void this.#readBody(message.id)
    else if (message.kind === 'answer') this.#answered(message)
    else if (message.kind === 'piece') this.#gotPiece(message)
    else this.#options.onMessage(message)
  }

  /** While several calls end in a few milliseconds their rows are one message, as they are one commit. */
  #waitMs(): number {
    return this.#gathers ? this.#sentAt + gatherMs - performance.now() : 0
  }

  /** What rows cost that can never be written stays unwritten. */
  #settled(ids: readonly number[], refused: readonly { index: number; error: SentError }[] = []): void {
    for (const id of ids) {
      const rows = this.#sent.get(id) ?? []
      this.#sent.delete(id)
      const written = rows.filter((_, index) => !refused.some((one) => one.index === index))
      // In one step for each message, which has no more rows than a step can change: the main thread counts them.
      this.#options.accounts.written(combined(written.map(({ payment }) => payment)), 1)
      for (const { index, error } of refused) rows[index]?.reject(receivedError(error))
      for (const { resolve } of rows) resolve()
    }
    if (this.#isSettled()) this.#emptied()
  }

  #isSettled(): boolean {
    return this.#unsent.length === 0 && this.#sent.size === 0
  }

  #reserved({ id, reserved, error }: Extract<MainMessage, { kind: 'reserved' }>): void {
    const pending = this.#reservations.get(id)
    this.#reservations.delete(id)
    if (error) pending?.reject(receivedError(error))
    else if (reserved) pending?.resolve(reserved)
  }

  async #readBody(id: number): Promise<void> {
    try {
      this.port.sendNow({ kind: 'piece', id, body: await this.#requests.get(id)?.request.readBody() })
    } catch (thrown) {
      this.port.sendNow({ kind: 'piece', id, error: sentError(asRouterError(thrown)) })
    }
  }

  #answered({ id, answer, streams, error }: Extract<MainMessage, { kind: 'answer' }>): void {
    const asked = this.#requests.get(id)
    this.#requests.delete(id)
    if (error) asked?.reject(receivedError(error))
    else if (answer) asked?.resolve(streams ? { ...answer, body: this.#remoteBody(id) } : answer)
  }

  /** Returns a body that the main thread sends piece by piece, each when it is asked for. */
  #remoteBody(id: number): NonNullable<JsonAnswer['body']> {
    return {
      next: () =>
        new Promise((resolve, reject) => {
          this.#pieces.set(id, { resolve, reject })
          this.port.sendNow({ kind: 'pull', id })
        }),
      return: async () => {
        this.port.sendNow({ kind: 'pull', id, isOver: true })
        return { done: true, value: undefined }
      },
    }
  }

  #gotPiece({ id, text, error }: Extract<MainMessage, { kind: 'piece' }>): void {
    const pulled = this.#pieces.get(id)
    this.#pieces.delete(id)
    if (error) pulled?.reject(receivedError(error))
    else pulled?.resolve(text === undefined ? { done: true, value: undefined } : { done: false, value: text })
  }

  /** Returns the message with the unsent rows from there on, as far as they fit. */
  #rows(from: number): WorkerMessage {
    const rows = this.#unsent.slice(from, from + maxBatch)
    const id = ++this.#lastId
    this.#sent.set(
      id,
      rows.map(({ payment, resolve, reject }) => ({ payment, resolve, reject })),
    )
    const responses = rows.some(({ response }) => response) ? rows.map(({ response }) => response) : undefined
    const text = JSON.stringify(rows.map(({ record }) => record))
    return { kind: 'rows', id, rows: { text, count: rows.length, ...(responses && { responses }) } }
  }

  #first(): WorkerMessage[] {
    const messages: WorkerMessage[] = []
    if (this.#unsent.length > 0) {
      for (let from = 0; from < this.#unsent.length; from += maxBatch) messages.push(this.#rows(from))
      this.#gathers = this.#unsent.length > 1
      this.#sentAt = performance.now()
      this.#unsent = []
    }
    if (this.#found.length > 0) messages.push({ kind: 'found', findings: this.#found })
    this.#found = []
    return messages
  }
}
