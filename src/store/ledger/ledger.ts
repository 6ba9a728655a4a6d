import type { CallRecord } from '../../core/call.ts'
import { dayMs, hourMs } from '../../core/time.ts'
import type { Connection } from '../sqlite/connection.ts'
import { inMemory } from '../sqlite/database-files.ts'
import { type LedgerWriter, ledgerInThisThread, ledgerThread } from '../sqlite/ledger/ledger-thread.ts'
import { ledgerWriter } from '../sqlite/ledger/ledger-writer.ts'
import { clearSpilled, spilledRecords } from '../sqlite/ledger/spill-file.ts'
import { callRecord, type LedgerRow } from './ledger-row.ts'

/** The rows of settled calls. */
export type LedgerTable = ReturnType<typeof ledger>

/** Rows of a range of Unix milliseconds (`to` is exclusive), optionally of one organization or key. */
export type LedgerRange = { from?: number; to?: number; organization?: string; key?: string }

/** The cost of all calls of a day (UTC) to one model of a provider; `day` is its beginning, in Unix milliseconds. */
export type DayCost = { day: number; provider: string; model: string; requests: number; nano: bigint }

/** Queries of the settled calls. */
export function ledger(db: Connection) {
  const byId = db.prepare<[string], LedgerRow>('SELECT * FROM ledger WHERE id = ?').safeIntegers()
  const byDay = db
    .prepare<[bigint, bigint], { day: bigint; provider: string; model: string; requests: bigint; nano: bigint }>(`
      SELECT hour / 24 AS day, provider, model, sum(requests) AS requests, sum(nano) AS nano FROM organization_usage
      WHERE hour >= ? AND hour < ? AND provider <> '' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`)
    .safeIntegers()
  return {
    find(id: string): CallRecord | undefined {
      const row = byId.get(id)
      return row && callRecord(row)
    },
    /** The calls of a range, ordered within each organization and read page by page. */
    each: (range: LedgerRange): Iterable<CallRecord> => eachOf(db, range),
    /** The spend of all organizations by day and model; `from` and `to` are beginnings of days. */
    byDay: (from: number, to: number): DayCost[] =>
      byDay
        .all(BigInt(Math.floor(from / hourMs)), BigInt(Math.ceil(to / hourMs)))
        .map((row) => ({ ...row, day: Number(row.day) * dayMs, requests: Number(row.requests) })),
    /**
     * Writes the records that an earlier process spilled. Returns how many; calls `onLost` for each that can never be
     * written. Throws the engine's errors.
     */
    recover(onLost: (record: CallRecord, reason: string) => void = () => {}): number {
      const spilled = db.name === inMemory ? [] : spilledRecords(db.name)
      if (spilled.length === 0) return 0
      const refused = ledgerWriter(db)(spilled)
      for (const { index, reason } of refused) onLost(spilled[index] as CallRecord, reason)
      clearSpilled(db.name)
      return spilled.length - refused.length
    },
    /** A writer of rows; the caller closes it. */
    openWriter: (): LedgerWriter => (db.name === inMemory ? ledgerInThisThread(db) : ledgerThread(db.name)),
  }
}

/** Rows per page: between short reads a running router can checkpoint the database. */
const rowsAtOnce = 1_000

function* eachOf(db: Connection, range: LedgerRange): Generator<CallRecord> {
  const { from = 0, to = Number.MAX_SAFE_INTEGER, organization, key } = range
  if (organization === undefined) {
    for (const each of organizationsOf(db)) yield* eachOf(db, { ...range, organization: each })
    return
  }
  const page = db
    .prepare<[Record<string, unknown>], LedgerRow>(`
      SELECT rowid AS place, * FROM ledger
      WHERE organization = @organization AND (at, key, rowid) > (@at, @lastKey, @place) AND at < @to ${key === undefined ? '' : 'AND key = @key'}
      ORDER BY at, key, rowid LIMIT ${rowsAtOnce}`)
    .safeIntegers()
  let last: { [name: string]: unknown } = { at: from, lastKey: '', place: -1 }
  for (;;) {
    const rows = page.all({ organization, ...last, to, ...(key !== undefined && { key }) })
    yield* rows.map(callRecord)
    const end = rows.at(-1)
    if (!end || rows.length < rowsAtOnce) return
    last = { at: end.at, lastKey: end.key, place: end.place }
  }
}

/** All organizations with calls, found by skipping from one to the next in the index. */
function organizationsOf(db: Connection): string[] {
  const next = db
    .prepare<[string], string>('SELECT organization FROM ledger WHERE organization > ? ORDER BY organization LIMIT 1')
    .pluck()
  const found: string[] = []
  for (let one = next.get(''); one !== undefined; one = next.get(one)) found.push(one)
  return found
}
