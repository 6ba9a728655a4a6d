import Database from 'better-sqlite3'
import { storeError } from './store-error.ts'

/** An open SQLite connection. */
export type Connection = Database.Database

/** The path of a database that lives in memory and ends with its connection. */
export const inMemory = ':memory:'

/** How long a connection waits for another process or thread that writes, before it gives up. */
const busyTimeoutMs = 5_000
/** Checkpoints cut the write-ahead log back to this size, so that one burst does not keep its space for ever. Bytes. */
const logSizeLimit = 64 * 1024 * 1024

/** Opens a connection with the settings that all connections share. Throws StoreError. */
export function connect(path: string, options: { mustExist?: boolean } = {}): Connection {
  let db: Connection | undefined
  try {
    db = new Database(path, { timeout: busyTimeoutMs, fileMustExist: options.mustExist ?? false })
    const mode = db.pragma('journal_mode = WAL', { simple: true })
    if (path !== inMemory && mode !== 'wal') throw new Error(`journal mode is ${mode} where wal is needed`)
    // FULL: a commit that was answered survives a power cut, not only a crash of the process.
    db.pragma('synchronous = FULL')
    db.pragma('foreign_keys = ON')
    // What is deleted is overwritten: a conversation that somebody deleted must not stay in free pages.
    db.pragma('secure_delete = ON')
    db.pragma(`journal_size_limit = ${logSizeLimit}`)
    return db
  } catch (thrown) {
    db?.close()
    throw storeError(thrown, path)
  }
}

/** From now on a connection gives up so soon: for a thread that must not stand still. Milliseconds. */
export function waitAtMost(db: Connection, ms: number): void {
  db.pragma(`busy_timeout = ${ms}`)
}

/**
 * Writes something that means nothing, to the disk and not only to memory: a database that is full, locked or read-only
 * is found before anybody relies on it. Throws StoreError.
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
