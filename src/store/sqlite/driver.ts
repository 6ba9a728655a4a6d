import type { Statement } from 'better-sqlite3'
import type { Database, Parameters, SqlValue } from '../database.ts'
import type { Connection } from './connection.ts'
import { fileAt, requireSameFile } from './database-files.ts'

/** SQLite as a driver of the store, on one connection. */
export interface SqliteDatabase extends Database {
  readonly connection: Connection
  /** Runs synchronous work on the connection while no transaction is open in it. */
  alone<Result>(work: () => Result): Promise<Result>
}

/**
 * Opens the driver on a connection, which runs all statements of this event loop.
 *
 * A statement runs in the step in which it is called, so between two statements of a transaction there are only microtasks: no callback of
 * the event loop. Microtasks of other callers may run there, and their statements wait until the transaction has ended: none gets inside. A
 * transaction that waits for anything but its own statements would make all others wait, or wait for one of them itself: it is still open
 * when the event loop goes on, which rolls it back.
 */
export function sqliteDatabase(connection: Connection): SqliteDatabase {
  const file = fileAt(connection.name)
  const begin = () => {
    requireSameFile(connection.name, file)
    connection.exec('BEGIN IMMEDIATE')
  }
  const words = { begin, commit: 'COMMIT', rollback: 'ROLLBACK', inTime: withinTurn }
  return new Level(new Statements(connection), words)
}

/** Beginning and ends of a part of the work that is done as a whole or not at all. */
type Words = {
  begin(): void
  commit: string
  rollback: string
  /** Bounds the time of the work. */
  inTime<Result>(work: Promise<Result>): Promise<Result>
}

/** A connection, a transaction in it, or a savepoint in that. While one is open within another, statements of the outer one wait. */
class Level implements SqliteDatabase {
  readonly dialect = 'sqlite'
  readonly #statements: Statements
  readonly #words: Words
  /** The level around it; undefined for the connection. */
  readonly #outer: Level | undefined
  #inner: Promise<void> | undefined
  #hasEnded = false

  constructor(statements: Statements, words: Words, outer?: Level) {
    this.#statements = statements
    this.#words = words
    this.#outer = outer
  }

  get connection(): Connection {
    return this.#statements.connection
  }

  async all<Row>(sql: string, parameters?: Parameters): Promise<Row[]> {
    while (this.#inner) await this.#inner
    this.#requireOpen()
    return this.#statements.of(sql).all(bound(parameters)) as Row[]
  }

  async get<Row>(sql: string, parameters?: Parameters): Promise<Row | undefined> {
    while (this.#inner) await this.#inner
    this.#requireOpen()
    return this.#statements.of(sql).get(bound(parameters)) as Row | undefined
  }

  async run(sql: string, parameters?: Parameters): Promise<number> {
    while (this.#inner) await this.#inner
    this.#requireOpen()
    return this.#statements.of(sql).run(bound(parameters)).changes
  }

  async alone<Result>(work: () => Result): Promise<Result> {
    while (this.#inner) await this.#inner
    return work()
  }

  async transaction<Result>(change: (tx: Database) => Promise<Result>): Promise<Result> {
    while (this.#inner) await this.#inner
    this.#requireOpen()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#inner = promise
    try {
      return await this.#changed(change)
    } finally {
      this.#inner = undefined
      resolve()
    }
  }

  async #changed<Result>(change: (tx: Database) => Promise<Result>): Promise<Result> {
    const { connection } = this
    const { begin, commit, rollback, inTime } = this.#words
    begin()
    const tx = new Level(this.#statements, savepoint(connection), this)
    try {
      const result = await inTime(change(tx))
      if (tx.#inner) throw new Error('a transaction ended before a part of it')
      // SQLite itself rolls back after some failures, which the change may have caught.
      tx.#requireOpen()
      connection.exec(commit)
      return result
    } catch (thrown) {
      if (tx.#isOpen) connection.exec(rollback)
      throw thrown
    } finally {
      tx.#hasEnded = true
    }
  }

  #requireOpen(): void {
    if (!this.#isOpen) throw new Error('this transaction has ended')
  }

  /** False once it has ended, or what is around it: the connection may be in a transaction of somebody else by then. */
  get #isOpen(): boolean {
    if (!this.#outer) return true
    return !this.#hasEnded && this.connection.inTransaction && this.#outer.#isOpen
  }
}

/** A savepoint has the same name in all of them: SQLite finds the innermost one. */
function savepoint(connection: Connection): Words {
  return {
    begin: () => connection.exec('SAVEPOINT part'),
    commit: 'RELEASE part',
    rollback: 'ROLLBACK TO part; RELEASE part',
    inTime: (work) => work,
  }
}

/** Rejects when the event loop goes on before the work has ended. */
function withinTurn<Result>(work: Promise<Result>): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const late = setImmediate(() => reject(new Error('a transaction waited for something other than its own statements')))
  work.then(resolve, reject).finally(() => clearImmediate(late))
  return promise
}

/** Prepared statements by their text. */
class Statements {
  readonly connection: Connection
  readonly #known = new Map<string, Statement>()

  constructor(connection: Connection) {
    this.connection = connection
  }

  of(sql: string): Statement {
    let statement = this.#known.get(sql)
    if (!statement) {
      statement = this.connection.prepare(sql).safeIntegers()
      if (this.#known.size === maxStatements) this.#known.clear()
      this.#known.set(sql, statement)
    }
    return statement
  }
}

/** Far more than there are: only queries whose text depends on their filters could be more. */
const maxStatements = 500

/** SQLite takes a bound number for a floating-point number. */
function bound(parameters: Parameters = {}): { [name: string]: SqlValue } {
  const values: { [name: string]: SqlValue } = {}
  for (const [name, value] of Object.entries(parameters))
    values[name] = typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value
  return values
}
