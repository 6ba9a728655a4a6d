import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { StoreError, storeError } from './store-error.ts'

/** A claim on a database: as long as it stands nobody else gets one. */
export type Claim = { release(): void }

/**
 * Claims a database for the router of this process. It is a lock of the kernel on a file beside the database, which ends
 * with the process however that ends; connections to the database itself do not notice it. The folder must be there.
 * Waits `patienceMs` for another router that may be ending.
 * Throws StoreError when another router has it.
 */
export function claim(path: string, patienceMs = defaultPatienceMs): Claim {
  let lock: Database.Database | undefined
  try {
    lock = new Database(fileOf(path), { timeout: patienceMs })
    // Nothing is written: the transaction is there for its lock.
    lock.exec('BEGIN EXCLUSIVE')
  } catch (thrown) {
    lock?.close()
    throw isTaken(thrown) ? taken(path) : storeError(thrown, path)
  }
  const held = lock
  return { release: () => void held.close() }
}

/** A router that was killed a moment ago may need one to end. */
const defaultPatienceMs = 1_000

/** One file for one database, by whatever link it is reached. */
function fileOf(path: string): string {
  return `${realPath(path)}-lock`
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown
    return join(realpathSync(dirname(path)), basename(path))
  }
}

function isTaken(thrown: unknown): boolean {
  return thrown instanceof Database.SqliteError && thrown.code.startsWith('SQLITE_BUSY')
}

function taken(path: string): StoreError {
  return new StoreError(
    `${path}: another router serves with this database, and limits and budgets hold only within one; stop that one, or ` +
      'name another file in store.url',
  )
}
