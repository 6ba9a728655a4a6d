import { Worker } from 'node:worker_threads'
import { type Connection, inMemory } from './connection.ts'
import { StoreError, storeError } from './failure.ts'
import { type UsageQuestion, type UsageRow, UsageTooLarge, usageAnswerer } from './usage-query.ts'
import type { UsageAnswer } from './usage-worker.ts'

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

type Waiting = { resolve(rows: UsageRow[]): void; reject(error: Error): void }

/** The thread starts with the first question, and again after it ended; it answers in order and keeps no process alive. */
function usageThread(path: string): Usage {
  let running: { worker: Worker; waiting: Waiting[] } | undefined
  const start = () => {
    const worker = new Worker(new URL('./usage-worker.ts', import.meta.url), { workerData: path })
    const waiting: Waiting[] = []
    let reason = 'it ended'
    worker.on('message', (answer: UsageAnswer) => {
      settle(waiting.shift(), answer)
      if (waiting.length === 0) worker.unref()
    })
    worker.on('error', (error: unknown) => {
      reason = error instanceof Error ? error.message : String(error)
    })
    worker.on('exit', () => {
      if (running?.worker === worker) running = undefined
      const failure = `${path}: the thread that counts usage failed (${reason})`
      for (const each of waiting.splice(0)) each.reject(new StoreError(failure))
    })
    return { worker, waiting }
  }
  return {
    query(question) {
      running ??= start()
      const { worker, waiting } = running
      const { promise, resolve, reject } = Promise.withResolvers<UsageRow[]>()
      waiting.push({ resolve, reject })
      worker.ref()
      worker.postMessage(question)
      return promise
    },
    close: () => void running?.worker.terminate(),
  }
}

function settle(waiting: Waiting | undefined, answer: UsageAnswer): void {
  if ('rows' in answer) waiting?.resolve(answer.rows)
  else if ('tooLarge' in answer) waiting?.reject(new UsageTooLarge(answer.tooLarge))
  else waiting?.reject(new StoreError(answer.failure, undefined, answer.reason))
}
