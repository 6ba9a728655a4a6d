import { parentPort, workerData } from 'node:worker_threads'
import type { CallRecord } from '../core/call.ts'
import { type Connection, connect } from './connection.ts'
import { storeError } from './failure.ts'
import { ledgerWriter, type Refused } from './ledger-writer.ts'

/** What the thread answers to each batch. */
export type WorkerAnswer = { refused: Refused[] } | { failure: string }

/** The thread that waits for the disk: takes batches of records as JSON text, an empty text ends it. */
const path: string = workerData.path
let open: { db: Connection; write: ReturnType<typeof ledgerWriter> } | undefined

parentPort?.on('message', (batch: string) => {
  if (batch === '') {
    close()
    parentPort?.close()
  } else parentPort?.postMessage(written(batch))
})

function written(batch: string): WorkerAnswer {
  try {
    const records: CallRecord[] = JSON.parse(batch)
    open ??= openWriter()
    return { refused: open.write(records) }
  } catch (thrown) {
    // A new connection for the next try: this one may be what is broken.
    close()
    return { failure: storeError(thrown, path).message }
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
