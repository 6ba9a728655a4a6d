import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { storeError } from './store-error.ts'
import { type UsageQuestion, type UsageRow, UsageTooLarge, usageAnswerer } from './usage-query.ts'

/** What the thread answers: rows, and whether there are more of the same question. */
export type UsageAnswer =
  | { rows: UsageRow[]; more: boolean }
  | { tooLarge: string }
  | { failure: string; reason: string | undefined }

/** What the thread takes: a question, or the wish for more rows of the one before. */
export type UsageWish = UsageQuestion | 'more'

/** So many rows go over at once: who takes them in must not stand still. */
const rowsAtOnce = 1_000

/** A month of a large organization in the tables of sums. */
const cacheKib = 16 * 1024

/** The thread that counts usage: it reads what may be millions of rows while the event loop goes on. */
const path: string = workerData
let open: { db: Database.Database; answer: ReturnType<typeof usageAnswerer> } | undefined

let left: UsageRow[] = []

parentPort?.on('message', (wish: UsageWish) => parentPort?.postMessage(answered(wish)))

function answered(wish: UsageWish): UsageAnswer {
  try {
    open ??= openToRead()
    if (wish !== 'more') left = open.answer(wish)
    const rows = left.slice(0, rowsAtOnce)
    left = left.slice(rowsAtOnce)
    return { rows, more: left.length > 0 }
  } catch (thrown) {
    if (thrown instanceof UsageTooLarge) return { tooLarge: thrown.message }
    // A new connection for the next question: this one may be what is broken.
    open?.db.close()
    open = undefined
    const { message, reason } = storeError(thrown, path)
    return { failure: message, reason }
  }
}

function openToRead() {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  db.pragma(`cache_size = -${cacheKib}`)
  return { db, answer: usageAnswerer(db) }
}
