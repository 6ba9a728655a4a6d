import { hourMs } from '../../core/time.ts'
import type { Connection } from '../sqlite/connection.ts'
import { type CallFilters, filterParameters, filterSql } from './call-filters.ts'

/** Place of a row in the order of the list: by time, key and row, the latest first. */
type Place = { at: bigint; key: string; row: bigint }

/** The place before all rows of a time and after all later ones. */
export function startOf(at: number): Place {
  return { at: BigInt(at), key: '', row: -1n }
}

/**
 * The index by which rows of a span are found. That of clients' request ids begins with the hour: rows come in order of time, so
 * that what is written of it stays in memory, and an id is looked up in each hour that has calls.
 */
function indexFor({ requestId }: CallFilters): { index: string; condition: string } {
  if (requestId === undefined) return { index: 'ledger_by_organization', condition: '' }
  return { index: 'ledger_by_request_id', condition: `AND at / ${hourMs} = @hour AND request_id = @requestId` }
}

function hourOf(at: bigint): bigint {
  return at / BigInt(hourMs)
}

/** Finds places in the order of the list, by the index alone. */
export function placesOf(db: Connection, filters: CallFilters) {
  const { index, condition } = indexFor(filters)
  const { requestId } = filters
  const byId = db
    .prepare<[string, string], Place>('SELECT at, key, rowid AS row FROM ledger WHERE id = ? AND organization = ?')
    .safeIntegers()
  const further = db
    .prepare<[Record<string, unknown>], Place>(`
      SELECT at, key, rowid AS row FROM ledger INDEXED BY ${index}
      WHERE organization = @organization AND at >= @from AND (at, key, rowid) < (@at, @key, @row) ${condition}
      ORDER BY at DESC, key DESC, rowid DESC LIMIT 1 OFFSET @passed`)
    .safeIntegers()
  const oldest = db
    .prepare<[string, number], string>(
      'SELECT id FROM ledger WHERE organization = ? AND at >= ? ORDER BY at, key, rowid LIMIT 1',
    )
    .pluck()
  const idAt = db.prepare<[bigint], string>('SELECT id FROM ledger WHERE rowid = ?').pluck()
  return {
    of: (id: string, organization: string) => byId.get(id, organization),
    /** Returns the last of the next rows; undefined when less of them are left. */
    further(organization: string, place: Place, { span, rows }: { span: Span; rows: number }) {
      const from = BigInt(span.from)
      return further.get({ organization, requestId, hour: hourOf(from), from, passed: BigInt(rows - 1), ...place })
    },
    oldest: (organization: string, from: number) => oldest.get(organization, from),
    idOf: ({ row }: Place) => idAt.get(row),
  }
}

/**
 * A function that reads columns of calls between two places of a span: after the first one, until the second one. Integers are
 * bigint.
 */
export function rowsBetween<Row>(
  db: Connection,
  columns: string,
  { organization, filters }: { organization: string; filters: CallFilters },
): (place: Place, end: Place, limit: number) => Row[] {
  const { index, condition } = indexFor(filters)
  const rows = db
    .prepare<[Record<string, unknown>], Row>(`
      SELECT ${columns} FROM ledger INDEXED BY ${index}
      WHERE organization = @organization AND (at, key, rowid) < (@at, @placeKey, @row)
        AND (at, key, rowid) >= (@endAt, @endKey, @endRow) ${condition} ${filterSql(filters)}
        AND attempt_of IS NULL
      ORDER BY at DESC, key DESC, rowid DESC LIMIT @limit`)
    .safeIntegers()
  const bound = { organization, ...filterParameters(filters) }
  return ({ at, key, row }, end, limit) =>
    rows.all({
      ...bound,
      hour: hourOf(end.at),
      at,
      placeKey: key,
      row,
      endAt: end.at,
      endKey: end.key,
      endRow: end.row,
      limit: BigInt(limit),
    })
}

/** A range of Unix milliseconds; `to` is exclusive. */
export type Span = { from: number; to: number }

/**
 * The parts of a range in which an organization may have calls that pass the filters, the latest first: hours whose sums have such
 * calls, or all of it where no filter is one that sums tell apart. The request ids of clients are kept by hour, too.
 */
export function* callHours(
  db: Connection,
  { organization, from, to, filters }: Span & { organization: string; filters: CallFilters },
): Generator<Span> {
  const conditions = sumsConditions(filters)
  if (conditions.length === 0 && filters.requestId === undefined) {
    yield { from, to }
    return
  }
  const { key, provider, model, operation } = filters
  const bound = { organization, ...defined({ key, provider, model, operation }) }
  const latest = db
    .prepare<[Record<string, string | number>], number>(`
      SELECT hour FROM ${key === undefined ? 'organization_usage' : 'key_usage'}
      WHERE organization = @organization AND hour BETWEEN @first AND @last AND ${['requests > 0', ...conditions].join(' AND ')}
      ORDER BY hour DESC LIMIT 1`)
    .pluck()
  const first = Math.floor(from / hourMs)
  let last = Math.floor((to - 1) / hourMs)
  for (;;) {
    const hour = latest.get({ ...bound, first, last })
    if (hour === undefined) return
    yield { from: Math.max(from, hour * hourMs), to: Math.min(to, (hour + 1) * hourMs) }
    last = hour - 1
  }
}

function sumsConditions({ key, provider, model, operation, outcome, code }: CallFilters): string[] {
  return [
    ...Object.keys(defined({ key, provider, model, operation })).map((name) => `${name} = @${name}`),
    ...(outcome === 'failed' || outcome === 'partial' ? [`${outcome} > 0`] : []),
    ...(code === undefined ? [] : ['failed + partial > 0']),
  ]
}

function defined(values: { [name: string]: string | undefined }): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined))
}
