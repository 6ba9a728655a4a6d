import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { storeError } from '../../store-error.ts'
import { decidingDamage, type IntegrityAnswer } from './integrity.ts'

/** The thread that looks for damage once: it reads while the event loop goes on. */
const path: string = workerData
parentPort?.postMessage(checked())

function checked(): IntegrityAnswer {
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true })
    try {
      return { damage: decidingDamage(db) }
    } finally {
      db.close()
    }
  } catch (thrown) {
    const { message: failure, reason } = storeError(thrown, path)
    return { failure, reason }
  }
}
