import { Worker } from 'node:worker_threads'
import { type Connection, inMemory } from './connection.ts'
import { StoreError, storeError } from './store-error.ts'
import { type UsageQuestion, type UsageRow, UsageTooLarge, usageAnswerer } from './usage-query.ts'
import type { UsageAnswer, UsageWish } from './usage-worker.ts'

/** What was used, counted on demand. */
export type Usage = {
  /** Rejects with UsageTooLarge and StoreError. */
  query(question: UsageQuestion): Promise<UsageRow[]>
  close(): void
}

/** Usage of a database: counted in a thread of its own, or in this one when the database is in memory. */
export function usage(db: Connection): Usage {
  return db.name === inMemory ? usageInThisThread(db) : usageThread(db.name)
}

function usageInThisThread(db: Connection): Usage {
  return {
    async query(question) {
      try {
        return usageAnswerer(db)(question)
      } catch (thrown) {
        throw thrown instanceof UsageTooLarge ? thrown : storeError(thrown, db.name)
      }
    },
    close() {},
  }
}

type Waiting = {
  question: UsageQuestion
  rows: UsageRow[]
  resolve(rows: UsageRow[]): void
  reject(error: Error): void
}

/** The thread starts with the first question, and again after it ended; it has one question at a time and keeps no process alive. */
function usageThread(path: string): Usage {
  const waiting: Waiting[] = []
  let running: Worker | undefined
  const askNext = () => {
    const [next] = waiting
    if (!next) {
      running?.unref()
      return
    }
    running ??= start()
    running.ref()
    running.postMessage(next.question satisfies UsageWish)
  }
  const start = () => {
    const worker = new Worker(new URL('./usage-worker.ts', import.meta.url), { workerData: path })
    let reason = 'it ended'
    worker.on('message', (answer: UsageAnswer) => {
      if ('rows' in answer) waiting[0]?.rows.push(...answer.rows)
      if ('rows' in answer && answer.more) {
        worker.postMessage('more' satisfies UsageWish)
        return
      }
      settle(waiting.shift(), answer)
      askNext()
    })
    worker.on('error', (error: unknown) => {
      reason = error instanceof Error ? error.message : String(error)
    })
    worker.on('exit', () => {
      running = undefined
      waiting.shift()?.reject(new StoreError(`${path}: the thread that counts usage failed (${reason})`))
      askNext()
    })
    return worker
  }
  return {
    query(question) {
      const { promise, resolve, reject } = Promise.withResolvers<UsageRow[]>()
      waiting.push({ question, rows: [], resolve, reject })
      if (waiting.length === 1) askNext()
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
