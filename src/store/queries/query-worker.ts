import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { storeError } from '../store-error.ts'
import { allCallsReader } from './all-calls-query.ts'
import { callsReader } from './calls-query.ts'
import { latencyReader } from './latency-query.ts'
import { type QueryAnswer, type QueryMessage, QueryTooLarge, type QueryWorker, type Reader } from './query.ts'
import { targetsReader } from './targets-query.ts'
import { usageReporter } from './usage-query.ts'

const readers = {
  usage: usageReporter,
  calls: callsReader,
  'all-calls': allCallsReader,
  latency: latencyReader,
  targets: targetsReader,
} satisfies {
  [kind in QueryWorker['kind']]: unknown
}

/** Rows per message: the receiving event loop must not block. */
const rowsAtOnce = 1_000

/** Cache that holds a month of a large organization in the tables of sums. */
const cacheKib = 16 * 1024

/** The thread of queries: it may read millions of rows while the event loop goes on. */
const { path, kind }: QueryWorker = workerData
let open: { db: Database.Database; answer: Reader<unknown, unknown> } | undefined

let left: unknown[] = []

let isPreparing = false

parentPort?.on('message', (message: QueryMessage) => {
  parentPort?.postMessage(answered(message))
  if (!isPreparing) prepare()
})

/** Prepares later answers, between messages. An error of the database is that of the next query. */
function prepare(): void {
  isPreparing = true
  setImmediate(() => {
    isPreparing = false
    try {
      if (open?.answer.readAhead?.()) prepare()
    } catch {}
  })
}

function answered(message: QueryMessage): QueryAnswer<unknown> {
  try {
    open ??= openToRead()
    if (message !== 'more') left = open.answer(message.query)
    const rows = left.slice(0, rowsAtOnce)
    left = left.slice(rowsAtOnce)
    return { rows, more: left.length > 0 }
  } catch (thrown) {
    if (thrown instanceof QueryTooLarge) return { tooLarge: thrown.message }
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
  return { db, answer: readers[kind](db) as Reader<unknown, unknown> }
}
