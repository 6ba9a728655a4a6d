import { chmodSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import type { PluginLog } from 'inference-router/plugin'

/** A reply as the file has it; times are Unix milliseconds. */
export type FiledReply = { text: string; at: number; ends: number }

/** Replies in a SQLite file, which all threads read and which outlives the process. A file that fails has nothing. */
export type FileTier = {
  get(key: string): FiledReply | undefined
  put(key: string, reply: FiledReply): void
  close(): void
}

const table = `CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, text TEXT NOT NULL, at INTEGER NOT NULL, ends INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replies_by_end ON replies (ends)`

/** Opens the file, which nobody else may read. Throws where it cannot be opened. */
export function openFileTier(
  path: string,
  { max_file_bytes }: { max_file_bytes: number },
  log: Pick<PluginLog, 'warn'>,
): FileTier {
  mkdirSync(dirname(path), { recursive: true })
  const database = new Database(path, { timeout: 1_000 })
  chmodSync(path, 0o600)
  // A reply that is lost with the power is asked for again.
  for (const setting of ['journal_mode = WAL', 'synchronous = OFF']) database.pragma(setting)
  database.exec(table)
  // From here on calls wait for it.
  database.pragma('busy_timeout = 20')
  const find = database.prepare<[string, number], FiledReply>(
    'SELECT text, at, ends FROM replies WHERE key = ? AND ends > ?',
  )
  const insert = database.prepare('INSERT OR REPLACE INTO replies (key, text, at, ends) VALUES (?, ?, ?, ?)')
  const dropEnded = database.prepare('DELETE FROM replies WHERE ends <= ?')
  const dropFirst = database.prepare('DELETE FROM replies WHERE key IN (SELECT key FROM replies ORDER BY ends LIMIT ?)')
  let puts = 0
  return {
    get: (key) => tried(() => find.get(key, Date.now())),
    put: (key, { text, at, ends }) =>
      tried(() => {
        if (puts++ % putsBetween === 0) makeRoom()
        insert.run(key, text, at, ends)
      }),
    close: () => void database.close(),
  }

  function makeRoom(): void {
    dropEnded.run(Date.now())
    const pragma = (name: string) => Number(database.pragma(name, { simple: true }))
    const bytes = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
    if (bytes > max_file_bytes) dropFirst.run(droppedAtOnce)
  }

  function tried<Result>(run: () => Result): Result | undefined {
    try {
      return run()
    } catch (err) {
      log.warn({ err }, 'the cache file cannot be used')
      return undefined
    }
  }
}

const putsBetween = 50
/** Number of entries that are dropped at once: more than are added in between. */
const droppedAtOnce = 500
