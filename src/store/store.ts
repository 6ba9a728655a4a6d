import type { Changes } from './changes.ts'
import type { CheckedSums, Integrity } from './checks.ts'
import type { LedgerTable } from './ledger/ledger.ts'
import type { Spend } from './ledger/sums.ts'
import type { Calls, Usage } from './queries/reports.ts'
import type { Tables } from './tables.ts'

/** Reads that do not wait: those of SQLite alone. */
export type ImmediateReads = {
  spend: Spend
}

/** An open database: its tables, and what concerns all of it. All functions reject with StoreError or the engine's errors. */
export interface Store extends Tables {
  /** The path of the database, or its name in messages. */
  path: string
  immediate: ImmediateReads
  usage: Usage
  calls: Calls
  integrity: Integrity
  ledger: LedgerTable
  /** Compares every sum with the rows of the ledger, in one snapshot: a router may go on writing. */
  verifySums(maxListed: number): Promise<CheckedSums>
  /** Announces what another connection of this process has changed. */
  announce: { key: Changes['keys']['notify']; organization: Changes['organizations']['notify'] }
  /** Writes to the disk. Rejects with StoreError when that is not possible. */
  proveWritable(): Promise<void>
  /** Sets how long the functions wait for another process that writes, where that blocks the event loop. Milliseconds. */
  waitAtMost(ms: number): void
  /** Lets another router have the database, which stays open here as for a command. */
  unlock(): Promise<void>
  /** Locks it again for the router of this process. Rejects with StoreError when another one has it. */
  relock(): Promise<void>
  close(): Promise<void>
}
