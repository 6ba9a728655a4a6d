import type { CallRecord } from '../../core/call.ts'
import { dayMs } from '../../core/time.ts'
import { callRecord, type LedgerRow } from '../ledger/ledger-row.ts'
import type { Connection } from '../sqlite/connection.ts'
import { filterParameters, filterSql } from './call-filters.ts'
import { type CallsPage, type CallsQuery, listing, pageOf } from './calls-query.ts'

/** A page of the calls of all organizations. */
export type AllCallsQuery = Omit<CallsQuery, 'organization'>

type Place = { row: bigint; at: bigint }

/** Rows that are examined in one step. */
const rowsAtOnce = 1_000
/** Maximum duration of a page, however few calls it has. Milliseconds. */
const maxMs = 70

/**
 * A function that reads pages of the calls of all organizations in the order in which they ended, the last one first: that of the rows, which
 * needs no index. Throws the engine's errors.
 */
export function allCallsReader(db: Connection, patienceMs = maxMs): (query: AllCallsQuery) => [CallsPage] {
  const listed = listing(db)
  const placeOf = db.prepare<[string], Place>('SELECT rowid AS row, at FROM ledger WHERE id = ?').safeIntegers()
  const further = db
    .prepare<[bigint, bigint], Place>(
      'SELECT rowid AS row, at FROM ledger WHERE rowid < ? ORDER BY rowid DESC LIMIT 1 OFFSET ?',
    )
    .safeIntegers()
  const idAt = db.prepare<[bigint], string>('SELECT id FROM ledger WHERE rowid = ?').pluck()
  return ({ limit, after, from, to, filters }) => {
    const deadline = performance.now() + patienceMs
    const rows = db
      .prepare<[Record<string, unknown>], LedgerRow>(`
        SELECT * FROM ledger WHERE rowid < @place AND rowid >= @end AND at >= @from AND at < @to ${filterSql(filters)}
          AND attempt_of IS NULL
        ORDER BY rowid DESC LIMIT @limit`)
      .safeIntegers()
    const found: CallRecord[] = []
    let place = (after === undefined ? undefined : placeOf.get(after)?.row) ?? afterAll
    for (;;) {
      const end = further.get(place, BigInt(rowsAtOnce - 1))
      const bound = { ...filterParameters(filters), place, end: end?.row ?? 0n, from: BigInt(from), to: BigInt(to) }
      found.push(...rows.all({ ...bound, limit: BigInt(limit + 1 - found.length) }).map(callRecord))
      if (found.length > limit) return [pageOf(found.slice(0, limit), listed, found[limit - 1]?.id)]
      // No call takes a day: those that ended before this one began earlier.
      if (!end || end.at < BigInt(from - dayMs)) return [pageOf(found, listed)]
      if (performance.now() > deadline) return [pageOf(found, listed, idAt.get(end.row))]
      place = end.row
    }
  }
}

/** The place after all rows. */
const afterAll = 2n ** 63n - 1n
