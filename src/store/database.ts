/** The SQL that a driver understands. Nearly all statements are the same text for both; the others are written as one text for each. */
export type Dialect = 'sqlite' | 'postgres'

/**
 * A value for a placeholder. A number that is an integer is bound as an integer, any other number as a floating-point number. Flags
 * are 0 and 1, times are Unix milliseconds, JSON is text.
 */
export type SqlValue = string | number | bigint | null | Uint8Array

/** Values by the names of their placeholders, without the `@`. Those for which a statement has no placeholder are ignored. */
export type Parameters = { readonly [name: string]: SqlValue }

/**
 * A driver: statements on a database, or within one of its transactions. Placeholders are `@name`, each as often as needed and never in a
 * literal or a comment of the SQL. In rows, every integer is a bigint, every other number a number, and a blob a Buffer.
 *
 * All functions reject with StoreError or the engine's errors, which `store-error.ts` classifies; none of them throws.
 */
export interface Database {
  readonly dialect: Dialect
  /** Returns all rows of a query, or of a change with RETURNING. */
  all<Row>(sql: string, parameters?: Parameters): Promise<Row[]>
  /** Returns the first row. */
  get<Row>(sql: string, parameters?: Parameters): Promise<Row | undefined>
  /** Makes a change. Returns how many rows were inserted, updated or deleted, without those of triggers. */
  run(sql: string, parameters?: Parameters): Promise<number>
  /**
   * Runs a change that sees and leaves the database as if it were alone: all of it is committed, or none when it rejects. In a
   * transaction, it is a part that is undone alone.
   *
   * The change waits for nothing but the functions of `tx`, and uses `tx` no longer once it has settled. It has no effects outside of the
   * database, since a driver runs it again when the engine reports that it collided with another one.
   */
  transaction<Result>(change: (tx: Database) => Promise<Result>): Promise<Result>
}
