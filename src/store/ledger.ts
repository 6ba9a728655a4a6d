import type { CallRecord } from '../core/call.ts'
import { type Connection, inMemory } from './connection.ts'
import { callRecord, type LedgerRow } from './ledger-row.ts'
import { type LedgerWriter, ledgerInThisThread, ledgerThread } from './ledger-thread.ts'

/** The rows of settled calls. */
export type LedgerTable = ReturnType<typeof ledger>

/** The functions on the table of settled calls. */
export function ledger(db: Connection) {
  const byId = db.prepare<[string], LedgerRow>('SELECT * FROM ledger WHERE id = ?').safeIntegers()
  const ofKey = db
    .prepare<[string, number, number], LedgerRow>(
      'SELECT * FROM ledger WHERE key = ? AND at >= ? AND at < ? ORDER BY at, rowid',
    )
    .safeIntegers()
  return {
    find(id: string): CallRecord | undefined {
      const row = byId.get(id)
      return row && callRecord(row)
    },
    /** The calls of a key from one moment up to another (Unix milliseconds, the second not included), in order. */
    ofKey: (key: string, from = 0, to = Number.MAX_SAFE_INTEGER): CallRecord[] =>
      ofKey.all(key, from, to).map(callRecord),
    /** A writer of rows; the caller closes it. */
    openWriter: (): LedgerWriter => (db.name === inMemory ? ledgerInThisThread(db) : ledgerThread(db.name)),
  }
}
