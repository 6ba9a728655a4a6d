import { existsSync } from 'node:fs'
import { StoreError, storeError } from '../store-error.ts'
import { connect, proveWritable } from './connection.ts'
import { acquireLock } from './lock.ts'
import { migrations, missingMigrations } from './schema/migrations.ts'

/** Facts about a database that exists, found while a router may run with it. `newestCall` is Unix milliseconds. */
export type DatabaseFacts = {
  /** A router runs with it. */
  isServing: boolean
  /** Number of steps by which its tables are older than this program. */
  missingMigrations: number
  newestCall?: number
}

/** Looks at the database file at a path, and writes to the disk without changing any data. Throws StoreError. */
export function inspectDatabase(path: string): DatabaseFacts {
  const isServing = isLocked(path)
  const db = connect(path, { mustExist: true })
  try {
    const missing = missingMigrations(db, migrations)
    proveWritable(db)
    const hasLedger = missing < migrations.length
    const newest = hasLedger
      ? db.prepare<[], number>('SELECT at FROM ledger ORDER BY rowid DESC LIMIT 1').pluck().get()
      : undefined
    return { isServing, missingMigrations: missing, ...(newest !== undefined && { newestCall: newest }) }
  } catch (thrown) {
    throw thrown instanceof StoreError ? thrown : storeError(thrown, path)
  } finally {
    db.close()
  }
}

/** Returns the names of the migrations that a database lacks, and whether a router runs with it. Throws StoreError. */
export function pendingMigrations(path: string): { names: string[]; isServing: boolean } {
  const isServing = isLocked(path)
  const db = connect(path, { mustExist: true })
  try {
    const missing = missingMigrations(db, migrations)
    return { names: missing === 0 ? [] : migrations.slice(-missing).map(({ name }) => name), isServing }
  } catch (thrown) {
    throw thrown instanceof StoreError ? thrown : storeError(thrown, path)
  } finally {
    db.close()
  }
}

/** Checks whether a router holds the lock of a database. */
function isLocked(path: string): boolean {
  if (!existsSync(`${path}-lock`)) return false
  try {
    acquireLock(path, 0).release()
    return false
  } catch {
    return true
  }
}
