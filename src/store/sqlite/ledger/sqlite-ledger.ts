import type { CallRecord } from '../../../core/call.ts'
import { type LedgerTable, ledgerRows } from '../../ledger/ledger.ts'
import { inMemory } from '../database-files.ts'
import type { SqliteDatabase } from '../driver.ts'
import { ledgerInThisThread, ledgerThread } from './ledger-thread.ts'
import { ledgerWriter } from './ledger-writer.ts'
import { clearSpilled, spilledRecords } from './spill-file.ts'

/** Opens the ledger of a database at a path. */
export function sqliteLedger(db: SqliteDatabase, path: string): LedgerTable {
  return {
    ...ledgerRows(db),
    async recover(onLost = () => {}) {
      const spilled = path === inMemory ? [] : spilledRecords(path)
      if (spilled.length === 0) return 0
      const refused = await db.alone(() => ledgerWriter(db.connection)(spilled))
      for (const { index, reason } of refused) onLost(spilled[index] as CallRecord, reason)
      clearSpilled(path)
      return spilled.length - refused.length
    },
    openWriter: () => (path === inMemory ? ledgerInThisThread(db, path) : ledgerThread(path)),
  }
}
