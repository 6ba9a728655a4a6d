import Database from 'better-sqlite3'
import { storeError } from '../store-error.ts'
import { createPrivate, inMemory, keepPrivate } from './database-files.ts'

/** An open SQLite connection. */
export type Connection = Database.Database

/** Maximum time for which a connection waits for another process or thread that writes. */
const busyTimeoutMs = 5_000
/** Checkpoints truncate the write-ahead log to this size, so that a burst does not occupy the disk for good. Bytes. */
const logSizeLimit = 64 * 1024 * 1024

/** Opens a connection with the settings that all connections share, to files that only their owner may read. Throws StoreError. */
export function connect(path: string, options: { mustExist?: boolean } = {}): Connection {
  let db: Connection | undefined
  try {
    // SQLite gives the files that it creates beside the database the permissions of the database.
    if (path !== inMemory && !options.mustExist) createPrivate(path)
    db = new Database(path, { timeout: busyTimeoutMs, fileMustExist: options.mustExist ?? false })
    const mode = db.pragma('journal_mode = WAL', { simple: true })
    if (path !== inMemory && mode !== 'wal') throw new Error(`journal mode is ${mode} where wal is needed`)
    // Not before: a file that is not a database belongs to something else.
    if (path !== inMemory) for (const ending of ['', '-wal', '-shm']) keepPrivate(path + ending)
    // FULL: a commit that was answered survives a power cut, not only a crash of the process.
    db.pragma('synchronous = FULL')
    db.pragma('foreign_keys = ON')
    // Overwrites deleted rows: a deleted conversation must not survive in free pages.
    db.pragma('secure_delete = ON')
    db.pragma(`journal_size_limit = ${logSizeLimit}`)
    return db
  } catch (thrown) {
    db?.close()
    throw storeError(thrown, path)
  }
}

/** Sets how long a connection waits for a lock: for a thread that must not block. Milliseconds. */
export function waitAtMost(db: Connection, ms: number): void {
  db.pragma(`busy_timeout = ${ms}`)
}

/**
 * Writes to the disk, without changing any data, to detect a database that is full, locked or read-only before it is
 * needed. Throws StoreError.
 */
export function proveWritable(db: Connection): void {
  try {
    db.transaction(() => {
      const starts = db.pragma('user_version', { simple: true }) as number
      db.pragma(`user_version = ${(starts + 1) % 2 ** 31}`)
    }).immediate()
  } catch (thrown) {
    throw storeError(thrown, db.name)
  }
}
