import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { StoreError, storeError } from '../store-error.ts'
import { createPrivate, keepPrivate } from './database-files.ts'

/** An exclusive lock on a database. */
export type Lock = { release(): void }

/**
 * Locks a database for the router of this process. The operating system holds the lock, on a file beside the database, and
 * releases it however the process ends; connections to the database are not affected. The folder must exist. Waits
 * `patienceMs` for a router that may be shutting down. Throws StoreError when another router holds the lock.
 */
export function acquireLock(path: string, patienceMs = defaultPatienceMs): Lock {
  let lock: Database.Database | undefined
  try {
    const file = fileOf(path)
    createPrivate(file)
    keepPrivate(file)
    lock = new Database(file, { timeout: patienceMs })
    // The transaction writes nothing: it exists for its lock.
    lock.exec('BEGIN EXCLUSIVE')
  } catch (thrown) {
    lock?.close()
    throw isLocked(thrown) ? lockedError(path) : storeError(thrown, path)
  }
  const held = lock
  return { release: () => void held.close() }
}

/** A router that was just killed needs a moment to exit. */
const defaultPatienceMs = 1_000

/** The lock file of a database. */
function fileOf(path: string): string {
  return besideDatabase(path, 'lock')
}

/** A file beside a database, the same for all links to it. The folder must exist. */
export function besideDatabase(path: string, suffix: string): string {
  return `${realPath(path)}-${suffix}`
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown
    return join(realpathSync(dirname(path)), basename(path))
  }
}

function isLocked(thrown: unknown): boolean {
  return thrown instanceof Database.SqliteError && thrown.code.startsWith('SQLITE_BUSY')
}

function lockedError(path: string): StoreError {
  return new StoreError(
    `${path}: another router uses this database, and limits and budgets apply only within one process; stop that one, or ` +
      'name another file in store.url',
  )
}
