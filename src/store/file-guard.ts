import { statSync } from 'node:fs'
import { inMemory } from './connection.ts'
import { StoreError } from './store-error.ts'

/** The identity of the file at a path, independent of its name; undefined when there is none. */
export function fileAt(path: string): string | undefined {
  if (path === inMemory) return inMemory
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.dev}:${stat.ino}`
}

/**
 * Throws StoreError when the file of a database is no longer at its path. SQLite would go on and write to a file
 * that has no name, and a new connection would mix the log of the old file into the new one.
 */
export function requireSameFile(path: string, file: string | undefined): void {
  const now = fileAt(path)
  if (now === file) return
  const [reason, remedy] = now === undefined ? [gone, putBack] : [replaced, restart]
  throw new StoreError(`${path}: ${reason}; ${remedy}`, undefined, reason)
}

const gone = 'the database file was deleted or moved away'
const putBack = 'put the same file back, or restart the router, which then begins with an empty one'
const replaced = 'the database file was replaced while the router was running'
const restart =
  'stop the router, remove the files that end in -wal and -shm unless they belong to the new file, and start it again'
