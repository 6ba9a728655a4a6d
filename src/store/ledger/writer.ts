import type { CallRecord } from '../../core/call.ts'
import type { SentResponse } from '../responses.ts'

/** A record that can never be written: its index in the batch, and the reason. */
export type Refused = { index: number; reason: string }

/** Writes records to the ledger, one batch at a time. */
export type LedgerWriter = {
  /**
   * Writes the records and those of `texts`, which are JSON arrays of further ones. Resolves when the batch and its stored
   * responses are on disk, with those that can never be written; their index counts on through the texts. Rejects with
   * StoreError when nothing was written.
   */
  write(
    records: readonly CallRecord[],
    responses?: readonly SentResponse[],
    texts?: readonly string[],
  ): Promise<Refused[]>
  /** Resolves when a batch can be written without delay: when the thread has started, or has failed to. */
  ready(): Promise<void>
  /** Holds rows while they cannot be written to the database. */
  spill?: SpillFile
  close(): Promise<void>
}

/** A file that holds rows while the database cannot be written, so that they survive a crash. */
export type SpillFile = {
  /** Resolves when the records are on disk. Rejects when they cannot be written. */
  append(records: readonly CallRecord[]): Promise<void>
  /** Empties the file once its records are in the database. */
  clear(): Promise<void>
  close(): Promise<void>
}
