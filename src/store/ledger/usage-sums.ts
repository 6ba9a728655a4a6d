import type { CallRecord } from '../../core/call.ts'
import { hourMs } from '../../core/time.ts'
import type { Connection } from '../connection.ts'
import { addFigures, type Figure, type Figures, figureNames, figuresOf } from './figures.ts'
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
