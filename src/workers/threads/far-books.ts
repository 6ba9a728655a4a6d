import type { MessagePort } from 'node:worker_threads'
import type { CallLedger } from '../../call/types.ts'
import type { CallRecord } from '../../core/call.ts'
import { asRouterError, RouterError } from '../../core/errors.ts'
import type { JsonAnswer, JsonRequest, JsonRoute } from '../../http/types.ts'
import type { Answer } from '../../lending/account.ts'
import { Purse } from '../../lending/purse.ts'
import { maxBatch } from '../../money/ledger-entries.ts'
import type { Finding } from '../../routing/findings.ts'
import { type SentResponse, sentResponse } from '../../store/responses.ts'
import { receivedError, routeName, type Said, type SentError, sentError, type Told } from './messages.ts'
import { type Counters, ThreadPort } from './port.ts'
import { sentRows } from './sent-rows.ts'

/** How far apart messages with rows are while each has several. */
const gatherMs = 4

/** A row that the books have not answered. */
type Unanswered = { resolve(): void; reject(error: RouterError): void }
type Unsent = Unanswered & { record: CallRecord; response: SentResponse | undefined }
type Pulled = { resolve(piece: IteratorResult<string, void>): void; reject(error: RouterError): void }
type Asked = { request: JsonRequest; resolve(answer: JsonAnswer): void; reject(error: RouterError): void }

/** The books as a line sees them, which are in another thread. `onTold` gets what concerns neither money nor rows. */
export class FarBooks {
  readonly port: ThreadPort<Said, Told>
  readonly purse: Purse
  readonly #onTold: (told: Told) => void
  #unsent: Unsent[] = []
  /** The rows of each message that is not answered. */
  readonly #sent = new Map<number, readonly Unanswered[]>()
  #sentAt = 0
  #gathers = false
  #found: Finding[] = []
  readonly #loans = new Map<number, (answer: Answer | Error) => void>()
  readonly #asked = new Map<number, Asked>()
  readonly #pulled = new Map<number, Pulled>()
  #lastId = 0
  #emptied = () => {}

  constructor(port: MessagePort, { counters, onTold }: { counters: Counters; onTold(told: Told): void }) {
    this.#onTold = onTold
    const onItem = (told: Told) => this.#hear(told)
    this.port = new ThreadPort(port, { counters, onItem, first: () => this.#unsaid() })
    this.purse = new Purse({
      lend: (needs, onAnswer) => {
        const id = ++this.#lastId
        this.#loans.set(id, onAnswer)
        this.port.sayNow({ kind: 'lend', id, needs })
      },
      giveBack: (account, amount, closes) => this.port.say({ kind: 'giveBack', account, amount, closes }),
    })
  }

  /** Resolves when the row is on disk, as the ledger's own `settle`. */
  readonly ledger: CallLedger = {
    settle: (record, response) =>
      new Promise((resolve, reject) => {
        this.#unsent.push({ record, response: response && sentResponse(response), resolve, reject })
        this.port.wake(this.#waitMs())
      }),
  }

  /** Lines for the log of the process. */
  log(lines: string): void {
    this.port.say({ kind: 'log', lines }, this.#waitMs())
  }

  /** Something that this line has found out about providers. The others know it before the rows of the same turn are answered. */
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

  /** A route that the books answer. */
  far(route: JsonRoute): JsonRoute {
    const name = routeName(route)
    return {
      ...route,
      answer: (request) => {
        const id = ++this.#lastId
        const { headers, params, query } = request
        const { promise, resolve, reject } = Promise.withResolvers<JsonAnswer>()
        this.#asked.set(id, { request, resolve, reject })
        const plain = { headers: { ...headers }, params: { ...params }, query: { ...query } }
        this.port.sayNow({ kind: 'ask', id, route: name, request: plain })
        return promise
      },
    }
  }

  #hear(told: Told): void {
    if (told.kind === 'settled') for (const id of told.ids) this.#settled(id)
    else if (told.kind === 'unsettled') this.#settled(told.id, told.refused)
    else if (told.kind === 'lent') this.#lent(told.id, told.answer)
    else if (told.kind === 'recall') this.#recall(told)
    else if (told.kind === 'readBody') void this.#readBody(told.id)
    else if (told.kind === 'answer') this.#answered(told)
    else if (told.kind === 'piece') this.#gotPiece(told)
    else this.#onTold(told)
  }

  /** While several calls end in a few milliseconds their rows are one message, as they are one commit. */
  #waitMs(): number {
    return this.#gathers ? this.#sentAt + gatherMs - performance.now() : 0
  }

  #settled(id: number, refused: readonly { index: number; error: SentError }[] = []): void {
    const rows = this.#sent.get(id) ?? []
    this.#sent.delete(id)
    for (const { index, error } of refused) rows[index]?.reject(receivedError(error))
    for (const { resolve } of rows) resolve()
    if (this.#isSettled()) this.#emptied()
  }

  #isSettled(): boolean {
    return this.#unsent.length === 0 && this.#sent.size === 0
  }

  #lent(id: number, answer: Answer | Error): void {
    const onAnswer = this.#loans.get(id)
    this.#loans.delete(id)
    onAnswer?.(answer instanceof Error ? unreadable(answer) : answer)
  }

  /** What this line has spent is told first: it is no longer held. */
  #recall({ id, accounts }: Extract<Told, { kind: 'recall' }>): void {
    this.port.flush()
    this.port.sayNow({ kind: 'held', id, held: this.purse.recall(accounts) })
  }

  async #readBody(id: number): Promise<void> {
    try {
      this.port.sayNow({ kind: 'body', id, body: await this.#asked.get(id)?.request.readBody() })
    } catch (thrown) {
      this.port.sayNow({ kind: 'body', id, error: sentError(asRouterError(thrown)) })
    }
  }

  #answered({ id, answer, streams, error }: Extract<Told, { kind: 'answer' }>): void {
    const asked = this.#asked.get(id)
    this.#asked.delete(id)
    if (error) asked?.reject(receivedError(error))
    else if (answer) asked?.resolve(streams ? { ...answer, body: this.#farBody(id) } : answer)
  }

  /** A body that the books send piece by piece, each when it is asked for. */
  #farBody(id: number): NonNullable<JsonAnswer['body']> {
    return {
      next: () =>
        new Promise((resolve, reject) => {
          this.#pulled.set(id, { resolve, reject })
          this.port.sayNow({ kind: 'pull', id })
        }),
      return: async () => {
        this.port.sayNow({ kind: 'drop', id })
        return { done: true, value: undefined }
      },
    }
  }

  #gotPiece({ id, text, error }: Extract<Told, { kind: 'piece' }>): void {
    const pulled = this.#pulled.get(id)
    this.#pulled.delete(id)
    if (error) pulled?.reject(receivedError(error))
    else pulled?.resolve(text === undefined ? { done: true, value: undefined } : { done: false, value: text })
  }

  /** The message with the unsent rows from there on, as far as they fit. */
  #rows(from: number): Said {
    const rows = this.#unsent.slice(from, from + maxBatch)
    const id = ++this.#lastId
    this.#sent.set(
      id,
      rows.map(({ resolve, reject }) => ({ resolve, reject })),
    )
    return { kind: 'rows', id, rows: sentRows(rows) }
  }

  #unsaid(): Said[] {
    const said: Said[] = []
    if (this.#unsent.length > 0) {
      for (let from = 0; from < this.#unsent.length; from += maxBatch) said.push(this.#rows(from))
      this.#gathers = this.#unsent.length > 1
      this.#sentAt = performance.now()
      this.#unsent = []
    }
    const uses = this.purse.takeUses()
    if (uses.length > 0) said.push({ kind: 'uses', uses })
    if (this.#found.length > 0) said.push({ kind: 'found', findings: this.#found })
    this.#found = []
    return said
  }
}

function unreadable(cause: Error): RouterError {
  const message = 'The router cannot read the current spending. New calls are refused until it can.'
  return new RouterError('unavailable', message, { cause })
}
