import type { CallRecord } from '../core/call.ts'
import { RouterError } from '../core/errors.ts'
import type { LedgerWriter, Refused } from '../store/ledger/writer.ts'
import type { SentResponse } from '../store/responses.ts'
import { StoreError } from '../store/store-error.ts'
import {
  batchLength,
  countRows,
  type Entry,
  type RefusedRow,
  type RowsText,
  recordsIn,
  refusedRows,
  writtenOf,
} from './ledger-entries.ts'

/** Writes settled calls to the database, each exactly once. */
export type LedgerQueue = {
  /**
   * Resolves when the row is on disk, with `response` in the same commit. Also resolves while the database fails: the
   * provider has answered and is paid, so the client gets its reply; the row is queued and retried. Rejects with
   * RouterError `internal` when the row can never be written. A record whose id is in the ledger already has no effect.
   * The record must not be modified afterwards.
   */
  settle(record: CallRecord, response?: SentResponse): Promise<void>
  /** Settles rows that another thread has sent. Resolves as `settle` does, to those that can never be written. */
  settleRows(rows: RowsText): Promise<readonly RefusedRow[]>
  /** Resolves when the writer has started: a call that settles earlier may have to wait longer than `patienceMs`. */
  ready(): Promise<void>
  /**
   * Returns why rows cannot be written, as a message for clients; undefined once all are written. A caller that checks it before each new
   * call bounds the queue to the calls that were running.
   */
  writeFailure(): string | undefined
  /** Returns the number of settled calls that are not on disk yet. */
  backlog(): number
  /** Writes the rest of the queue and closes the writer. Rejects when rows were lost; `onError` got them. */
  close(): Promise<void>
}

/** Receives failures; `lost` are records that will not be retried, `backlog` is the number of those that will. */
export type LedgerErrorListener = (error: Error, details: { backlog: number; lost: readonly CallRecord[] }) => void

/**
 * `onError` is called when a failure begins, when its reason changes, once a minute while it lasts, and for lost records;
 * `onRecovery` when all rows are written. `patienceMs` is how long `settle` waits for the disk, `closingMs` how long
 * `close` waits for the rest of the queue.
 */
export type LedgerOptions = {
  onError: LedgerErrorListener
  onRecovery?: () => void
  /** Called with the duration of each commit, in milliseconds. */
  onCommit?: (ms: number) => void
  patienceMs?: number
  closingMs?: number
}

/** Opens the queue on a writer, which it then owns: `openLedger(store.ledger.openWriter(), { onError })`. */
export function openLedger(writer: LedgerWriter, options: LedgerOptions): LedgerQueue {
  return new BatchingQueue(writer, options)
}

/**
 * Minimum interval between the starts of commits while several calls end in that time: waiting for the disk takes five times the work of
 * a row. A call that ends alone does not wait.
 */
const gatherMs = 4
/** The delay of the first retry after a failure, which doubles with each further one, and its upper bound. */
const [firstRetryMs, lastRetryMs] = [50, 1_000]

/** Long enough for a short lock of another process; a longer one must not delay more and more calls. */
const defaultPatienceMs = 2_000
/** Well below the ten seconds after which containers are killed, so that lost records can be reported. */
const defaultClosingMs = 5_000
/** Interval at which a lasting failure is reported. */
const reminderMs = 60_000

/** Maximum time for which `settle` waits until its row is at least in the spill file. */
const spillMs = 1_000

/** Collects rows while the writer waits for the disk and writes them as one batch: the slower the disk, the larger the commits. */
class BatchingQueue implements LedgerQueue {
  readonly #writer: LedgerWriter
  readonly #options: LedgerOptions
  readonly #patienceMs: number
  readonly #closingMs: number
  #failure: { message: string; reportedAt: number } | undefined
  #queued: Entry[] = []
  #writing: Entry[] = []
  #wakeUp: NodeJS.Immediate | NodeJS.Timeout | undefined
  #sentAt = 0
  #gathers = false
  #retryMs = firstRetryMs
  #closed: Promise<void> | undefined
  /** True once the remaining rows are left to the next start: nothing more is sent to the writer, which would start its thread again. */
  #isOver = false
  #patience: NodeJS.Timeout | undefined
  #drained = () => {}

  constructor(writer: LedgerWriter, options: LedgerOptions) {
    this.#writer = writer
    this.#options = options
    this.#patienceMs = options.patienceMs ?? defaultPatienceMs
    this.#closingMs = options.closingMs ?? defaultClosingMs
  }

  settle(record: CallRecord, response?: SentResponse): Promise<void> {
    if (this.#closed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#add(record, response ? [response] : [], ([refused]) => (refused ? reject(refused.error) : resolve()))
    })
  }

  settleRows(rows: RowsText): Promise<readonly RefusedRow[]> {
    if (this.#closed) {
      const error = closedError()
      return Promise.resolve(Array.from({ length: rows.count }, (_, index) => ({ index, error })))
    }
    return new Promise((resolve) => this.#add(rows, rows.responses ?? [], resolve))
  }

  ready(): Promise<void> {
    return this.#writer.ready()
  }

  backlog(): number {
    return countRows(this.#queued) + countRows(this.#writing)
  }

  writeFailure(): string | undefined {
    return this.#failure?.message
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  #add(rows: Entry['rows'], responses: Entry['responses'], onSettled: (refused: readonly RefusedRow[]) => void): void {
    const refused: RefusedRow[] = []
    const resolve = () => onSettled([...refused])
    this.#queued.push({ rows, responses, isReleased: false, isSpilled: false, refused, resolve })
    if (this.#writing.length === 0) this.#schedule()
  }

  /** Schedules a commit: calls that settle in the same turn of the event loop, or soon after, share it. */
  #schedule(): void {
    const waitMs = this.#gathers && !this.#closed ? this.#sentAt + gatherMs - performance.now() : 0
    this.#wakeUp ??= waitMs > 0 ? setTimeout(() => this.#send(), waitMs) : setImmediate(() => this.#send())
  }

  #send(): void {
    this.#wakeUp = undefined
    if (this.#isOver) return
    this.#sentAt = performance.now()
    this.#writing = this.#queued
    this.#queued = this.#writing.splice(batchLength(this.#writing))
    this.#gathers = countRows(this.#writing) > 1
    // One timer for all batches: to make one for each takes as long as the batch of a single call.
    this.#patience = this.#patience?.refresh() ?? setInterval(() => this.#hasWaited(), this.#patienceMs)
    const { records, responses, texts } = writtenOf(this.#writing)
    this.#writer.write(records, responses, texts).then(
      (refused) => this.#written(refused),
      (error: Error) => this.#failed(error),
    )
  }

  #hasWaited(): void {
    if (this.#writing.length === 0) {
      clearInterval(this.#patience)
      this.#patience = undefined
    } else {
      this.#release(new StoreError(`the disk did not respond within ${this.#patienceMs} ms`, undefined, noAnswer))
    }
  }

  #written(refused: readonly Refused[]): void {
    this.#options.onCommit?.(performance.now() - this.#sentAt)
    const entries = this.#writing
    this.#writing = []
    this.#retryMs = firstRetryMs
    for (const { entry, index, record, reason } of refused.length > 0 ? refusedRows(entries, refused) : []) {
      const error = new Error(`a call cannot be written to the ledger: ${reason}`)
      this.#options.onError(error, { backlog: this.backlog(), lost: [record] })
      entry.refused.push({ index, error: unwritten(error) })
    }
    for (const entry of entries) entry.resolve()
    if (this.#queued.length > 0) this.#schedule()
    else this.#emptied()
  }

  #emptied(): void {
    this.#drained()
    if (!this.#failure) return
    this.#failure = undefined
    // If that fails, the next start reads them again; records that are in the ledger are skipped.
    this.#writer.spill?.clear().catch(() => {})
    this.#options.onRecovery?.()
  }

  #failed(error: Error): void {
    if (this.#isOver) return
    this.#queued = [...this.#writing, ...this.#queued]
    this.#writing = []
    this.#wakeUp = setTimeout(() => this.#send(), this.#retryMs)
    this.#retryMs = Math.min(this.#retryMs * 2, lastRetryMs)
    this.#release(error)
  }

  /** Stops all waits; the rows stay queued, also those not tried yet, which would have failed as well. */
  #release(error: Error): void {
    this.#spillAndResolve([...this.#writing, ...this.#queued].filter(({ isReleased }) => !isReleased))
    const reason = (error instanceof StoreError && error.reason) || 'the database cannot be used'
    const message = `The router cannot write its ledger: ${reason}.`
    const now = performance.now()
    const known = this.#failure
    const isReported = known?.message === message && now - known.reportedAt < reminderMs
    this.#failure = { message, reportedAt: isReported ? known.reportedAt : now }
    if (!isReported) this.#options.onError(error, { backlog: this.backlog(), lost: [] })
  }

  /** Puts rows into the spill file, as far and as soon as the disk takes them, and resolves their `settle`. */
  async #spillAndResolve(entries: Entry[]): Promise<void> {
    for (const entry of entries) entry.isReleased = true
    const { spill } = this.#writer
    if (spill && entries.length > 0) {
      const spilled = spill.append(entries.flatMap(recordsIn)).then(
        () => {
          for (const entry of entries) entry.isSpilled = true
        },
        () => {},
      )
      await settledWithin(spillMs, spilled)
    }
    for (const { resolve } of entries) resolve()
  }

  async #close(): Promise<void> {
    const drained = new Promise<void>((resolve) => {
      this.#drained = resolve
      if (this.backlog() === 0) resolve()
    })
    const inTime = await settledWithin(this.#closingMs, drained)
    this.#isOver = true
    clearTimeout(this.#wakeUp as NodeJS.Timeout)
    clearInterval(this.#patience)
    const left = [...this.#writing, ...this.#queued]
    await settledWithin(this.#closingMs, this.#writer.close())
    if (inTime) return
    const lost = left.filter(({ isSpilled }) => !isSpilled).flatMap(recordsIn)
    if (lost.length === 0) {
      const backlog = countRows(left)
      const error = new Error(`${backlog} settled calls are in the spill file; the next start writes them`)
      this.#options.onError(error, { backlog, lost })
      return
    }
    const error = new Error(
      `${lost.length} settled calls could not be written to the ledger before the process stopped`,
    )
    this.#options.onError(error, { backlog: 0, lost })
    throw error
  }
}

const noAnswer = 'the disk does not respond'

function closedError(): RouterError {
  return unwritten(new Error('the ledger is closed'))
}

/** The error for clients, without the path of the database, which stays in the cause. */
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
