import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { openChanges } from '../changes.ts'
import { spend } from '../ledger/sums.ts'
import { calls, usage } from '../queries/reports.ts'
import type { Store } from '../store.ts'
import { StoreError, storeError } from '../store-error.ts'
import { openTables } from '../tables.ts'
import { type Connection, connect, proveWritable, waitAtMost } from './connection.ts'
import { inMemory } from './database-files.ts'
import { sqliteDatabase } from './driver.ts'
import { sqliteLedger } from './ledger/sqlite-ledger.ts'
import { sumVerifier } from './ledger/verify-sums.ts'
import { acquireLock, besideDatabase, type Lock } from './lock.ts'
import { integrity } from './schema/integrity.ts'
import { migrate, migrations, requireMigrated } from './schema/migrations.ts'

/**
 * Opens the database at a path, creating and migrating it where needed. `asRouter` locks it against a second router, but not against
 * commands; `patienceMs` is how long to wait for a router that is shutting down. Throws StoreError.
 */
export function openSqlite(
  path: string,
  { asRouter = false, patienceMs }: { asRouter?: boolean; patienceMs?: number } = {},
): Store {
  if (path !== inMemory) makeFolder(path)
  // Before anything else: a database that another router uses must not be migrated.
  let lock = asRouter && path !== inMemory ? acquireLock(path, patienceMs) : undefined
  const connection = openMigrated(path, lock)
  const db = sqliteDatabase(connection)
  const changes = openChanges()
  const usageReports = usage(db, path)
  const settledCalls = calls(db, path)
  const integrityChecks = integrity(connection)
  return {
    path,
    ...openTables(db, changes),
    immediate: { spend: spend(connection) },
    usage: usageReports,
    calls: settledCalls,
    integrity: integrityChecks,
    ledger: sqliteLedger(db, path),
    verifySums: (maxListed) => db.alone(() => sumVerifier(connection)(maxListed)),
    announce: { key: changes.keys.notify, organization: changes.organizations.notify },
    proveWritable: () => db.alone(() => proveWritable(connection)),
    waitAtMost: (ms) => waitAtMost(connection, ms),
    unlock: async () => lock?.release(),
    async relock() {
      lock = acquireLock(path, 0)
    },
    async close() {
      usageReports.close()
      settledCalls.close()
      void integrityChecks.close()
      connection.close()
      lock?.release()
    },
  }
}

/**
 * The file through which a router on the database at a path is asked to hand it over. Undefined where none can: the database is in
 * memory or does not exist yet. Throws StoreError where its tables are not those of this version.
 */
export function controlPath(path: string): string | undefined {
  if (path === inMemory || !existsSync(path)) return undefined
  const db = connect(path, { mustExist: true })
  try {
    requireMigrated(db, migrations)
  } finally {
    db.close()
  }
  return besideDatabase(path, 'control')
}

function openMigrated(path: string, lock: Lock | undefined): Connection {
  let db: Connection | undefined
  try {
    db = connect(path)
    migrate(db, migrations)
    return db
  } catch (thrown) {
    db?.close()
    lock?.release()
    throw storeError(thrown, path)
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown)
    throw new StoreError(`${path}: the folder of the database cannot be created (${reason}); change store.url`, thrown)
  }
}
