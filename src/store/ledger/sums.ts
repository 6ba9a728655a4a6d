import type { CallRecord } from '../../core/call.ts'
import { hourMs } from '../../core/time.ts'
import { promptClasses, type UsageClass } from '../../core/usage.ts'
import type { Connection } from '../sqlite/connection.ts'
import { cachedColumns, costNano, outputColumns, tokensOf } from './ledger-row.ts'

/** Adds up in memory how rows change the sums of spend and usage, and writes each sum once. */
type Sums = { add(record: CallRecord): void; write(): void }

/**
 * A function that starts to collect sums; `write` belongs in the transaction of their rows. A thousand rows of one key
 * and model become five writes instead of five thousand.
 */
export function usageSums(db: Connection): () => Sums {
  const write = sumWriter(db)
  return () => {
    const sums = new Map<string, Sum>()
    return {
      add(record) {
        const { organization, key, group, operation, provider, model } = record
        const figures = figuresOf(record)
        const hour = Math.floor(Math.round(record.at) / hourMs)
        // Only the model, which is last, may have a line feed in its name.
        const sumKey = `${organization}\n${key}\n${group ?? ''}\n${hour}\n${operation}\n${provider}\n${model}`
        const sum = sums.get(sumKey)
        if (sum) addFigures(sum.figures, figures)
        else {
          const month = monthOf(hour * hourMs)
          sums.set(sumKey, {
            organization,
            key,
            group,
            hour,
            month,
            dimensions: [operation, provider, model],
            figures,
          })
        }
      },
      write: () => write([...sums.values()]),
    }
  }
}

type Sum = Pick<CallRecord, 'organization' | 'key'> & {
  group: string | undefined
  hour: number
  month: string
  dimensions: readonly string[]
  figures: Figures
}

/** The key columns of a sum; undefined where the table has none for it. */
type By = (sum: Sum) => (string | number)[] | undefined

function sumWriter(db: Connection): (sums: readonly Sum[]) => void {
  const spend: readonly [ReturnType<typeof addition>, By][] = [
    [spendAddition(db, 'key_spend', 'key'), (sum) => [sum.key, sum.month]],
    [
      spendAddition(db, 'group_spend', 'group_id'),
      (sum) => (sum.group === undefined ? undefined : [sum.group, sum.month]),
    ],
    [spendAddition(db, 'organization_spend', 'organization'), (sum) => [sum.organization, sum.month]],
  ]
  const usage: typeof spend = [
    [
      usageAddition(db, 'key_usage', ['organization', 'key']),
      (sum) => [sum.organization, sum.key, sum.hour, ...sum.dimensions],
    ],
    [
      usageAddition(db, 'organization_usage', ['organization']),
      (sum) => [sum.organization, sum.hour, ...sum.dimensions],
    ],
  ]
  return (sums) => {
    const paid = sums.filter(({ figures }) => figures.nano !== 0n)
    for (const [add, by] of spend) for (const [columns, { nano }] of folded(paid, by)) add.run(...columns, nano)
    for (const [add, by] of usage)
      for (const [columns, figures] of folded(sums, by))
        add.run(...columns, ...figureNames.map((name) => figures[name]))
  }
}

/** Sums added up by fewer columns. */
function folded(sums: readonly Sum[], by: By): Iterable<[columns: (string | number)[], Figures]> {
  const found = new Map<string, [columns: (string | number)[], Figures]>()
  for (const sum of sums) {
    const columns = by(sum)
    if (!columns) continue
    const key = columns.join('\n')
    const [, figures] = found.get(key) ?? []
    if (figures) addFigures(figures, sum.figures)
    else found.set(key, [columns, { ...sum.figures }])
  }
  return found.values()
}

function spendAddition(db: Connection, table: string, id: string) {
  return addition(db, table, [id, 'month'], ['nano'])
}

function usageAddition(db: Connection, table: string, owner: readonly string[]) {
  return addition(db, table, [...owner, 'hour', 'operation', 'provider', 'model'], figureNames)
}

/** Adds figures to the row with these columns, or inserts it. */
function addition(db: Connection, table: string, columns: readonly string[], figures: readonly Figure[]) {
  const all = [...columns, ...figures]
  return db.prepare(`
    INSERT INTO ${table} (${all}) VALUES (${all.map(() => '?')})
    ON CONFLICT (${columns}) DO UPDATE SET ${figures.map((name) => `${name} = ${name} + excluded.${name}`)}`)
}

/** Counts of usage, as the columns of the tables of sums: calls, nano-USD and tokens. */
export type Figures = { -readonly [name in Figure]: bigint }

/** The name of one figure. */
export type Figure = keyof typeof inLedger

/** The expression of each figure over rows of the ledger. */
export const inLedger = {
  requests: 'sum(attempt_of IS NULL)',
  nano: 'sum(cost_nano)',
  input_tokens: sumOf(promptClasses),
  output_tokens: sumOf(outputColumns),
  cached_tokens: sumOf(cachedColumns),
  reasoning_tokens: sumOf(['reasoning']),
  failed: "sum(outcome = 'failed' AND attempt_of IS NULL)",
  partial: "sum(outcome = 'partial' AND attempt_of IS NULL)",
  estimated: 'sum(estimated)',
  unpriced: 'sum(unpriced)',
} as const satisfies { [name: string]: string }

/** All figures, in the order of their columns. */
export const figureNames = Object.keys(inLedger) as readonly Figure[]

/** The figures of one call. As bigint throughout: sums of money exceed 2^53, and SQLite adds a bound number as a float. */
function figuresOf(record: CallRecord): Figures {
  const { input, output, cached, reasoning } = tokensOf(record)
  const { outcome, cost, attemptOf } = record
  // A call is one request, however many attempts it made.
  const isCall = attemptOf === undefined
  return {
    requests: isCall ? 1n : 0n,
    nano: costNano(record),
    input_tokens: BigInt(input),
    output_tokens: BigInt(output),
    cached_tokens: BigInt(cached),
    reasoning_tokens: BigInt(reasoning),
    failed: isCall && outcome === 'failed' ? 1n : 0n,
    partial: isCall && outcome === 'partial' ? 1n : 0n,
    estimated: cost.estimated ? 1n : 0n,
    unpriced: cost.unpriced ? 1n : 0n,
  }
}

/** Adds figures to others. */
export function addFigures(total: Figures, added: Figures): void {
  for (const name of figureNames) total[name] += added[name]
}

/** Figures of nothing. */
export function noFigures(): Figures {
  return Object.fromEntries(figureNames.map((name) => [name, 0n])) as Figures
}

function sumOf(columns: readonly UsageClass[]): string {
  return `sum(${columns.map((name) => `coalesce(${name}, 0)`).join(' + ')})`
}

/** Spend by calendar month, and in total. */
export type Spend = ReturnType<typeof spend>

/** Queries of the sums of spend, which are written in the same transactions as the ledger. In nano-USD. */
export function spend(db: Connection) {
  const read = (sql: string) => db.prepare<string[], bigint>(sql).pluck().safeIntegers()
  const ofKey = read('SELECT nano FROM key_spend WHERE key = ? AND month = ?')
  const ofGroup = read('SELECT nano FROM group_spend WHERE group_id = ? AND month = ?')
  const ofOrganization = read('SELECT nano FROM organization_spend WHERE organization = ? AND month = ?')
  const total = read('SELECT coalesce(sum(nano), 0) FROM organization_spend WHERE organization = ?')
  const ofAll = read('SELECT coalesce(sum(nano), 0) FROM organization_spend WHERE month = ?')
  return {
    /** The spend of a key in the month of a time (Unix milliseconds). */
    ofKey: (key: string, at: number): bigint => ofKey.get(key, monthOf(at)) ?? 0n,
    /** The spend of the keys of a group, while they were in it, in the month of a time (Unix milliseconds). */
    ofGroup: (group: string, at: number): bigint => ofGroup.get(group, monthOf(at)) ?? 0n,
    /** The spend of an organization in the month of a time (Unix milliseconds). */
    ofOrganization: (organization: string, at: number): bigint => ofOrganization.get(organization, monthOf(at)) ?? 0n,
    /** The spend of all organizations in the month of a time (Unix milliseconds). */
    ofAll: (at: number): bigint => ofAll.get(monthOf(at)) ?? 0n,
    /** The total spend of an organization; its credit minus this is its balance. */
    totalOfOrganization: (organization: string): bigint => total.get(organization) ?? 0n,
  }
}

/** The calendar month of a time in UTC: `2026-11`. */
export function monthOf(at: number): string {
  return new Date(at).toISOString().slice(0, 7)
}
