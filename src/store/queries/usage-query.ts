import { dayMs, hourMs, monthStart } from '../../core/time.ts'
import { type Figures, figureNames, inLedger, noFigures } from '../ledger/sums.ts'
import type { Connection } from '../sqlite/connection.ts'
import { storedJson } from '../store-error.ts'
import { QueryTooLarge } from './query.ts'

/** The length of one period of a report; periods are in UTC. */
export type Resolution = 'hour' | 'day' | 'month'

/**
 * The query of a usage report: an organization or one of its keys, all organizations where none is named, and a range of Unix milliseconds
 * (`to` is exclusive). `groupBy` has names that `isUsageGroup` accepts.
 */
export type UsageQuery = {
  organization?: string
  key?: string
  from: number
  to: number
  resolution: Resolution
  groupBy: readonly string[]
}

/** The usage of one group in one period; `values` are in the order of `groupBy`, null where calls have none. */
export type UsageRow = {
  /** Start of the period: Unix milliseconds. */
  start: number
  values: (string | null)[]
  byOperation: { [operation: string]: number }
  figures: Figures
}

/** Checks whether `groupBy` may have this name. */
export function isUsageGroup(name: string): boolean {
  return Object.hasOwn(columns, name) || /^(?:label|extra)\.[^"\p{Cc}]{1,128}$/u.test(name)
}

/** The default maximum of rows in a report. */
export const maxUsageRows = 100_000
/** The longest time of a query; one that reads the ledger itself reads about 300,000 rows per second. */
const maxMs = 30_000

/** A function that runs usage queries; the rows are in the order of their periods. Throws QueryTooLarge and the engine's errors. */
export function usageReporter(db: Connection, mostRows = maxUsageRows): (query: UsageQuery) => UsageRow[] {
  const labels = db.prepare<[string], string>('SELECT labels FROM api_keys WHERE id = ?').pluck()
  const groupName = db.prepare<[string], string>('SELECT name FROM groups WHERE id = ?').pluck()
  const organizationName = db.prepare<[string], string>('SELECT name FROM organizations WHERE id = ?').pluck()
  return (query) => {
    const lookups: Lookups = {
      labelsOf: memoized((key) => storedJson(labels.get(key ?? '') ?? '{}')),
      groupName: memoized((group) => groupName.get(group ?? '') ?? null),
      organizationName: memoized((organization) => organizationName.get(organization ?? '') ?? null),
    }
    const readers = query.groupBy.map((name) => valueReader(name, lookups))
    const statementOf = memoized((source: Source) =>
      db.prepare<[Record<string, string | bigint>], RawRow>(source.sql(query)).raw().safeIntegers(),
    )
    const rows = new Map<string, UsageRow>()
    const deadline = performance.now() + maxMs
    for (const { source, from, to } of partsOf(query)) {
      if (performance.now() > deadline) throw new QueryTooLarge(tooLong)
      const bound = { ...boundParameters(query), from: BigInt(from / source.unitMs), to: BigInt(to / source.unitMs) }
      for (const [period, operation, ...found] of statementOf(source).iterate(bound)) {
        const start = query.resolution === 'month' ? monthStart(from) : Number(period)
        const values = readers.map((read, index) => read((found[figureNames.length + index] as string | null) ?? null))
        const row = rowOf(rows, { start, values, mostRows })
        for (const [index, name] of figureNames.entries()) row.figures[name] += found[index] as bigint
        row.byOperation[operation] = (row.byOperation[operation] ?? 0) + Number(found[0])
      }
    }
    return [...rows.values()].sort((one, other) => one.start - other.start)
  }
}

/** A period, an operation, the figures in their order, and the values of the groups. */
type RawRow = [period: bigint, operation: string, ...(bigint | string | null)[]]

const tooMany = (most: number) =>
  `The report would have more than ${most} rows: ask for fewer days, a coarser resolution or fewer groups.`
const tooLong = `The report takes longer than ${maxMs / 1_000} s: ask for fewer days, or without groups that are counted call by call, such as user and extra.`

function rowOf(
  rows: Map<string, UsageRow>,
  { start, values, mostRows: maxRows }: Pick<UsageRow, 'start' | 'values'> & { mostRows: number },
): UsageRow {
  const key = JSON.stringify([start, ...values])
  const known = rows.get(key)
  if (known) return known
  if (rows.size === maxRows) throw new QueryTooLarge(tooMany(maxRows))
  const row = { start, values, byOperation: {}, figures: noFigures() }
  rows.set(key, row)
  return row
}

/** A table to count in: its query, the unit of its times in milliseconds, and the longest range of one execution. */
type Source = { sql(query: UsageQuery): string; unitMs: number; maxRange(query: UsageQuery): 'day' | 'month' | 'all' }

/** Calls one by one. They are read day by day, as long reads make the write-ahead log grow. */
const ledgerRows: Source = {
  sql: (query) =>
    select(
      'ledger',
      { name: 'at', unitMs: 1 },
      figureNames.map((name) => inLedger[name]),
      query,
    ),
  unitMs: 1,
  maxRange: () => 'day',
}

/** Sums by hour, from the smallest table that has what the query asks for. */
const hourlySums: Source = {
  sql: (query) =>
    select(
      sumsTable(query),
      { name: 'hour', unitMs: hourMs },
      figureNames.map((name) => `sum(${name})`),
      query,
    ),
  unitMs: hourMs,
  maxRange: ({ resolution }) => (resolution === 'month' ? 'month' : 'all'),
}

type Part = { source: Source; from: number; to: number }

/** The range of a query in parts: whole hours from the sums where they can answer it, and calls at its edges, or everywhere. */
function* partsOf(query: UsageQuery): Generator<Part> {
  const { from, to, groupBy } = query
  const [first, last] = [Math.ceil(from / hourMs) * hourMs, Math.floor(to / hourMs) * hourMs]
  const fromCalls = groupBy.some((name) => columnOf(name).of === 'calls')
  if (fromCalls || first >= last) {
    yield* split({ source: ledgerRows, from, to }, query)
    return
  }
  yield* split({ source: ledgerRows, from, to: first }, query)
  yield* split({ source: hourlySums, from: first, to: last }, query)
  yield* split({ source: ledgerRows, from: last, to }, query)
}

/** A part split at days or months, as its source needs it. */
function* split({ source, from, to }: Part, query: UsageQuery): Generator<Part> {
  const longest = source.maxRange(query)
  let start = from
  while (start < to) {
    const next = { day: Math.floor(start / dayMs) * dayMs + dayMs, month: monthStart(start, 1), all: to }[longest]
    yield { source, from: start, to: Math.min(next, to) }
    start = next
  }
}

function sumsTable({ organization, key, groupBy }: UsageQuery): string {
  if (key !== undefined) return 'key_usage'
  if (!groupBy.some((name) => columnOf(name).of === 'keys')) return 'organization_usage'
  return organization === undefined ? usageOfEveryKey : usageOfAllKeys
}

/** Walks from key to key and reads only the hours of the range, not the rest of each key's history. */
const usageOfAllKeys = `(
  WITH RECURSIVE listed (id) AS (
    SELECT min(key) FROM key_usage WHERE organization = @organization
    UNION ALL
    SELECT (SELECT min(key) FROM key_usage WHERE organization = @organization AND key > listed.id) FROM listed
    WHERE listed.id IS NOT NULL)
  SELECT id FROM listed WHERE id IS NOT NULL) AS listed CROSS JOIN key_usage ON key = listed.id`

/** The same for the keys of all organizations, deleted ones as well. */
const usageOfEveryKey = `(SELECT organization AS owner, id FROM api_keys) AS listed
  CROSS JOIN key_usage ON organization = listed.owner AND key = listed.id`

function select(
  table: string,
  time: { name: string; unitMs: number },
  counts: readonly string[],
  { organization, key, resolution, groupBy }: UsageQuery,
): string {
  // SQLite divides integers to integers. A range never spans two months when the resolution is `month`.
  const periodMs = { hour: hourMs, day: dayMs, month: 0 }[resolution]
  const start = periodMs === 0 ? '0' : `${time.name} / ${periodMs / time.unitMs} * ${periodMs}`
  const groups = groupBy.map((name, index) => columnOf(name).sql ?? `metadata -> @path${index}`)
  const places = groups.map((_, index) => 3 + counts.length + index)
  return `
    SELECT ${[start, 'operation', ...counts, ...groups]} FROM ${table}
    WHERE organization ${organization === undefined ? 'IN (SELECT id FROM organizations)' : '= @organization'}
      ${key === undefined ? '' : 'AND key = @key'}
      AND ${time.name} >= @from AND ${time.name} < @to
    GROUP BY ${[...places, 1, 2]}`
}

/** The query's bound parameters. Fields of metadata are named by clients: they are bound, never part of the SQL. */
function boundParameters({ organization, key, groupBy }: UsageQuery): Record<string, string> {
  const paths = groupBy.flatMap((name, index) => {
    const { field } = columnOf(name)
    return field === undefined ? [] : [[`path${index}`, `$.${JSON.stringify(field)}`]]
  })
  return {
    ...(organization !== undefined && { organization }),
    ...(key !== undefined && { key }),
    ...Object.fromEntries(paths),
  }
}

/**
 * Column of a group: in all tables, in those that distinguish keys, or only in the calls themselves; as an expression, or as a field of
 * the metadata.
 */
type Column = { of: 'all' | 'keys' | 'calls' } & ({ sql: string; field?: never } | { sql?: never; field: string })

// Calls that were rejected before a provider was chosen have neither provider nor model.
const model: Column = { of: 'all', sql: "nullif(provider, '') || '/' || model" }
const provider: Column = { of: 'all', sql: "nullif(provider, '')" }
const key: Column = { of: 'keys', sql: 'key' }
const organization: Column = { of: 'all', sql: 'organization' }
const user: Column = { of: 'calls', sql: 'user' }
const group: Column = { of: 'calls', sql: 'group_id' }

/** The groups by name; the longer names are those of the service that the specification describes. */
const columns: { readonly [name: string]: Column } = {
  model,
  model_used: model,
  model_requested: { of: 'calls', sql: 'requested' },
  provider,
  provider_used: provider,
  key,
  api_key_id: key,
  label: key,
  organization,
  organization_name: organization,
  group_id: group,
  group_name: group,
  user,
  user_id: user,
  origin_title: { of: 'calls', field: 'origin_title' },
  // Every call is made with the credentials of the router's operator, none with a caller's own.
  is_byok: { of: 'all', sql: "'false'" },
}

/** The names that `groupBy` may have, besides `label.<name>` and `extra.<field of the metadata>`. */
export const usageGroups: readonly string[] = Object.keys(columns)

function columnOf(name: string): Column {
  if (Object.hasOwn(columns, name)) return columns[name] as Column
  return name.startsWith('extra.') ? { of: 'calls', field: name.slice('extra.'.length) } : key
}

/** Look-ups for what rows refer to by an id; both are read once for each query. */
type Lookups = {
  labelsOf(key: string | null): Record<string, string>
  groupName(group: string | null): string | null
  organizationName(organization: string | null): string | null
}

function valueReader(
  name: string,
  { labelsOf, groupName, organizationName }: Lookups,
): (value: string | null) => string | null {
  if (columnOf(name).field !== undefined)
    return memoized((json: string | null) => (json === null ? null : plain(JSON.parse(json))))
  if (name === 'group_name') return groupName
  if (name === 'organization_name') return organizationName
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
