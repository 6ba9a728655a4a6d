import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { storeError } from './store-error.ts'
import { type UsageQuery, type UsageRow, UsageTooLarge, usageReporter } from './usage-query.ts'

/** A reply of the thread: rows, and whether there are more of the same query. */
export type UsageAnswer =
  | { rows: UsageRow[]; more: boolean }
  | { tooLarge: string }
  | { failure: string; reason: string | undefined }

/** A message to the thread: a query, or a request for more rows of the previous one. */
export type UsageMessage = UsageQuery | 'more'

/** Rows per message: the receiving event loop must not block. */
const rowsAtOnce = 1_000

/** Holds a month of a large organization in the tables of sums. */
const cacheKib = 16 * 1024

/** The thread of usage reports: it may read millions of rows while the event loop goes on. */
const path: string = workerData
let open: { db: Database.Database; answer: ReturnType<typeof usageReporter> } | undefined

let left: UsageRow[] = []

parentPort?.on('message', (message: UsageMessage) => parentPort?.postMessage(answered(message)))

function answered(message: UsageMessage): UsageAnswer {
  try {
    open ??= openToRead()
    if (message !== 'more') left = open.answer(message)
    const rows = left.slice(0, rowsAtOnce)
    left = left.slice(rowsAtOnce)
    return { rows, more: left.length > 0 }
  } catch (thrown) {
    if (thrown instanceof UsageTooLarge) return { tooLarge: thrown.message }
    // A new connection for the next query, in case this one is broken.
    open?.db.close()
    open = undefined
    const { message: failure, reason } = storeError(thrown, path)
    return { failure, reason }
  }
}

function openToRead() {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  db.pragma(`cache_size = -${cacheKib}`)
  return { db, answer: usageReporter(db) }
}
