import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { audit } from './audit.ts'
import { openChanges } from './changes.ts'
import { groups } from './groups.ts'
import { heldStates } from './held-state.ts'
import { idempotency } from './idempotency.ts'
import { keys } from './keys.ts'
import { ledger } from './ledger/ledger.ts'
import { spend } from './ledger/sums.ts'
import { names } from './names.ts'
import { organizations } from './organizations.ts'
import { pluginValues } from './plugin-values.ts'
import { providerMessages } from './provider-messages.ts'
import { calls, usage } from './queries/reports.ts'
import { responses } from './responses.ts'
import { type Connection, connect, proveWritable, waitAtMost } from './sqlite/connection.ts'
import { inMemory } from './sqlite/database-files.ts'
import { sumVerifier } from './sqlite/ledger/verify-sums.ts'
import { acquireLock, besideDatabase, type Lock } from './sqlite/lock.ts'
import { integrity } from './sqlite/schema/integrity.ts'
import { migrate, migrations, requireMigrated } from './sqlite/schema/migrations.ts'
import { StoreError, storeError } from './store-error.ts'

/** Maximum time for which an event loop that serves may wait for the lock of another process. Milliseconds. */
export const eventLoopPatienceMs = 250

/** An open database: its functions, grouped by table. They are synchronous and throw StoreError or the engine's errors. */
export type Store = ReturnType<typeof openStore>

/**
 * Opens `sqlite:<path>` or `sqlite::memory:`, creating and migrating it where needed. `asRouter` locks it against a second
 * router, but not against commands; `patienceMs` is how long to wait for a router that is shutting down. Throws StoreError.
 */
export function openStore(
  url: string,
  { asRouter = false, patienceMs }: { asRouter?: boolean; patienceMs?: number } = {},
) {
  const path = pathOf(url)
  if (path !== inMemory) makeFolder(path)
  // Before anything else: a database that another router uses must not be migrated.
  let lock = asRouter && path !== inMemory ? acquireLock(path, patienceMs) : undefined
  const db = openMigrated(path, lock)
  const changes = openChanges(db)
  const usageReports = usage(db)
  const settledCalls = calls(db)
  const integrityChecks = integrity(db)
  return {
    path,
    organizations: organizations(db, changes),
    keys: keys(db, changes),
    groups: groups(db, changes),
    names: names(db, changes),
    audit: audit(db),
    idempotency: idempotency(db),
    spend: spend(db),
    usage: usageReports,
    calls: settledCalls,
    integrity: integrityChecks,
    ledger: ledger(db),
    verifySums: sumVerifier(db),
    responses: responses(db),
    held: heldStates(db),
    pluginValues: pluginValues(db),
    providerMessages: providerMessages(db),
    /** Announces what another connection of this process has changed. */
    announce: { key: changes.keys.notify, organization: changes.organizations.notify },
    /** Runs changes in a transaction that excludes other writers. */
    atomically: changes.atomically,
    /** Writes to the disk. Throws StoreError when that is not possible. */
    proveWritable: () => proveWritable(db),
    /** Sets how long the functions, which block the event loop, wait for another process that writes. Milliseconds. */
    waitAtMost: (ms: number) => waitAtMost(db, ms),
    /** Lets another router have the database, which stays open here as for a command. */
    unlock: (): void => lock?.release(),
    /** Locks it again for the router of this process. Throws StoreError when another one has it. */
    relock: (): void => {
      lock = acquireLock(path, 0)
    },
    close: (): void => {
      usageReports.close()
      settledCalls.close()
      void integrityChecks.close()
      db.close()
      lock?.release()
    },
  }
}

/**
 * The file through which a router on this database is asked to hand it over. Undefined where none can: the database is in
 * memory or does not exist yet. Throws StoreError where its tables are not those of this version.
 */
export function controlPathOf(url: string): string | undefined {
  const path = pathOf(url)
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

function pathOf(url: string): string {
  const path = /^sqlite:(?:\/\/)?(.+)$/s.exec(url)?.[1]
  if (path) return path
  throw new StoreError(`store.url is '${url}'; write "sqlite:<path of a file>" or "sqlite::memory:"`)
}
