import { dayMs, hourMs, monthStart } from '../core/time.ts'
import { promptClasses } from '../core/usage.ts'
import type { Connection } from './connection.ts'
import { answerColumns } from './ledger-row.ts'

/** How long one period of a report is; periods are those of UTC. */
export type Resolution = 'hour' | 'day' | 'month'

/**
 * What is to be counted, of an organization or of one key of it, from one moment up to another (Unix milliseconds, the
 * second not included), both widened to whole hours. `groupBy` names `model` (provider/model), `provider`, `key` (its id),
 * `user`, `label` (all labels of the key as JSON), `label.<name>` and `extra.<field of the call's metadata>`.
 */
export type UsageQuestion = {
  organization: string
  key?: string
  from: number
  to: number
  resolution: Resolution
  groupBy: readonly string[]
}

/** What was used in one period by one group; `values` stand in the order of `groupBy`, null where a call has none. */
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

/** The answer would have more rows than anybody reads, or takes longer than anybody waits. */
export class UsageTooLarge extends Error {}

/** Whether `groupBy` of a question may have this word. */
export function isUsageGroup(word: string): boolean {
  return /^(?:model|provider|key|user|label|(?:label|extra)\.[^"\p{Cc}]{1,128})$/u.test(word)
}

/** Rows of an answer at most. */
export const mostUsageRows = 100_000
/** A question that needs the rows of the ledger reads some 300,000 of them in a second. */
const longestMs = 30_000

/** A function that answers questions, the periods in order. Throws UsageTooLarge and the engine's errors. */
export function usageAnswerer(db: Connection): (question: UsageQuestion) => UsageRow[] {
  const labels = db.prepare<[string], string>('SELECT labels FROM api_keys WHERE id = ?').pluck()
  return (question) => {
    const labelsOf = remembered(
      (key: string | null): Record<string, string> => JSON.parse(labels.get(key ?? '') ?? '{}'),
    )
    const readers = question.groupBy.map((word) => valueReader(word, labelsOf))
    const { sql, unitMs, longest } = sourceOf(question)
    const statement = db.prepare<[Record<string, string | bigint>], RawRow>(sql).raw().safeIntegers()
    const rows = new Map<string, UsageRow>()
    const deadline = performance.now() + longestMs
    for (const { from, to } of stretches(question, longest)) {
      if (performance.now() > deadline) throw new UsageTooLarge(tooLong)
      const asked = { ...boundWords(question), from: BigInt(from / unitMs), to: BigInt(to / unitMs) }
      for (const [period, operation, requests, nano, input, output, ...found] of statement.iterate(asked)) {
        const start = question.resolution === 'month' ? monthStart(from) : Number(period)
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

/** A query whose times count units of so many milliseconds, asked for stretches of time that are so long at most. */
type Source = { sql: string; unitMs: number; longest: 'day' | 'month' | 'all' }

const tooMany = `The answer would have more than ${mostUsageRows} rows: ask for fewer days, a coarser resolution or fewer groups.`
const tooLong = `The answer takes longer than ${longestMs / 1_000} s: ask for fewer days, or without user and extra, which are counted call by call.`

function rowOf(rows: Map<string, UsageRow>, start: number, values: UsageRow['values']): UsageRow {
  const name = JSON.stringify([start, ...values])
  const known = rows.get(name)
  if (known) return known
  if (rows.size === mostUsageRows) throw new UsageTooLarge(tooMany)
  const row = { start, values, requests: 0, byOperation: {}, nano: 0n, inputTokens: 0, outputTokens: 0 }
  rows.set(name, row)
  return row
}

/** The table with the fewest rows that knows what is asked. The ledger is read day by day: short reads keep its log short. */
function sourceOf(question: UsageQuestion): Source {
  const { key, resolution, groupBy } = question
  if (groupBy.some((word) => word === 'user' || word.startsWith('extra.'))) {
    const sum = (columns: readonly string[]) => `sum(${columns.map((name) => `coalesce(${name}, 0)`).join(' + ')})`
    const counts = ['count(*)', 'sum(cost_nano)', sum(promptClasses), sum(answerColumns)]
    return { sql: select('ledger', { name: 'at', unitMs: 1 }, counts, question), unitMs: 1, longest: 'day' }
  }
  const byKey = key !== undefined || groupBy.some((word) => word === 'key' || word.startsWith('label'))
  const table = byKey ? (key === undefined ? usageOfAllKeys : 'key_usage') : 'organization_usage'
  const counts = ['sum(requests)', 'sum(nano)', 'sum(input_tokens)', 'sum(output_tokens)']
  const sql = select(table, { name: 'hour', unitMs: hourMs }, counts, question)
  return { sql, unitMs: hourMs, longest: resolution === 'month' ? 'month' : 'all' }
}

/** From key to key, and of each only the hours in question: what keys used in years before is not read. */
const usageOfAllKeys = `(
  WITH RECURSIVE held (id) AS (
    SELECT min(key) FROM key_usage WHERE organization = @organization
    UNION ALL
    SELECT (SELECT min(key) FROM key_usage WHERE organization = @organization AND key > held.id) FROM held
    WHERE held.id IS NOT NULL)
  SELECT id FROM held WHERE id IS NOT NULL) AS held CROSS JOIN key_usage ON key = held.id`

function select(
  table: string,
  time: { name: string; unitMs: number },
  counts: readonly string[],
  { key, resolution, groupBy }: UsageQuestion,
): string {
  // Whole numbers divide to whole numbers. A month is never asked together with another one.
  const periodMs = { hour: hourMs, day: dayMs, month: 0 }[resolution]
  const start = periodMs === 0 ? '0' : `${time.name} / ${periodMs / time.unitMs} * ${periodMs}`
  const groups = groupBy.map((word, index) =>
    word.startsWith('extra.') ? `metadata -> @path${index}` : columnOf(word),
  )
  const places = groups.map((_, index) => 3 + counts.length + index)
  return `
    SELECT ${[start, 'operation', ...counts, ...groups]} FROM ${table}
    WHERE organization = @organization ${key === undefined ? '' : 'AND key = @key'}
      AND ${time.name} >= @from AND ${time.name} < @to
    GROUP BY ${[...places, 1, 2]}`
}

/** The fields of metadata are named by the client: they are bound, never written into the text. */
function boundWords({ organization, key, groupBy }: UsageQuestion): Record<string, string> {
  const paths = groupBy.flatMap((word, index) =>
    word.startsWith('extra.') ? [[`path${index}`, `$.${JSON.stringify(word.slice('extra.'.length))}`]] : [],
  )
  return { organization, ...(key !== undefined && { key }), ...Object.fromEntries(paths) }
}

/** Calls that were refused before any provider was chosen have none, and no model. */
const columns: { readonly [word: string]: string } = {
  model: "nullif(provider, '') || '/' || model",
  provider: "nullif(provider, '')",
  user: 'user',
}

/** The column of a group: that of a key for all that is known of keys. */
function columnOf(word: string): string {
  return columns[word] ?? 'key'
}

function valueReader(word: string, labelsOf: (key: string | null) => Record<string, string>) {
  if (word.startsWith('extra.'))
    return remembered((json: string | null) => (json === null ? null : plain(JSON.parse(json))))
  if (word === 'label') return remembered((key: string | null) => sorted(labelsOf(key)))
  if (!word.startsWith('label.')) return (value: string | null) => value
  const name = word.slice('label.'.length)
  return (key: string | null) => {
    const labels = labelsOf(key)
    return Object.hasOwn(labels, name) ? (labels[name] ?? null) : null
  }
}

function plain(value: unknown): string | null {
  if (value === null || typeof value === 'string') return value
  return JSON.stringify(value)
}

function sorted(labels: Record<string, string>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(labels).sort()))
}

function remembered<From, To>(read: (from: From) => To): (from: From) => To {
  const known = new Map<From, To>()
  return (from) => {
    if (!known.has(from)) known.set(from, read(from))
    return known.get(from) as To
  }
}

/** The time of a question in whole hours, cut at days or months. */
function* stretches({ from, to }: UsageQuestion, longest: Source['longest']): Generator<{ from: number; to: number }> {
  const end = Math.ceil(to / hourMs) * hourMs
  let start = Math.floor(from / hourMs) * hourMs
  while (start < end) {
    const next = { day: Math.floor(start / dayMs) * dayMs + dayMs, month: monthStart(start, 1), all: end }[longest]
    yield { from: start, to: Math.min(next, end) }
    start = next
  }
}
