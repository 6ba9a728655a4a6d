import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { StoreError, storeError } from '../store-error.ts'
import { type Connection, connect } from './connection.ts'
import { ownerOnly } from './database-files.ts'
import { spilledRecords } from './ledger/spill-file.ts'
import { acquireLock } from './lock.ts'
import { migrations } from './schema/migrations.ts'

/** Facts about the contents of a database or a backup. `version` counts migrations; times are Unix milliseconds. */
export type Contents = { version: number; bytes: number; newestCall?: number; newestChange?: number }

/** Tables with texts of clients and providers, which a backup may leave out. */
const contentTables = ['responses', 'response_items', 'provider_messages', 'plugin_values']

/** Pages that are copied between two turns of the event loop. */
const pagesAtOnce = 1_000

/**
 * Copies a database to a new file that only its owner can read, while a router may write to it: the copy is the state of one moment.
 * Throws StoreError, also for a file that exists, a database without any tables of this program, and a copy that is damaged.
 */
export async function writeBackup(
  path: string,
  file: string,
  { withoutContent = false }: { withoutContent?: boolean } = {},
): Promise<Contents & { waitingRows: number }> {
  if (existsSync(file)) throw new StoreError(`${file} exists; name another file`)
  if (!existsSync(path)) throw new StoreError(`${path}: there is no database yet; the first start creates it`)
  const partial = `${file}.${process.pid}.partial`
  try {
    const db = connect(path, { mustExist: true })
    try {
      contentsOf(db)
      createNew(partial)
      // What others commit from here on is not seen, and the copy never begins again.
      db.exec('BEGIN')
      db.prepare('SELECT count(*) FROM sqlite_master').get()
      await db.backup(partial, { progress: () => pagesAtOnce })
      db.exec('COMMIT')
    } finally {
      db.close()
    }
    const contents = finishBackup(partial, withoutContent)
    publish(partial, file)
    return { ...contents, waitingRows: spilledRecords(path).length }
  } catch (thrown) {
    throw storeError(thrown, file)
  } finally {
    rmSync(partial, { force: true })
  }
}

/** Makes a copy one file without a log beside it, and reads it from beginning to end. */
function finishBackup(partial: string, withoutContent: boolean): Contents {
  const db = new Database(partial, { fileMustExist: true })
  try {
    db.pragma('journal_mode = DELETE')
    if (withoutContent) removeContent(db)
    requireSound(db)
    return contentsOf(db)
  } finally {
    db.close()
    for (const ending of ['-wal', '-shm', '-journal']) rmSync(partial + ending, { force: true })
  }
}

function removeContent(db: Connection): void {
  db.pragma('secure_delete = ON')
  db.pragma('foreign_keys = OFF')
  const known = new Set(db.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all())
  db.transaction(() => {
    for (const table of contentTables) if (known.has(table)) db.exec(`DELETE FROM ${table}`)
  })()
}

/** Gives a finished file its name, unless another one has it by now. */
function publish(partial: string, file: string): void {
  synchronize(partial)
  try {
    linkSync(partial, file)
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new StoreError(`${file} exists; name another file`)
    // A disk without links.
    renameSync(partial, file)
  }
}

/**
 * Migrates a copy of a database, which is deleted afterwards, to see whether that works. Returns how long it took, in milliseconds. Throws
 * StoreError.
 */
export async function rehearseMigrations(path: string, migrateCopy: (copy: string) => Promise<void>): Promise<number> {
  const copy = `${path}-rehearsal-${process.pid}`
  try {
    await writeBackup(path, copy)
    const begun = performance.now()
    await migrateCopy(copy)
    return performance.now() - begun
  } finally {
    for (const ending of ['', '-wal', '-shm']) rmSync(copy + ending, { force: true })
  }
}

/** Reads what a backup contains. Throws StoreError where this program cannot use it. */
export function readBackup(file: string): Contents {
  if (!existsSync(file)) throw new StoreError(`${file}: there is no such file`)
  let db: Connection | undefined
  try {
    db = new Database(file, { readonly: true, fileMustExist: true })
    const contents = contentsOf(db)
    if (contents.version > migrations.length)
      throw new StoreError(
        `${file}: this backup was written by a newer inference-router (its version is ${contents.version}, this program knows ` +
          `${migrations.length}); restore it with that one`,
      )
    requireSound(db)
    return contents
  } catch (thrown) {
    throw storeError(thrown, file)
  } finally {
    db?.close()
  }
}

/** Result of a restore: what was restored, the name of the file that was replaced, and the keys that work again, by id. */
export type Restored = { contents: Contents; replaced?: string; revivedKeys: string[] }

/**
 * Puts a backup in the place of a database, which keeps another name beside it. Throws StoreError while a router runs, and, unless `force` is
 * set, where the database has calls or changes that the backup lacks.
 */
export function restoreBackup(file: string, path: string, { force = false }: { force?: boolean } = {}): Restored {
  const contents = readBackup(file)
  mkdirSync(dirname(path), { recursive: true })
  const lock = acquireLock(path, 0)
  const copy = `${path}-restoring`
  try {
    const exists = existsSync(path) && statSync(path).size > 0
    if (exists && !force) requireOlder(path, contents)
    const revivedKeys = exists ? keysThatWorkAgain(file, path) : []
    rmSync(copy, { force: true })
    copyPrivately(file, copy)
    synchronize(copy)
    const replaced = exists ? moveAside(path) : undefined
    for (const ending of ['-wal', '-shm']) rmSync(path + ending, { force: true })
    renameSync(copy, path)
    synchronize(dirname(path))
    return { contents, revivedKeys, ...(replaced !== undefined && { replaced }) }
  } catch (thrown) {
    throw storeError(thrown, path)
  } finally {
    rmSync(copy, { force: true })
    lock.release()
  }
}

/** Throws StoreError for a database with calls or changes after those of a backup, or one that cannot be read. */
function requireOlder(path: string, backup: Contents): void {
  const found = contentsAt(path)
  if (found instanceof StoreError) throw new StoreError(`${found.message}. --force replaces it; it keeps another name`)
  const [newest, last] = [newestOf(found), newestOf(backup)]
  const waiting = spilledRecords(path).length
  if (newest <= last && waiting === 0) return
  const rows = waiting === 0 ? '' : `, and ${waiting} rows in ${path}-spill are not in it yet`
  throw new StoreError(
    `${path}: this database is newer than the backup: it has calls or changes until ${time(newest)}, the backup until ` +
      `${time(last)}${rows}. --force replaces it; it keeps another name`,
  )
}

function contentsAt(path: string): Contents | StoreError {
  let db: Connection | undefined
  try {
    db = connect(path, { mustExist: true })
    return contentsOf(db)
  } catch (thrown) {
    return storeError(thrown, path)
  } finally {
    db?.close()
  }
}

function newestOf({ newestCall = 0, newestChange = 0 }: Contents): number {
  return Math.max(newestCall, newestChange)
}

function time(at: number): string {
  return at === 0 ? 'none' : new Date(at).toISOString()
}

/** Returns the ids of keys that a backup accepts, and the database that it replaces does not accept any more. */
function keysThatWorkAgain(file: string, path: string): string[] {
  try {
    const accepted = new Set(activeKeys(path).map(({ hash }) => hash))
    return activeKeys(file).flatMap(({ id, hash }) => (accepted.has(hash) ? [] : [id]))
  } catch {
    // A database that cannot be read says nothing about its keys.
    return []
  }
}

function activeKeys(path: string): { id: string; hash: string }[] {
  const db = new Database(path, { readonly: true, fileMustExist: true })
  try {
    return db
      .prepare<[], { id: string; hash: string }>(
        'SELECT id, hex(hash) AS hash FROM api_keys WHERE revoked_at IS NULL ORDER BY id',
      )
      .all()
  } finally {
    db.close()
  }
}

/** Gives a database another name, with the files beside it that have data. Returns that name. */
function moveAside(path: string): string {
  const aside = `${path}-replaced-${new Date().toISOString().replace(/[-:]|\.\d+/g, '')}`
  try {
    const db = connect(path, { mustExist: true })
    db.pragma('wal_checkpoint(TRUNCATE)')
    db.close()
  } catch {
    // A damaged database keeps its log beside it.
  }
  for (const ending of ['-wal', '-spill']) if (existsSync(path + ending)) renameSync(path + ending, aside + ending)
  try {
    // The database keeps its name as well, until the restored one takes it.
    linkSync(path, aside)
  } catch {
    renameSync(path, aside)
  }
  return aside
}

/** Reads the contents of a database. Throws StoreError for one of another program. */
function contentsOf(db: Connection): Contents {
  const tables = new Set(db.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all())
  if (!tables.has('migrations') || !tables.has('ledger'))
    throw new StoreError(`${db.name}: this is not a database of inference-router`)
  const number = (sql: string) => db.prepare<[], number | null>(sql).pluck().get() ?? undefined
  const [pages = 0, size = 0] = [
    db.pragma('page_count', { simple: true }),
    db.pragma('page_size', { simple: true }),
  ] as number[]
  const newestCall = number('SELECT at FROM ledger ORDER BY rowid DESC LIMIT 1')
  const newestChange = tables.has('audit') ? number('SELECT at FROM audit ORDER BY rowid DESC LIMIT 1') : undefined
  return {
    version: number('SELECT coalesce(max(version), 0) FROM migrations') ?? 0,
    bytes: pages * size,
    ...(newestCall !== undefined && { newestCall }),
    ...(newestChange !== undefined && { newestChange }),
  }
}

/** Throws StoreError for a file that is damaged. */
function requireSound(db: Connection): void {
  const found = db.pragma('quick_check(1)', { simple: true })
  if (found !== 'ok') throw new StoreError(`${db.name}: the file is damaged (${String(found)})`)
}

/** Creates a file that nobody but its owner may read. Throws where another one, or a link, has its name. */
function createNew(path: string): void {
  closeSync(openSync(path, 'wx', ownerOnly))
}

/** Copies a file to a new one that only its owner can read at any time: `copyFile` would give it the permissions of the first. */
function copyPrivately(from: string, to: string): void {
  const [source, target] = [openSync(from, 'r'), openSync(to, 'wx', ownerOnly)]
  try {
    const bytes = Buffer.alloc(1_048_576)
    for (let read = readSync(source, bytes); read > 0; read = readSync(source, bytes)) {
      for (let written = 0; written < read; ) written += writeSync(target, bytes, written, read - written)
    }
  } finally {
    closeSync(source)
    closeSync(target)
  }
}

function synchronize(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } catch (thrown) {
    // Some systems synchronize no folders.
    if (!statSync(path).isDirectory()) throw thrown
  } finally {
    closeSync(file)
  }
}
