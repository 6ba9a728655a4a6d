import { Worker } from 'node:worker_threads'
import type { Connection } from '../sqlite/connection.ts'
import { inMemory } from '../sqlite/database-files.ts'
import type { SqliteDatabase } from '../sqlite/driver.ts'
import { StoreError, storeError } from '../store-error.ts'
import { type QueryAnswer, type QueryMessage, QueryTooLarge, type QueryWorker, type Reader } from './query.ts'

/** Queries that may read much, whose answers are rows. */
export type Queries<Query, Row> = {
  /** Rejects with QueryTooLarge and StoreError. */
  query(query: Query): Promise<Row[]>
  close(): void
}

/** Queries of a database at a path, answered in a thread of their own; in this one when the database is in memory. */
export function queries<Query, Row>(
  { db, path }: { db: SqliteDatabase; path: string },
  kind: QueryWorker['kind'],
  readerOf: (connection: Connection) => Reader<Query, Row>,
): Queries<Query, Row> {
  return path === inMemory ? inThisThread(db, readerOf) : queryThread({ path, kind })
}

function inThisThread<Query, Row>(
  db: SqliteDatabase,
  readerOf: (connection: Connection) => Reader<Query, Row>,
): Queries<Query, Row> {
  return {
    async query(query) {
      try {
        return await db.alone(() => readerOf(db.connection)(query))
      } catch (thrown) {
        throw thrown instanceof QueryTooLarge ? thrown : storeError(thrown, inMemory)
      }
    },
    close() {},
  }
}

type PendingQuery<Query, Row> = {
  query: Query
  rows: Row[]
  resolve(rows: Row[]): void
  reject(error: Error): void
}

/** The thread starts with the first query, and restarts after it died; it runs one query at a time and does not keep the process alive. */
function queryThread<Query, Row>(workerData: QueryWorker): Queries<Query, Row> {
  const { path } = workerData
  const waiting: PendingQuery<Query, Row>[] = []
  let running: Worker | undefined
  const runNext = () => {
    const [next] = waiting
    if (!next) {
      running?.unref()
      return
    }
    running ??= start()
    running.ref()
    running.postMessage({ query: next.query } satisfies QueryMessage)
  }
  const start = () => {
    const worker = new Worker(new URL('./query-worker.ts', import.meta.url), { workerData })
    let reason = 'it exited'
    worker.on('message', (answer: QueryAnswer<Row>) => {
      if ('rows' in answer) waiting[0]?.rows.push(...answer.rows)
      if ('rows' in answer && answer.more) {
        worker.postMessage('more' satisfies QueryMessage)
        return
      }
      settle(waiting.shift(), answer)
      runNext()
    })
    worker.on('error', (error: unknown) => {
      reason = error instanceof Error ? error.message : String(error)
    })
    worker.on('exit', () => {
      running = undefined
      waiting.shift()?.reject(new StoreError(`${path}: the thread that answers queries failed (${reason})`))
      runNext()
    })
    return worker
  }
  return {
    query(query) {
      const { promise, resolve, reject } = Promise.withResolvers<Row[]>()
      waiting.push({ query, rows: [], resolve, reject })
      if (waiting.length === 1) runNext()
      return promise
    },
    close() {
      const failure = new StoreError(`${path}: the database was closed`)
      for (const { reject } of waiting.splice(0)) reject(failure)
      running?.terminate()
    },
  }
}

function settle<Row>(waiting: PendingQuery<unknown, Row> | undefined, answer: QueryAnswer<Row>): void {
  if ('rows' in answer) waiting?.resolve(waiting.rows)
  else if ('tooLarge' in answer) waiting?.reject(new QueryTooLarge(answer.tooLarge))
  else waiting?.reject(new StoreError(answer.failure, undefined, answer.reason))
}
