import { chmodSync, closeSync, constants, openSync, statSync } from 'node:fs'
import { StoreError } from '../store-error.ts'

/** Creates a file that nobody but its owner may read. One that exists is left as it is: `keepPrivate` is for those. */
export function createPrivate(path: string): void {
  const { O_CREAT, O_EXCL, O_WRONLY } = constants
  unlessRefused(() => closeSync(openSync(path, O_CREAT | O_EXCL | O_WRONLY, ownerOnly)))
}

/** Takes the permissions of everybody but the owner from a file, if it exists. */
export function keepPrivate(path: string): void {
  unlessRefused(() => {
    const file = statSync(path)
    if (file.isFile() && (file.mode & others) !== 0) chmodSync(path, file.mode & 0o7700)
  })
}

/** Read and write for the owner, nothing for others. */
export const ownerOnly = 0o600
const others = 0o077

/**
 * The system may refuse, for instance because the file exists or belongs to another user, or because the disk knows no
 * permissions. What matters of it is reported when the file is opened.
 */
function unlessRefused(change: () => void): void {
  try {
    change()
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === undefined) throw thrown
  }
}

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

/** The path of a database that lives in memory and ends with its connection. */
export const inMemory = ':memory:'
