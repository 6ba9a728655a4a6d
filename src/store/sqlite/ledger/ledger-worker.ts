import { parentPort, workerData } from 'node:worker_threads'
import type { CallRecord } from '../../../core/call.ts'
import type { Refused } from '../../ledger/writer.ts'
import type { SentResponse } from '../../responses.ts'
import { storeError } from '../../store-error.ts'
import { type Connection, connect } from '../connection.ts'
import { requireSameFile } from '../database-files.ts'
import { ledgerWriter } from './ledger-writer.ts'

/** The result of a batch; `failure` and `reason` are the message and the reason of a StoreError. */
export type BatchResult = { refused: Refused[] } | { failure: string; reason: string | undefined }

/** A message of the thread: `ready` when it accepts batches, then the result of each. */
export type WorkerMessage = 'ready' | BatchResult

/** A batch: records as JSON arrays, and responses to store. */
export type WorkerBatch = { texts: readonly string[]; responses: readonly SentResponse[] }

/** The path of the database, and the identity of its file when the router opened it. */
export type WorkerFile = { path: string; file: string | undefined }

/** The upper levels of the tables of sums and of the indices of some ten million rows. */
const cacheKib = 16 * 1024
/** 16 MB of log: pages that many commits change go to the database once. */
const pagesPerCheckpoint = 4_000

/** Time after which the start of the router is over. Milliseconds. */
const startMs = 2_000
/** Batches, counted as a server counts its requests: a batch is written at once. */
const batches = { begun: 0, size: 0 }

/** The thread that waits for the disk. An empty message ends it. */
const { path, file }: WorkerFile = workerData
let open: { db: Connection; write: ReturnType<typeof ledgerWriter> } | undefined

parentPort?.on('message', (batch: WorkerBatch | '') => {
  if (batch === '') {
    close()
    parentPort?.close()
  } else {
    batches.begun++
    parentPort?.postMessage(written(batch) satisfies WorkerMessage)
  }
})
parentPort?.postMessage('ready' satisfies WorkerMessage)
setTimeout(collectStart, startMs).unref()

/** Half of this thread's heap is what its start has left. */
async function collectStart(): Promise<void> {
  const { collectWhenIdle } = await import('../../../runtime/collect.ts')
  collectWhenIdle(batches)
}

function written({ texts, responses }: WorkerBatch): BatchResult {
  try {
    const records: CallRecord[] =
      texts.length === 1 ? JSON.parse(texts[0] as string) : texts.flatMap((text) => JSON.parse(text))
    open ??= openWriter()
    const refused = open.write(records, responses)
    // Checked after the write: rows written to a file that is gone are retried, and existing rows are skipped.
    requireSameFile(path, file)
    return { refused }
  } catch (thrown) {
    // A new connection for the next attempt, in case this one is broken.
    close()
    const { message: failure, reason } = storeError(thrown, path)
    return { failure, reason }
  }
}

function openWriter() {
  requireSameFile(path, file)
  const db = connect(path, { mustExist: true })
  db.pragma(`cache_size = -${cacheKib}`)
  db.pragma(`wal_autocheckpoint = ${pagesPerCheckpoint}`)
  return { db, write: ledgerWriter(db) }
}

function close(): void {
  open?.db.close()
  open = undefined
}
