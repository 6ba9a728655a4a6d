import type { CallRecord } from '../core/call.ts'
import { hourMs } from '../core/time.ts'
import type { Connection } from './connection.ts'
import { costNano, tokensOf } from './ledger-row.ts'
import { monthOf } from './spend.ts'

/** Adds up in memory how rows change the sums of spend and usage, and writes each sum once. */
export type Sums = { add(record: CallRecord): void; write(): void }

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
        const counts = { requests: 1, nano: costNano(record), ...tokensOf(record) }
        const hour = Math.floor(Math.round(record.at) / hourMs)
        // Only the model, which is last, may have a line feed in its name.
        const sumKey = `${organization}\n${key}\n${group ?? ''}\n${hour}\n${operation}\n${provider}\n${model}`
        const sum = sums.get(sumKey)
        if (sum) addTo(sum, counts)
        else {
          const month = monthOf(hour * hourMs)
          sums.set(sumKey, {
            organization,
            key,
            group,
            hour,
            month,
            dimensions: [operation, provider, model],
            ...counts,
          })
        }
      },
      write: () => write([...sums.values()]),
    }
  }
}

type Counts = { requests: number; nano: bigint; input: number; output: number }
type Sum = Counts &
  Pick<CallRecord, 'organization' | 'key'> & {
    group: string | undefined
    hour: number
    month: string
    dimensions: readonly string[]
  }

/** The key columns of a sum; undefined where the table has none for it. */
type By = (sum: Sum) => (string | number)[] | undefined

function sumWriter(db: Connection): (sums: readonly Sum[]) => void {
  const spend: readonly [ReturnType<typeof spendStatement>, By][] = [
    [spendStatement(db, 'key_spend', 'key'), (sum) => [sum.key, sum.month]],
    [
      spendStatement(db, 'group_spend', 'group_id'),
      (sum) => (sum.group === undefined ? undefined : [sum.group, sum.month]),
    ],
    [spendStatement(db, 'organization_spend', 'organization'), (sum) => [sum.organization, sum.month]],
  ]
  const usage: typeof spend = [
    [
      usageStatement(db, 'key_usage', 'organization, key'),
      (sum) => [sum.organization, sum.key, sum.hour, ...sum.dimensions],
    ],
    [
      usageStatement(db, 'organization_usage', 'organization'),
      (sum) => [sum.organization, sum.hour, ...sum.dimensions],
    ],
  ]
  return (sums) => {
    const paid = sums.filter(({ nano }) => nano !== 0n)
    for (const [add, by] of spend) for (const [columns, { nano }] of folded(paid, by)) add.run(...columns, nano)
    for (const [add, by] of usage) {
      // As bigint throughout: SQLite adds a bound number as a float.
      for (const [columns, { requests, nano, input, output }] of folded(sums, by))
        add.run(...columns, BigInt(requests), nano, BigInt(input), BigInt(output))
    }
  }
}

/** Sums added up by fewer columns. */
function folded(sums: readonly Sum[], by: By): Iterable<[columns: (string | number)[], Counts]> {
  const found = new Map<string, [columns: (string | number)[], Counts]>()
  for (const sum of sums) {
    const columns = by(sum)
    if (!columns) continue
    const key = columns.join('\n')
    const { requests, nano, input, output } = sum
    const [, counts] = found.get(key) ?? []
    if (counts) addTo(counts, sum)
    else found.set(key, [columns, { requests, nano, input, output }])
  }
  return found.values()
}

function addTo(counts: Counts, { requests, nano, input, output }: Counts): void {
  counts.requests += requests
  counts.nano += nano
  counts.input += input
  counts.output += output
}

function spendStatement(db: Connection, table: string, id: string) {
  return db.prepare(`
    INSERT INTO ${table} (${id}, month, nano) VALUES (?, ?, ?)
    ON CONFLICT (${id}, month) DO UPDATE SET nano = nano + excluded.nano`)
}

function usageStatement(db: Connection, table: string, owner: string) {
  const of = `${owner}, hour, operation, provider, model`
  const marks = `${of}, requests, nano, input_tokens, output_tokens`.split(',').map(() => '?')
  return db.prepare(`
    INSERT INTO ${table} (${of}, requests, nano, input_tokens, output_tokens) VALUES (${marks})
    ON CONFLICT (${of}) DO UPDATE SET requests = requests + excluded.requests, nano = nano + excluded.nano,
      input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens`)
}
