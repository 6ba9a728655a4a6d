import { Worker } from 'node:worker_threads'
import type { LedgerWriter, Refused } from '../../ledger/writer.ts'
import { StoreError, storeError } from '../../store-error.ts'
import { fileAt } from '../database-files.ts'
import type { SqliteDatabase } from '../driver.ts'
import type { WorkerBatch, WorkerFile, WorkerMessage } from './ledger-worker.ts'
import { ledgerWriter } from './ledger-writer.ts'
import { openSpillFile } from './spill-file.ts'

/** Rows live for a batch: more room for them makes nothing faster. */
const youngMb = 4

/**
 * A writer with its own thread and connection, so that waiting for the disk never blocks the event loop. The thread starts
 * at once, since that can take seconds on a busy machine; one that has died is restarted with the next batch.
 */
export function ledgerThread(path: string, script = new URL('./ledger-worker.ts', import.meta.url)): LedgerWriter {
  const file = fileAt(path)
  const spill = openSpillFile(path)
  const { promise: ready, resolve: onReady } = Promise.withResolvers<void>()
  let pending: { resolve(refused: Refused[]): void; reject(error: StoreError): void } | undefined

  const start = (): Worker => {
    const resourceLimits = { maxYoungGenerationSizeMb: youngMb }
    const started = new Worker(script, { workerData: { path, file } satisfies WorkerFile, resourceLimits })
    let reason = 'it exited'
    started.on('message', (message: WorkerMessage) => {
      if (message === 'ready') return onReady()
      if ('refused' in message) pending?.resolve(message.refused)
      else pending?.reject(new StoreError(message.failure, undefined, message.reason))
      pending = undefined
    })
    started.on('error', (error: unknown) => {
      reason = error instanceof Error ? error.message : String(error)
    })
    started.on('exit', () => {
      worker = undefined
      onReady()
      pending?.reject(new StoreError(`${path}: the thread that writes the ledger failed (${reason})`))
      pending = undefined
    })
    return started
  }
  let worker: Worker | undefined = start()

  return {
    async write(records, responses = [], texts = []) {
      worker ??= start()
      const { promise, resolve, reject } = Promise.withResolvers<Refused[]>()
      pending = { resolve, reject }
      // Strings: cheaper than cloning thousands of small objects.
      const all = records.length > 0 ? [JSON.stringify(records), ...texts] : texts
      worker.postMessage({ texts: all, responses } satisfies WorkerBatch)
      return await promise
    },
    ready: () => ready,
    spill,
    async close() {
      const running = worker
      if (running) {
        const ended = new Promise((resolve) => running.once('exit', resolve))
        running.postMessage('')
        await ended
      }
      await spill.close()
    },
  }
}

/** A writer on the connection of this thread: for a database in memory, which no other thread can see. */
export function ledgerInThisThread(db: SqliteDatabase, name: string): LedgerWriter {
  const write = ledgerWriter(db.connection)
  return {
    async write(records, responses, texts = []) {
      try {
        const all = [...records, ...texts.flatMap((text) => JSON.parse(text))]
        return await db.alone(() => write(all, responses))
      } catch (thrown) {
        throw storeError(thrown, name)
      }
    },
    async ready() {},
    async close() {},
  }
}
