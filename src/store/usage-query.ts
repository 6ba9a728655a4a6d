import { dayMs, hourMs, monthStart } from '../core/time.ts'
import { promptClasses } from '../core/usage.ts'
import type { Connection } from './connection.ts'
import { outputColumns } from './ledger-row.ts'

/** The length of one period of a report; periods are in UTC. */
export type Resolution = 'hour' | 'day' | 'month'

/**
 * The query of a usage report: an organization or one of its keys, and a range of Unix milliseconds (`to` is exclusive)
 * that is widened to whole hours. `groupBy` names `model` (provider/model), `provider`, `key` (its id),
 * `user`, `label` (all labels of the key as JSON), `label.<name>` and `extra.<field of the call's metadata>`.
 */
export type UsageQuery = {
  organization: string
  key?: string
  from: number
  to: number
  resolution: Resolution
  groupBy: readonly string[]
}

/** The usage of one group in one period; `values` are in the order of `groupBy`, null where calls have none. */
export type UsageRow = {
  /** When the period begins: Unix milliseconds. */
  start: number
  values: (string | null)[]
  requests: number
  byOperation: { [operation: string]: number }
  nano: bigint
  inputTokens: number
  outputTokens: number
}

/** The report has too many rows or takes too long. */
export class UsageTooLarge extends Error {}

/** Whether `groupBy` may have this name. */
export function isUsageGroup(name: string): boolean {
  return /^(?:model|provider|key|user|label|(?:label|extra)\.[^"\p{Cc}]{1,128})$/u.test(name)
}

/** The most rows of a report. */
export const mostUsageRows = 100_000
/** The longest time of a query; one that reads the ledger itself reads about 300,000 rows per second. */
const longestMs = 30_000

/** A function that runs usage queries; the rows are in the order of their periods. Throws UsageTooLarge and the engine's errors. */
export function usageReporter(db: Connection): (query: UsageQuery) => UsageRow[] {
  const labels = db.prepare<[string], string>('SELECT labels FROM api_keys WHERE id = ?').pluck()
  return (query) => {
    const labelsOf = memoized((key: string | null): Record<string, string> => JSON.parse(labels.get(key ?? '') ?? '{}'))
    const readers = query.groupBy.map((name) => valueReader(name, labelsOf))
    const { sql, unitMs, longest } = sourceOf(query)
    const statement = db.prepare<[Record<string, string | bigint>], RawRow>(sql).raw().safeIntegers()
    const rows = new Map<string, UsageRow>()
    const deadline = performance.now() + longestMs
    for (const { from, to } of rangesOf(query, longest)) {
      if (performance.now() > deadline) throw new UsageTooLarge(tooLong)
      const bound = { ...boundParameters(query), from: BigInt(from / unitMs), to: BigInt(to / unitMs) }
      for (const [period, operation, requests, nano, input, output, ...found] of statement.iterate(bound)) {
        const start = query.resolution === 'month' ? monthStart(from) : Number(period)
        const values = readers.map((read, index) => read(found[index] ?? null))
        const row = rowOf(rows, start, values)
        row.requests += Number(requests)
        row.byOperation[operation] = (row.byOperation[operation] ?? 0) + Number(requests)
        row.nano += nano
        row.inputTokens += Number(input)
        row.outputTokens += Number(output)
      }
    }
    return [...rows.values()].sort((one, other) => one.start - other.start)
  }
}

type RawRow = [period: bigint, operation: string, ...counts: [bigint, bigint, bigint, bigint], ...(string | null)[]]

/** An SQL query with the unit of its times in milliseconds, and the longest range that one execution may have. */
type Source = { sql: string; unitMs: number; longest: 'day' | 'month' | 'all' }

const tooMany = `The report would have more than ${mostUsageRows} rows: ask for fewer days, a coarser resolution or fewer groups.`
const tooLong = `The report takes longer than ${longestMs / 1_000} s: ask for fewer days, or without user and extra, which are counted call by call.`

function rowOf(rows: Map<string, UsageRow>, start: number, values: UsageRow['values']): UsageRow {
  const key = JSON.stringify([start, ...values])
  const known = rows.get(key)
  if (known) return known
  if (rows.size === mostUsageRows) throw new UsageTooLarge(tooMany)
  const row = { start, values, requests: 0, byOperation: {}, nano: 0n, inputTokens: 0, outputTokens: 0 }
  rows.set(key, row)
  return row
}

/** The smallest table that can answer a query. The ledger is read day by day, as long reads make its write-ahead log grow. */
function sourceOf(query: UsageQuery): Source {
  const { key, resolution, groupBy } = query
  if (groupBy.some((name) => name === 'user' || name.startsWith('extra.'))) {
    const sum = (columns: readonly string[]) => `sum(${columns.map((name) => `coalesce(${name}, 0)`).join(' + ')})`
    const counts = ['count(*)', 'sum(cost_nano)', sum(promptClasses), sum(outputColumns)]
    return { sql: select('ledger', { name: 'at', unitMs: 1 }, counts, query), unitMs: 1, longest: 'day' }
  }
  const byKey = key !== undefined || groupBy.some((name) => name === 'key' || name.startsWith('label'))
  const table = byKey ? (key === undefined ? usageOfAllKeys : 'key_usage') : 'organization_usage'
  const counts = ['sum(requests)', 'sum(nano)', 'sum(input_tokens)', 'sum(output_tokens)']
  const sql = select(table, { name: 'hour', unitMs: hourMs }, counts, query)
  return { sql, unitMs: hourMs, longest: resolution === 'month' ? 'month' : 'all' }
}

/** Walks from key to key and reads only the hours of the range, not the rest of each key's history. */
const usageOfAllKeys = `(
  WITH RECURSIVE listed (id) AS (
    SELECT min(key) FROM key_usage WHERE organization = @organization
    UNION ALL
    SELECT (SELECT min(key) FROM key_usage WHERE organization = @organization AND key > listed.id) FROM listed
    WHERE listed.id IS NOT NULL)
  SELECT id FROM listed WHERE id IS NOT NULL) AS listed CROSS JOIN key_usage ON key = listed.id`

function select(
  table: string,
  time: { name: string; unitMs: number },
  counts: readonly string[],
  { key, resolution, groupBy }: UsageQuery,
): string {
  // SQLite divides integers to integers. A range never spans two months when the resolution is `month`.
  const periodMs = { hour: hourMs, day: dayMs, month: 0 }[resolution]
  const start = periodMs === 0 ? '0' : `${time.name} / ${periodMs / time.unitMs} * ${periodMs}`
  const groups = groupBy.map((name, index) =>
    name.startsWith('extra.') ? `metadata -> @path${index}` : columnOf(name),
  )
  const places = groups.map((_, index) => 3 + counts.length + index)
  return `
    SELECT ${[start, 'operation', ...counts, ...groups]} FROM ${table}
    WHERE organization = @organization ${key === undefined ? '' : 'AND key = @key'}
      AND ${time.name} >= @from AND ${time.name} < @to
    GROUP BY ${[...places, 1, 2]}`
}

/** The query's bound parameters. Fields of metadata are named by clients: they are bound, never part of the SQL. */
function boundParameters({ organization, key, groupBy }: UsageQuery): Record<string, string> {
  const paths = groupBy.flatMap((name, index) =>
    name.startsWith('extra.') ? [[`path${index}`, `$.${JSON.stringify(name.slice('extra.'.length))}`]] : [],
  )
  return { organization, ...(key !== undefined && { key }), ...Object.fromEntries(paths) }
}

/** Calls that were rejected before a provider was chosen have neither provider nor model. */
const columns: { readonly [name: string]: string } = {
  model: "nullif(provider, '') || '/' || model",
  provider: "nullif(provider, '')",
  user: 'user',
}

/** The column of a group; labels are looked up by key. */
function columnOf(name: string): string {
  return columns[name] ?? 'key'
}

function valueReader(name: string, labelsOf: (key: string | null) => Record<string, string>) {
  if (name.startsWith('extra.'))
    return memoized((json: string | null) => (json === null ? null : plain(JSON.parse(json))))
  if (name === 'label') return memoized((key: string | null) => sorted(labelsOf(key)))
  if (!name.startsWith('label.')) return (value: string | null) => value
  const label = name.slice('label.'.length)
  return (key: string | null) => {
    const labels = labelsOf(key)
    return Object.hasOwn(labels, label) ? (labels[label] ?? null) : null
  }
}

function plain(value: unknown): string | null {
  if (value === null || typeof value === 'string') return value
  return JSON.stringify(value)
}

function sorted(labels: Record<string, string>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(labels).sort()))
}

function memoized<From, To>(read: (from: From) => To): (from: From) => To {
  const known = new Map<From, To>()
  return (from) => {
    if (!known.has(from)) known.set(from, read(from))
    return known.get(from) as To
  }
}

/** The range of a query in whole hours, split at days or months. */
function* rangesOf({ from, to }: UsageQuery, longest: Source['longest']): Generator<{ from: number; to: number }> {
  const end = Math.ceil(to / hourMs) * hourMs
  let start = Math.floor(from / hourMs) * hourMs
  while (start < end) {
    const next = { day: Math.floor(start / dayMs) * dayMs + dayMs, month: monthStart(start, 1), all: end }[longest]
    yield { from: start, to: Math.min(next, end) }
    start = next
  }
}
