import type { Figure } from './ledger/sums.ts'

/** Damage in the words of SQLite; empty for a sound database. */
export type Damage = string[]

/** Checks whether the file of a database is damaged. */
export type Integrity = {
  /** All of it: every page, every row of every table and index, every reference. Reads the whole file, in this thread. */
  checkAll(): Promise<Damage>
  /** The tables that decide about calls: of a small database at once, else in a thread of its own. Rejects with StoreError when that cannot be found out. */
  checkDeciding(): Promise<Damage>
  /** Resolves when no thread is left. One that has only just started is not ended from outside: loading SQLite must not be interrupted. */
  close(): Promise<void>
}

/**
 * A stored sum that differs from the ledger's rows: its owner, its month or hour (as `2026-11` or RFC 3339), the figure
 * that it counts, and both figures; money in nano-USD.
 */
export type WrongSum = {
  table: string
  owner: string
  period: string
  figure: Figure
  stored: bigint
  rows: bigint
}

/** The result of a verification: how many sums were checked, how many are wrong, and the first of the wrong ones. */
export type CheckedSums = { checked: number; wrong: number; listed: WrongSum[] }
