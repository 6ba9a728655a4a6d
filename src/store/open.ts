import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { audit } from './audit.ts'
import { openChanges } from './changes.ts'
import { type Connection, connect, inMemory, proveWritable, waitAtMost } from './connection.ts'
import { groups } from './groups.ts'
import { keys } from './keys.ts'
import { ledger } from './ledger.ts'
import { type Claim, claim } from './lock.ts'
import { migrate } from './migrate.ts'
import { migrations } from './migrations.ts'
import { names } from './names.ts'
import { organizations } from './organizations.ts'
import { responses } from './responses.ts'
import { spend } from './spend.ts'
import { StoreError, storeError } from './store-error.ts'
import { usage } from './usage.ts'
import { books } from './verify-sums.ts'

/** The open database, its functions grouped by table. They work at once and throw StoreError or the engine's error. */
export type Store = ReturnType<typeof openStore>

/**
 * Opens `sqlite:<path>` or `sqlite::memory:`, made and brought up to date where needed. `asRouter` claims it: a second
 * router is refused, commands are not; `patienceMs` is how long it waits for one that may be ending. Throws StoreError.
 */
export function openStore(
  url: string,
  { asRouter = false, patienceMs }: { asRouter?: boolean; patienceMs?: number } = {},
) {
  const path = pathOf(url)
  if (path !== inMemory) makeFolder(path)
  // First: what another router serves with must not be changed.
  const claimed = asRouter && path !== inMemory ? claim(path, patienceMs) : undefined
  const db = openMigrated(path, claimed)
  const changes = openChanges(db)
  const counted = usage(db)
  return {
    path,
    organizations: organizations(db, changes),
    keys: keys(db, changes),
    groups: groups(db, changes),
    names: names(db, changes),
    audit: audit(db),
    spend: spend(db),
    usage: counted,
    ledger: ledger(db),
    books: books(db),
    responses: responses(db),
    /** Runs changes all or nothing; no other process writes meanwhile. */
    atomically: changes.atomically,
    /** Writes to the disk. Throws StoreError when the database is full, locked or read-only. */
    proveWritable: () => proveWritable(db),
    /** From now on no function waits longer for another process that writes: those of the event loop. Milliseconds. */
    waitAtMost: (ms: number) => waitAtMost(db, ms),
    close: (): void => {
      counted.close()
      db.close()
      claimed?.release()
    },
  }
}

function openMigrated(path: string, claimed: Claim | undefined): Connection {
  let db: Connection | undefined
  try {
    db = connect(path)
    migrate(db, migrations)
    return db
  } catch (thrown) {
    db?.close()
    claimed?.release()
    throw storeError(thrown, path)
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown)
    throw new StoreError(`${path}: the folder of the database cannot be made (${reason}); change store.url`, thrown)
  }
}

function pathOf(url: string): string {
  const path = /^sqlite:(?:\/\/)?(.+)$/s.exec(url)?.[1]
  if (path) return path
  throw new StoreError(`store.url is '${url}'; write "sqlite:<path of a file>" or "sqlite::memory:"`)
}
