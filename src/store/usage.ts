import { Worker } from 'node:worker_threads'
import { type Connection, inMemory } from './connection.ts'
import { StoreError, storeError } from './store-error.ts'
import { type UsageQuery, type UsageRow, UsageTooLarge, usageReporter } from './usage-query.ts'
import type { UsageAnswer, UsageMessage } from './usage-worker.ts'

/** Usage reports. */
export type Usage = {
  /** Rejects with UsageTooLarge and StoreError. */
  query(query: UsageQuery): Promise<UsageRow[]>
  close(): void
}

/** Usage reports of a database, from a thread of its own; from this one when the database is in memory. */
export function usage(db: Connection): Usage {
  return db.name === inMemory ? usageInThisThread(db) : usageThread(db.name)
}

function usageInThisThread(db: Connection): Usage {
  return {
    async query(query) {
      try {
        return usageReporter(db)(query)
      } catch (thrown) {
        throw thrown instanceof UsageTooLarge ? thrown : storeError(thrown, db.name)
      }
    },
    close() {},
  }
}

type Waiting = {
  query: UsageQuery
  rows: UsageRow[]
  resolve(rows: UsageRow[]): void
  reject(error: Error): void
}

/** The thread starts with the first query, and restarts after it died; it runs one query at a time and does not keep the process alive. */
function usageThread(path: string): Usage {
  const waiting: Waiting[] = []
  let running: Worker | undefined
  const runNext = () => {
    const [next] = waiting
    if (!next) {
      running?.unref()
      return
    }
    running ??= start()
    running.ref()
    running.postMessage(next.query satisfies UsageMessage)
  }
  const start = () => {
    const worker = new Worker(new URL('./usage-worker.ts', import.meta.url), { workerData: path })
    let reason = 'it exited'
    worker.on('message', (answer: UsageAnswer) => {
      if ('rows' in answer) waiting[0]?.rows.push(...answer.rows)
      if ('rows' in answer && answer.more) {
        worker.postMessage('more' satisfies UsageMessage)
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
      waiting.shift()?.reject(new StoreError(`${path}: the thread that counts usage failed (${reason})`))
      runNext()
    })
    return worker
  }
  return {
    query(query) {
      const { promise, resolve, reject } = Promise.withResolvers<UsageRow[]>()
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

function settle(waiting: Waiting | undefined, answer: UsageAnswer): void {
  if ('rows' in answer) waiting?.resolve(waiting.rows)
  else if ('tooLarge' in answer) waiting?.reject(new UsageTooLarge(answer.tooLarge))
  else waiting?.reject(new StoreError(answer.failure, undefined, answer.reason))
}
