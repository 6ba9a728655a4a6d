import Database from 'better-sqlite3'
import { RouterError } from '../core/errors.ts'

/**
 * A database error, with a message that an operator can act on. `cause` is the engine's own error. `reason` is set when
 * the database itself fails, rather than the operation being wrong: a short phrase without the path.
 */
export class StoreError extends Error {
  readonly reason: string | undefined

  constructor(message: string, cause?: unknown, reason?: string) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StoreError'
    this.reason = reason
  }
}

/** Converts any thrown value to a StoreError that names the database file and the remedy. */
export function storeError(thrown: unknown, path: string): StoreError {
  if (thrown instanceof StoreError) return thrown
  const fault = faultOf(thrown)
  const detail = thrown instanceof Error ? thrown.message : String(thrown)
  const what = fault ? `${fault.reason}; ${fault.remedy}` : 'the database cannot be used'
  return new StoreError(`${path}: ${what} (${detail})`, thrown, fault?.reason)
}

/**
 * A failure of the database itself as an error for clients: `unavailable`, without the path. Undefined for everything
 * else, such as a violated constraint or a bug.
 */
export function unavailable(thrown: unknown): RouterError | undefined {
  const reason = thrown instanceof StoreError ? thrown.reason : faultOf(thrown)?.reason
  if (reason === undefined) return undefined
  const message = `The router cannot use its database now: ${reason}. Try again later.`
  return new RouterError('unavailable', message, { cause: thrown, retryAfterMs: 1_000 })
}

/** The StoreError for damage that the engine cannot see; `detail` is what is wrong. */
export function damageError(path: string, detail: string): StoreError {
  const { reason, remedy } = damageFault
  return new StoreError(`${path}: ${reason}; ${remedy} (${detail})`, undefined, reason)
}

/** Checks whether this error, or its cause, reports that the file of the database is damaged. */
export function isDamage(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false
  const reason = thrown instanceof StoreError ? thrown.reason : faultOf(thrown)?.reason
  return damageReasons.includes(reason ?? '') || isDamage(thrown.cause)
}

/** Checks whether the database engine threw this. */
export function isEngineError(thrown: unknown): boolean {
  return codeOf(thrown) !== ''
}

/** Checks whether a row itself can never be written, as opposed to a database that may recover. */
export function isRowFault(thrown: unknown): boolean {
  if (thrown instanceof TypeError || thrown instanceof RangeError) return true
  return ['SQLITE_CONSTRAINT', 'SQLITE_MISMATCH', 'SQLITE_TOOBIG'].some((prefix) => codeOf(thrown).startsWith(prefix))
}

/** Checks whether a unique constraint was violated: by the code of SQLite, or that of the SQL standard, which PostgreSQL has. */
function isDuplicate(thrown: unknown): boolean {
  return codeOf(thrown) === 'SQLITE_CONSTRAINT_UNIQUE' || (thrown as { code?: unknown }).code === '23505'
}

/** A failure of the database itself: its reason for clients, and the remedy for operators. */
type Fault = { prefix: string; reason: string; remedy: string }

const damageFault: Fault = {
  prefix: 'SQLITE_CORRUPT',
  reason: 'the database file is damaged',
  remedy: 'restore it from a backup',
}

const faults: readonly Fault[] = [
  damageFault,
  {
    prefix: 'SQLITE_NOTADB',
    reason: 'this file is not an SQLite database',
    remedy: 'name another file in store.url',
  },
  {
    prefix: 'SQLITE_CANTOPEN',
    reason: 'the database file cannot be opened',
    remedy: 'check that its folder exists and may be written',
  },
  {
    prefix: 'SQLITE_READONLY',
    reason: 'the database file or its folder is read-only',
    remedy: 'make it writable for the user of the router',
  },
  { prefix: 'SQLITE_BUSY', reason: 'the database is locked by another process', remedy: 'end that process' },
  { prefix: 'SQLITE_PROTOCOL', reason: 'the database is locked by another process', remedy: 'end that process' },
  { prefix: 'SQLITE_FULL', reason: 'the disk is full', remedy: 'free some space' },
  {
    prefix: 'SQLITE_IOERR',
    reason: 'the disk failed while the database was used',
    remedy: 'check the disk and its free space',
  },
]

const damageReasons: readonly string[] = faults
  .filter((fault) => fault === damageFault || fault.prefix === 'SQLITE_NOTADB')
  .map(({ reason }) => reason)

function faultOf(thrown: unknown): Fault | undefined {
  const code = codeOf(thrown)
  return faults.find(({ prefix }) => code.startsWith(prefix))
}

function codeOf(thrown: unknown): string {
  if (thrown instanceof Database.SqliteError) return thrown.code
  // The one failure that the driver finds before it asks the engine.
  return thrown instanceof TypeError && thrown.message.includes('directory does not exist') ? 'SQLITE_CANTOPEN' : ''
}

/** The name is in use already. */
export class NameTaken extends StoreError {
  constructor(message: string, cause: unknown) {
    super(message, cause)
    this.name = 'NameTaken'
  }
}

/** Waits for an insert. Rejects with NameTaken, with this message, when it violates a unique constraint. */
export async function unlessTaken(message: string, inserting: Promise<unknown>): Promise<void> {
  try {
    await inserting
  } catch (thrown) {
    throw isDuplicate(thrown) ? new NameTaken(message, thrown) : thrown
  }
}

/** The value of a column with JSON. Only JSON was ever written there: throws StoreError for damage when it is anything else. */
export function storedJson<T>(text: string): T {
  try {
    return JSON.parse(text)
  } catch {
    throw damageError('a row of the database', 'a column that must be JSON is not')
  }
}
