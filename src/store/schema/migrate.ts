import type { Connection } from '../connection.ts'
import { damageError, StoreError } from '../store-error.ts'
import type { Migration } from './types.ts'

/** Applies the missing migrations in one transaction. Throws StoreError for a database of a newer router. */
export function migrate(db: Connection, steps: readonly Migration[]): void {
  if (versionOf(db, steps.length) === steps.length) return
  const applySteps = db.transaction(() => {
    db.exec(`CREATE TABLE IF NOT EXISTS migrations (
      version INTEGER PRIMARY KEY,
      name TEXT NOT NULL,
      applied_at INTEGER NOT NULL
    ) STRICT`)
    const record = db.prepare('INSERT INTO migrations (version, name, applied_at) VALUES (?, ?, ?)')
    // Read a second time under the lock: another process may have migrated meanwhile.
    const applied = versionOf(db, steps.length)
    for (const [index, step] of steps.entries()) {
      if (index < applied) continue
      db.exec(step.sql)
      record.run(index + 1, step.name, Date.now())
    }
  })
  applySteps.immediate()
}

/** Throws StoreError for a database that `migrate` would change. */
export function requireMigrated(db: Connection, steps: readonly Migration[]): void {
  if (versionOf(db, steps.length) === steps.length) return
  throw new StoreError(
    `${db.name}: this version of inference-router changes the tables, which it cannot do while another one uses them: stop that ` +
      'one, then start this one',
  )
}

/** The number of migrations that a database has: 0 for a new file. */
function versionOf(db: Connection, newest: number): number {
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").pluck()
  const names = tables.all()
  if (names.length === 0) return 0
  if (!names.includes('migrations')) {
    throw new StoreError(`${db.name}: this database belongs to another program; name another file in store.url`)
  }
  const version = db.prepare<[], number>('SELECT coalesce(max(version), 0) FROM migrations').pluck().get() ?? 0
  // The first step and the list of steps are one commit.
  if (version === 0 && names.length > 1) throw damageError(db.name, 'its list of migrations is empty')
  if (version > newest) {
    throw new StoreError(
      `${db.name}: this database was written by a newer inference-router (its version is ${version}, this program knows ` +
        `${newest}). Start the newer program, or name another file in store.url.`,
    )
  }
  return version
}
