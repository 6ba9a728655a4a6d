import { parentPort, workerData } from 'node:worker_threads'
import type { CallRecord } from '../core/call.ts'
import { type Connection, connect } from './connection.ts'
import { storeError } from './failure.ts'
import { ledgerWriter, type Refused } from './ledger-writer.ts'
import type { StoredResponse } from './responses.ts'

/** What the thread answers to each batch; `failure` and `reason` are the message and the reason of a StoreError. */
export type WorkerAnswer = { refused: Refused[] } | { failure: string; reason: string | undefined }

/** What the thread takes: records as one JSON text, and responses to keep. */
export type WorkerBatch = { records: string; responses: readonly StoredResponse[] }

/** The thread that waits for the disk: takes batches, an empty text ends it. */
const path: string = workerData.path
let open: { db: Connection; write: ReturnType<typeof ledgerWriter> } | undefined

parentPort?.on('message', (batch: WorkerBatch | '') => {
  if (batch === '') {
    close()
    parentPort?.close()
  } else parentPort?.postMessage(written(batch))
})

function written({ records: text, responses }: WorkerBatch): WorkerAnswer {
  try {
    const records: CallRecord[] = JSON.parse(text)
    open ??= openWriter()
    return { refused: open.write(records, responses) }
  } catch (thrown) {
    // A new connection for the next try: this one may be what is broken.
    close()
    const { message: failure, reason } = storeError(thrown, path)
    return { failure, reason }
  }
}

function openWriter() {
  const db = connect(path, { mustExist: true })
  return { db, write: ledgerWriter(db) }
}

function close(): void {
  open?.db.close()
  open = undefined
}
