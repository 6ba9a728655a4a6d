import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { storeError } from './failure.ts'
import { type UsageQuestion, type UsageRow, UsageTooLarge, usageAnswerer } from './usage-query.ts'

/** What the thread answers to each question, in their order. */
export type UsageAnswer = { rows: UsageRow[] } | { tooLarge: string } | { failure: string; reason: string | undefined }

/** A month of a large organization in the tables of sums. */
const cacheKib = 16 * 1024

/** The thread that counts usage: it reads what may be millions of rows while the event loop goes on. */
const path: string = workerData
let open: { db: Database.Database; answer: ReturnType<typeof usageAnswerer> } | undefined

parentPort?.on('message', (question: UsageQuestion) => parentPort?.postMessage(answered(question)))

function answered(question: UsageQuestion): UsageAnswer {
  try {
    open ??= openToRead()
    return { rows: open.answer(question) }
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
