import type { CallRecord } from '../core/call.ts'
import { RouterError } from '../core/errors.ts'
import type { LedgerWriter } from '../store/ledger-thread.ts'
import type { StoredResponse } from '../store/responses.ts'
import { StoreError } from '../store/store-error.ts'

/** Where settled calls are written, each exactly once. */
export type Ledger = {
  /**
   * Resolves when the row is on disk, `response` in the same commit. While the database fails it resolves as well: the
   * provider has answered and is paid, so the client gets what it pays for; the row is kept and tried again. Rejects with
   * RouterError `internal` when the row can never be written. A record whose id is in the ledger already changes nothing.
   * The record must not change afterwards.
   */
  settle(record: CallRecord, response?: StoredResponse): Promise<void>
  /**
   * What keeps rows from being written, in words fit for callers; undefined as soon as all are. Whoever asks before each
   * new call keeps the rows that wait in memory to those of the calls that were running.
   */
  trouble(): string | undefined
  /** How many settled calls are not on disk yet. */
  backlog(): number
  /** Writes what is left and ends the writer. Rejects when rows had to be given up; `onError` was told which. */
  close(): Promise<void>
}

/** Told of a failure; `lost` are the records that will not be tried again, `backlog` those that will. */
export type LedgerErrorListener = (error: Error, facts: { backlog: number; lost: readonly CallRecord[] }) => void

/**
 * `onError` is told when trouble begins, when it becomes another, once a minute while it lasts, and of every record that
 * is lost; `onRecovery` when all is written again. `patienceMs` is how long a settle waits for the disk, `closingMs` how
 * long close waits for the rest.
 */
export type LedgerOptions = {
  onError: LedgerErrorListener
  onRecovery?: () => void
  patienceMs?: number
  closingMs?: number
}

/** Opens the ledger on a writer, which it then owns: `openLedger(store.ledger.openWriter(), { onError })`. */
export function openLedger(writer: LedgerWriter, options: LedgerOptions): Ledger {
  return new QueuedLedger(writer, options)
}

/** A transaction of this many rows takes some 20 ms: a bound on what one commit holds up. */
const largestBatch = 1_000
/** After a failure the next try comes after the first of these, then twice as late each time, up to the last. */
const [firstRetryMs, lastRetryMs] = [50, 1_000]

/** A short lock of another process delays calls; what lasts longer must not hold up more and more of them. */
const defaultPatienceMs = 2_000
/** Well below the ten seconds after which containers are killed: what is lost must be told before. */
const defaultClosingMs = 5_000
/** How often trouble that lasts is told. */
const reminderMs = 60_000

/** How long a settle waits until its row is at least beside the database. */
const rescueMs = 1_000

/** `isLetGo`: nobody waits for it any longer. `isKept`: it outlives the process. */
type Row = {
  record: CallRecord
  response: StoredResponse | undefined
  isLetGo: boolean
  isKept: boolean
  resolve(): void
  reject(error: Error): void
}

/** Rows gather while the writer waits for the disk and go to it as one batch: the slower the disk, the larger the commits. */
class QueuedLedger implements Ledger {
  readonly #writer: LedgerWriter
  readonly #options: LedgerOptions
  readonly #patienceMs: number
  readonly #closingMs: number
  #trouble: { text: string; toldAt: number } | undefined
  #queued: Row[] = []
  #writing: Row[] = []
  #wakeUp: NodeJS.Immediate | NodeJS.Timeout | undefined
  #retryMs = firstRetryMs
  #closed: Promise<void> | undefined
  #drained = () => {}

  constructor(writer: LedgerWriter, options: LedgerOptions) {
    this.#writer = writer
    this.#options = options
    this.#patienceMs = options.patienceMs ?? defaultPatienceMs
    this.#closingMs = options.closingMs ?? defaultClosingMs
  }

  settle(record: CallRecord, response?: StoredResponse): Promise<void> {
    if (this.#closed) return Promise.reject(unwritten(new Error('the ledger is closed')))
    return new Promise((resolve, reject) => {
      this.#queued.push({ record, response, isLetGo: false, isKept: false, resolve, reject })
      // Not at once: what else settles in this turn of the event loop shares the commit.
      if (this.#writing.length === 0) this.#wakeUp ??= setImmediate(() => this.#send())
    })
  }

  backlog(): number {
    return this.#queued.length + this.#writing.length
  }

  trouble(): string | undefined {
    return this.#trouble?.text
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  #send(): void {
    this.#wakeUp = undefined
    this.#writing = this.#queued
    this.#queued = this.#writing.splice(largestBatch)
    const impatience = setInterval(() => {
      this.#letGo(new StoreError(`the disk did not answer within ${this.#patienceMs} ms`, undefined, noAnswer))
    }, this.#patienceMs)
    this.#writer
      .write(
        this.#writing.map(({ record }) => record),
        this.#writing.flatMap(({ response }) => response ?? []),
      )
      .finally(() => clearInterval(impatience))
      .then(
        (refused) => this.#written(refused),
        (error: Error) => this.#failed(error),
      )
  }

  #written(refused: { index: number; reason: string }[]): void {
    const rows = this.#writing
    this.#writing = []
    this.#retryMs = firstRetryMs
    for (const { index, reason } of refused) {
      const row = rows[index] as Row
      const error = new Error(`a call cannot be written to the ledger: ${reason}`)
      row.reject(unwritten(error))
      this.#options.onError(error, { backlog: this.backlog(), lost: [row.record] })
    }
    for (const row of rows) row.resolve()
    if (this.#queued.length > 0) this.#send()
    else this.#emptied()
  }

  #emptied(): void {
    this.#drained()
    if (!this.#trouble) return
    this.#trouble = undefined
    // Should that fail, the next start finds them again and writes none twice.
    this.#writer.rescue?.forget().catch(() => {})
    this.#options.onRecovery?.()
  }

  #failed(error: Error): void {
    this.#queued = [...this.#writing, ...this.#queued]
    this.#writing = []
    this.#wakeUp = setTimeout(() => this.#send(), this.#retryMs)
    this.#retryMs = Math.min(this.#retryMs * 2, lastRetryMs)
    this.#letGo(error)
  }

  /** Nobody waits any longer; the rows stay. Those not tried yet would have failed in the same way. */
  #letGo(error: Error): void {
    this.#rescue([...this.#writing, ...this.#queued].filter(({ isLetGo }) => !isLetGo))
    const reason = (error instanceof StoreError && error.reason) || 'the database cannot be used'
    const text = `The router cannot write its ledger: ${reason}.`
    const now = performance.now()
    const known = this.#trouble
    const isTold = known?.text === text && now - known.toldAt < reminderMs
    this.#trouble = { text, toldAt: isTold ? known.toldAt : now }
    if (!isTold) this.#options.onError(error, { backlog: this.backlog(), lost: [] })
  }

  /** What a killed process would lose goes beside the database first, as far and as soon as the disk takes it. */
  async #rescue(rows: Row[]): Promise<void> {
    for (const row of rows) row.isLetGo = true
    const { rescue } = this.#writer
    if (rescue && rows.length > 0) {
      const kept = rescue.keep(rows.map(({ record }) => record)).then(
        () => {
          for (const row of rows) row.isKept = true
        },
        () => {},
      )
      await settledWithin(rescueMs, kept)
    }
    for (const row of rows) row.resolve()
  }

  async #close(): Promise<void> {
    const drained = new Promise<void>((resolve) => {
      this.#drained = resolve
      if (this.backlog() === 0) resolve()
    })
    const inTime = await settledWithin(this.#closingMs, drained)
    clearTimeout(this.#wakeUp as NodeJS.Timeout)
    const left = [...this.#writing, ...this.#queued]
    await settledWithin(this.#closingMs, this.#writer.close())
    if (inTime) return
    const lost = left.filter(({ isKept }) => !isKept).map(({ record }) => record)
    if (lost.length === 0) {
      const error = new Error(`${left.length} settled calls wait beside the database for the next start to write them`)
      this.#options.onError(error, { backlog: left.length, lost })
      return
    }
    const error = new Error(
      `${lost.length} settled calls could not be written to the ledger before the process stopped`,
    )
    this.#options.onError(error, { backlog: 0, lost })
    throw error
  }
}

const noAnswer = 'the disk does not answer'

/** For the caller: without the path of the database, which stays in the cause. */
function unwritten(cause: Error): RouterError {
  return new RouterError('internal', 'The router could not write this call to its ledger.', { cause })
}

async function settledWithin(ms: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const inTime = await Promise.race([work.then(() => true as const), late])
  clearTimeout(timer)
  return inTime
}
