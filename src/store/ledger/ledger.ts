import type { CallRecord } from '../../core/call.ts'
import { dayMs, hourMs } from '../../core/time.ts'
import type { Database, SqlValue } from '../database.ts'
import { callRecord, type LedgerRow } from './ledger-row.ts'
import type { LedgerWriter } from './writer.ts'

/** The rows of settled calls. */
type LedgerRows = ReturnType<typeof ledgerRows>

/** The rows of settled calls, and how they are written. */
export interface LedgerTable extends LedgerRows {
  /**
   * Writes the records that an earlier process spilled. Resolves to how many; calls `onLost` for each that can never be
   * written. Rejects with the engine's errors.
   */
  recover(onLost?: (record: CallRecord, reason: string) => void): Promise<number>
  /** Opens a writer of rows; the caller closes it. */
  openWriter(): LedgerWriter
}

/** Rows of a range of Unix milliseconds (`to` is exclusive), optionally of one organization or key. */
export type LedgerRange = { from?: number; to?: number; organization?: string; key?: string }

/** The cost of all calls of a day (UTC) to one model of a provider; `day` is its beginning, in Unix milliseconds. */
export type DayCost = { day: number; provider: string; model: string; requests: number; nano: bigint }

/** Queries of the settled calls. */
export function ledgerRows(db: Database) {
  return {
    async find(id: string): Promise<CallRecord | undefined> {
      const row = await db.get<LedgerRow>('SELECT * FROM ledger WHERE id = @id', { id })
      return row && callRecord(row)
    },
    /** The calls of a range, ordered within each organization and read page by page. */
    each: (range: LedgerRange): AsyncIterable<CallRecord> => eachOf(db, range),
    /** The spend of all organizations by day and model; `from` and `to` are beginnings of days. */
    async byDay(from: number, to: number): Promise<DayCost[]> {
      const rows = await db.all<DayRow>(byDay, { from: Math.floor(from / hourMs), to: Math.ceil(to / hourMs) })
      return rows.map((row) => ({ ...row, day: Number(row.day) * dayMs, requests: Number(row.requests) }))
    },
  }
}

type DayRow = { day: bigint; provider: string; model: string; requests: bigint; nano: bigint }

const byDay = `
  SELECT hour / 24 AS day, provider, model, CAST(sum(requests) AS BIGINT) AS requests, CAST(sum(nano) AS BIGINT) AS nano
  FROM organization_usage WHERE hour >= @from AND hour < @to AND provider <> '' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`

/** Rows per page: between short reads a running router can checkpoint the database. */
const rowsAtOnce = 1_000

async function* eachOf(db: Database, range: LedgerRange): AsyncGenerator<CallRecord> {
  const { from = 0, to = Number.MAX_SAFE_INTEGER, organization, key } = range
  if (organization === undefined) {
    for (const each of await organizationsOf(db)) yield* eachOf(db, { ...range, organization: each })
    return
  }
  // The order in which those of one key and moment were written.
  const [place, first] = ({ sqlite: ['rowid', -1], postgres: ['id', ''] } as const)[db.dialect]
  const page = `
    SELECT ${place} AS place, ledger.* FROM ledger
    WHERE organization = @organization AND (at, key, ${place}) > (@at, @lastKey, @place) AND at < @to
      ${key === undefined ? '' : 'AND key = @key'}
    ORDER BY at, key, ${place} LIMIT ${rowsAtOnce}`
  let last: { [name: string]: SqlValue } = { at: from, lastKey: '', place: first }
  for (;;) {
    const rows = await db.all<LedgerRow>(page, { organization, ...last, to, ...(key !== undefined && { key }) })
    yield* rows.map(callRecord)
    const end = rows.at(-1)
    if (!end || rows.length < rowsAtOnce) return
    last = { at: end.at ?? null, lastKey: end.key ?? null, place: end.place ?? null }
  }
}

/** Finds all organizations with calls, by skipping from one to the next in the index. */
async function organizationsOf(db: Database): Promise<string[]> {
  const sql = 'SELECT organization FROM ledger WHERE organization > @last ORDER BY organization LIMIT 1'
  const next = (last: string) => db.get<{ organization: string }>(sql, { last })
  const found: string[] = []
  for (let one = await next(''); one; one = await next(one.organization)) found.push(one.organization)
  return found
}
