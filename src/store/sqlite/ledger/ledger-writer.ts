import type { CallRecord } from '../../../core/call.ts'
import type { SqlValue } from '../../database.ts'
import { filledColumns, otherColumns } from '../../ledger/ledger-row.ts'
import { usageSums } from '../../ledger/sums.ts'
import type { Refused } from '../../ledger/writer.ts'
import { messageWriter } from '../../provider-messages.ts'
import type { SentResponse } from '../../responses.ts'
import { isRowFault } from '../../store-error.ts'
import type { Connection } from '../connection.ts'
import { responseWriter } from './response-writer.ts'

/** Writes records and the stored responses of some of them. */
export type WriteBatch = (records: readonly CallRecord[], responses?: readonly SentResponse[]) => Refused[]

/**
 * A function that writes records, their sums and stored responses in one transaction; a record whose id exists already is
 * skipped. Returns the records that can never be written. Throws when nothing was written.
 */
export function ledgerWriter(db: Connection): WriteBatch {
  const isNew = withProviderMessage(rowWriter(db), messageWriter(db))
  const newSums = usageSums(db)
  const storeResponse = responseWriter(db)
  const writeAll = db.transaction((records: readonly CallRecord[], responses: readonly SentResponse[]) => {
    const sums = newSums()
    for (const record of records) if (isNew(record)) sums.add(record)
    sums.write()
    for (const response of responses) storeResponse(response)
  })
  const writeEach = db.transaction((records: readonly CallRecord[], responses: readonly SentResponse[]) => {
    for (const response of responses) storeIfPossible(response)
    return records.flatMap(writeOrRefuse)
  })
  const savepoint = db.transaction((record: CallRecord) => {
    const sums = newSums()
    if (isNew(record)) sums.add(record)
    sums.write()
  })
  const storeOne = db.transaction(storeResponse)
  const storeIfPossible = (response: SentResponse) => {
    try {
      storeOne(response)
    } catch (thrown) {
      // A response that can never be written must not prevent the row of its call.
      if (!isRowFault(thrown)) throw thrown
    }
  }
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
      // One bad record must not prevent the others.
      return writeEach.immediate(records, responses)
    }
  }
}

/** Writes the provider's message of a record besides its row, where it has one. */
function withProviderMessage(writeRow: (record: CallRecord) => boolean, writeMessage: (record: CallRecord) => void) {
  return (record: CallRecord): boolean => {
    const isNew = writeRow(record)
    if (isNew && record.providerMessage !== undefined) writeMessage(record)
    return isNew
  }
}

/**
 * A function that inserts the row of a record and returns whether it is new. Most calls leave a third of the columns empty,
 * and binding a value takes time: each set of columns that occurs has its own statement.
 */
function rowWriter(db: Connection): (record: CallRecord) => boolean {
  if (otherColumns.length > maxColumns)
    throw new RangeError(`a set of more than ${maxColumns} columns does not fit in a number`)
  const prepare = (columns: typeof otherColumns) => {
    const names = [...filledColumns, ...columns].map(([name]) => name)
    return db.prepare(`INSERT INTO ledger (${names}) VALUES (${names.map(() => '?')}) ON CONFLICT (id) DO NOTHING`)
  }
  const statements = new Map<number, ReturnType<typeof prepare>>()
  return (record) => {
    const filled: SqlValue[] = filledColumns.map(([, of]) => of(record))
    let shape = 0
    for (const [column, [, of]] of otherColumns.entries()) {
      const value = of(record)
      if (value === null) continue
      filled.push(value)
      shape += 2 ** column
    }
    let insert = statements.get(shape)
    if (!insert) {
      insert = prepare(otherColumns.filter(([, of]) => of(record) !== null))
      if (statements.size === maxShapes) statements.clear()
      statements.set(shape, insert)
    }
    return insert.run(filled).changes === 1
  }
}

/** A set of columns is a number with a bit for each: a number holds this many bits exactly. */
const maxColumns = 53
/** Statements are some kilobytes each. */
const maxShapes = 200
