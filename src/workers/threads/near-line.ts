import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { RouterError } from '../../core/errors.ts'
import type { JsonAnswer, JsonRoute } from '../../http/types.ts'
import type { Held } from '../../lending/account.ts'
import type { Bank } from '../../lending/bank.ts'
import type { LedgerQueue } from '../../money/ledger.ts'
import type { RefusedRow } from '../../money/ledger-entries.ts'
import { type LineSetup, receivedError, type Said, sentError, type Told } from './messages.ts'
import { sharedCounter, ThreadPort } from './port.ts'
import type { SentRows } from './sent-rows.ts'

/** What a new thread gets. */
export type LineStart = { port: MessagePort; ownSent: Int32Array; otherSent: Int32Array; setup: LineSetup }

/** Money and rows. */
export type MoneyBooks = {
  bank: Pick<Bank, 'join' | 'leave' | 'lend' | 'giveBack' | 'spend' | 'use' | 'adopt'>
  ledger: Pick<LedgerQueue, 'settle'>
  /** Takes out of what a purse was lent what its rows cost, and settles them. Resolves to those that can never be written. */
  settleRows(purse: number, rows: SentRows): Promise<readonly RefusedRow[]>
  writeFailure(): string | undefined
}

/** What a line needs of the books, which are in this thread. */
export type NearBooks = {
  /** Those that are used at present: another process may have taken them over. */
  money(): MoneyBooks
  /** The routes that lines leave to the books, by `routeName`. */
  routes: ReadonlyMap<string, JsonRoute>
  /** Hears what a route has thrown, and says what clients are told of it. */
  onThrown(thrown: unknown): RouterError
}

/** Three semi-spaces of 24 MB: with 16 MB collections take twice as long, 8 µs of a call; larger ones take more memory and save little. */
const youngMb = 72

/** What a line has been asked. */
type Waiting = { resolve(answer: unknown): void; reject(error: Error): void }

/** One line, which runs in a thread of its own, as the books see it. `onSaid` gets what concerns neither money nor rows. */
export class NearLine {
  readonly id: number
  readonly worker: Worker
  readonly #books: NearBooks
  readonly #port: ThreadPort<Told, Said>
  readonly #onSaid: (said: Said) => void
  readonly #recalls = new Map<number, Waiting>()
  readonly #bodies = new Map<number, Waiting>()
  /** What is sent to clients piece by piece. */
  readonly #streams = new Map<number, NonNullable<JsonAnswer['body']>>()
  #settled: number[] = []
  #lastId = 0

  constructor(id: number, setup: LineSetup, { books, onSaid }: { books: NearBooks; onSaid(said: Said): void }) {
    this.id = id
    this.#books = books
    this.#onSaid = onSaid
    const { port1, port2 } = new MessageChannel()
    const [ownSent, otherSent] = [sharedCounter(), sharedCounter()]
    const first = () => this.#takeSettled()
    this.#port = new ThreadPort(port1, { counters: { ownSent, otherSent }, onItem: (said) => this.#hear(said), first })
    const start: LineStart = { port: port2, ownSent: otherSent, otherSent: ownSent, setup }
    const script = new URL('../worker-thread-entry.ts', import.meta.url)
    const resourceLimits = { maxYoungGenerationSizeMb: youngMb }
    this.worker = new Worker(script, { workerData: start, transferList: [port2], resourceLimits })
    books.money().bank.join(id)
  }

  tell(told: Told): void {
    this.#port.sayNow(told)
  }

  /** What the line holds of accounts. Rejects when it cannot be asked any more. */
  recall(accounts: readonly string[]): Promise<Held[]> {
    const id = ++this.#lastId
    return this.#answerTo(this.#recalls, id, { kind: 'recall', id, accounts })
  }

  /** The thread has ended: what it said is heard, and all that it was lent comes back. */
  gone(): void {
    this.#port.catchUp()
    this.#port.close()
    this.#books.money().bank.leave(this.id)
    for (const id of [...this.#streams.keys()]) this.#drop(id)
    for (const { reject } of [...this.#recalls.values(), ...this.#bodies.values()])
      reject(new Error('the worker ended'))
  }

  #answerTo<Value>(waiting: Map<number, Waiting>, id: number, question: Told): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    waiting.set(id, { resolve, reject })
    this.tell(question)
    return promise.finally(() => waiting.delete(id)) as Promise<Value>
  }

  #hear(said: Said): void {
    const { bank } = this.#books.money()
    if (said.kind === 'rows') void this.#write(said)
    else if (said.kind === 'uses') bank.use(this.id, said.uses)
    else if (said.kind === 'lend') this.#lend(said)
    else if (said.kind === 'giveBack') bank.giveBack(this.id, said.account, said.amount, said.closes)
    else if (said.kind === 'held') this.#recalls.get(said.id)?.resolve(said.held)
    else if (said.kind === 'ask') void this.#answer(said)
    else if (said.kind === 'body') this.#gotBody(said)
    else if (said.kind === 'pull') void this.#sendPiece(said.id)
    else if (said.kind === 'drop') this.#drop(said.id)
    else this.#onSaid(said)
  }

  async #write({ id, rows }: Extract<Said, { kind: 'rows' }>): Promise<void> {
    const refused = await this.#books.money().settleRows(this.id, rows)
    if (refused.length > 0) {
      const told = refused.map(({ index, error }) => ({ index, error: sentError(error) }))
      return this.#port.say({ kind: 'unsettled', id, refused: told })
    }
    this.#settled.push(id)
    this.#port.wake()
  }

  #takeSettled(): Told[] {
    if (this.#settled.length === 0) return []
    const ids = this.#settled
    this.#settled = []
    return [{ kind: 'settled', ids }]
  }

  /** While rows wait to be written, the tables of spend do not say what was spent. */
  #lend({ id, needs }: Extract<Said, { kind: 'lend' }>): void {
    const { bank, writeFailure } = this.#books.money()
    const failure = writeFailure()
    if (failure !== undefined) this.tell({ kind: 'lent', id, answer: new Error(failure) })
    else bank.lend(this.id, needs, (answer) => this.tell({ kind: 'lent', id, answer: plain(answer) }))
  }

  async #answer({ id, route, request }: Extract<Said, { kind: 'ask' }>): Promise<void> {
    try {
      const readBody = () => this.#answerTo(this.#bodies, id, { kind: 'readBody', id })
      const { body, ...answer } = (await this.#books.routes.get(route)?.answer({ ...request, readBody })) ?? {}
      if (body) this.#streams.set(id, body)
      this.tell({ kind: 'answer', id, answer, ...(body && { streams: true }) })
    } catch (thrown) {
      this.tell({ kind: 'answer', id, error: sentError(this.#books.onThrown(thrown)) })
    }
  }

  async #sendPiece(id: number): Promise<void> {
    try {
      const next = await this.#streams.get(id)?.next()
      if (!next || next.done) this.#streams.delete(id)
      this.tell({ kind: 'piece', id, ...(next && !next.done && { text: next.value }) })
    } catch (thrown) {
      this.#streams.delete(id)
      this.tell({ kind: 'piece', id, error: sentError(this.#books.onThrown(thrown)) })
    }
  }

  /** The client has left, or the thread has ended. */
  #drop(id: number): void {
    const stream = this.#streams.get(id)
    this.#streams.delete(id)
    stream?.return?.().catch(() => {})
  }

  #gotBody({ id, body, error }: Extract<Said, { kind: 'body' }>): void {
    const waiting = this.#bodies.get(id)
    if (error) waiting?.reject(receivedError(error))
    else waiting?.resolve(body)
  }
}

/** Only messages cross: what the engine throws may hold more. */
function plain<Value>(answer: Value | Error): Value | Error {
  return answer instanceof Error ? new Error(answer.message) : answer
}
