import Database from 'better-sqlite3'

/** Something is wrong with the database, said so that an operator can act on it. `cause` is the engine's own error. */
export class StoreError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StoreError'
  }
}

/** Any thrown value as a StoreError that names the database file and what to do. */
export function storeError(thrown: unknown, path: string): StoreError {
  if (thrown instanceof StoreError) return thrown
  const code = codeOf(thrown)
  const known = remedies.find(([prefix]) => code.startsWith(prefix))
  const said = thrown instanceof Error ? thrown.message : String(thrown)
  return new StoreError(`${path}: ${known ? known[1] : 'the database cannot be used'} (${said})`, thrown)
}

/** Whether the database engine threw this, rather than a mistake in the program. */
export function isEngineError(thrown: unknown): boolean {
  return codeOf(thrown) !== ''
}

/** Whether a row itself can never be written, as opposed to a database that may recover. */
export function isRowFault(thrown: unknown): boolean {
  if (thrown instanceof TypeError || thrown instanceof RangeError) return true
  return ['SQLITE_CONSTRAINT', 'SQLITE_MISMATCH', 'SQLITE_TOOBIG'].some((prefix) => codeOf(thrown).startsWith(prefix))
}

/** Whether a value that must be unique was there before. */
export function isDuplicate(thrown: unknown): boolean {
  return codeOf(thrown) === 'SQLITE_CONSTRAINT_UNIQUE'
}

const remedies: readonly [prefix: string, text: string][] = [
  ['SQLITE_NOTADB', 'this file is not an SQLite database; name another file in store.url'],
  ['SQLITE_CORRUPT', 'the database file is damaged; restore it from a backup'],
  ['SQLITE_CANTOPEN', 'the database file cannot be opened; check that its folder exists and may be written'],
  ['SQLITE_READONLY', 'the database file or its folder is read-only; make it writable for the user of the router'],
  ['SQLITE_BUSY', 'the database is locked by another process; end that process'],
  ['SQLITE_FULL', 'the disk is full; free some space'],
  ['SQLITE_IOERR', 'the disk failed while the database was used; check the disk and its free space'],
]

function codeOf(thrown: unknown): string {
  return thrown instanceof Database.SqliteError ? thrown.code : ''
}
