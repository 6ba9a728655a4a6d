import type { CallRecord } from '../core/call.ts'
import type { Connection } from './connection.ts'
import { isRowFault } from './failure.ts'
import { costNano, ledgerColumns } from './ledger-row.ts'
import { responseWriter, type StoredResponse } from './responses.ts'
import { monthOf } from './spend.ts'

/** A record that can never be written: its place in the batch, and why. */
export type Refused = { index: number; reason: string }

/** Writes records, and the responses that are kept of some of them. */
export type WriteBatch = (records: readonly CallRecord[], responses?: readonly StoredResponse[]) => Refused[]

/**
 * A function that writes records, adds up their spend and keeps responses in one transaction; a record whose id is
 * there already is left out. Returns the records that can never be written. Throws when nothing was written.
 */
export function ledgerWriter(db: Connection): WriteBatch {
  const writeOne = oneRecordWriter(db)
  const keep = responseWriter(db)
  const writeAll = db.transaction((records: readonly CallRecord[], responses: readonly StoredResponse[]) => {
    for (const record of records) writeOne(record)
    for (const response of responses) keep(response)
  })
  const writeEach = db.transaction((records: readonly CallRecord[], responses: readonly StoredResponse[]) => {
    for (const response of responses) keep(response)
    return records.flatMap(writeOrRefuse)
  })
  const savepoint = db.transaction(writeOne)
  const writeOrRefuse = (record: CallRecord, index: number): Refused[] => {
    try {
      savepoint(record)
      return []
    } catch (thrown) {
      if (!isRowFault(thrown)) throw thrown
      return [{ index, reason: thrown instanceof Error ? thrown.message : String(thrown) }]
    }
  }
  return (records, responses = []) => {
    try {
      writeAll.immediate(records, responses)
      return []
    } catch (thrown) {
      if (!isRowFault(thrown)) throw thrown
      // One bad record must not keep the others from being written.
      return writeEach.immediate(records, responses)
    }
  }
}

function oneRecordWriter(db: Connection): (record: CallRecord) => void {
  const names = ledgerColumns.map(([name]) => name)
  const marks = names.map(() => '?')
  const insert = db.prepare(`INSERT INTO ledger (${names}) VALUES (${marks}) ON CONFLICT (id) DO NOTHING`)
  const addToKey = db.prepare(`
    INSERT INTO key_spend (key, month, nano) VALUES (?, ?, ?)
    ON CONFLICT (key, month) DO UPDATE SET nano = nano + excluded.nano`)
  const addToOrganization = db.prepare(`
    INSERT INTO organization_spend (organization, month, nano) VALUES (?, ?, ?)
    ON CONFLICT (organization, month) DO UPDATE SET nano = nano + excluded.nano`)
  return (record) => {
    const isNew = insert.run(ledgerColumns.map(([, of]) => of(record))).changes === 1
    const nano = costNano(record)
    if (!isNew || nano === 0n) return
    const month = monthOf(record.at)
    addToKey.run(record.key, month, nano)
    addToOrganization.run(record.organization, month, nano)
  }
}
