import { formatTime, hourMs } from '../../../core/time.ts'
import type { CheckedSums } from '../../checks.ts'
import { type Figure, figureNames, inLedger } from '../../ledger/sums.ts'
import type { Connection } from '../connection.ts'

/** A function that compares every sum with the rows of the ledger, in one snapshot: a router may go on writing. */
export function sumVerifier(db: Connection): (mostListed: number) => CheckedSums {
  const checkAll = db.transaction((mostListed: number): CheckedSums => {
    const checked: CheckedSums = { checked: 0, wrong: 0, listed: [] }
    for (const table of tables) checkTable(db, { table, checked, mostListed })
    return checked
  })
  return (mostListed) => checkAll.deferred(mostListed)
}

/** A table of sums: the columns of owner and period, there and in the ledger (`ofRow`, `periodOfRow`), and its figures. */
type Table = {
  name: string
  owner: string
  ofRow: string
  period: string
  periodOfRow: string
  figures: readonly Figure[]
}

const byMonth = {
  period: 'month',
  periodOfRow: "strftime('%Y-%m', at / 1000, 'unixepoch')",
  figures: ['nano'] as const,
}
const byHour = {
  period: 'hour',
  periodOfRow: `at / ${hourMs}`,
  figures: figureNames,
}

const tables: readonly Table[] = [
  { name: 'key_spend', owner: 'key', ofRow: 'key', ...byMonth },
  { name: 'group_spend', owner: 'group_id', ofRow: 'group_id', ...byMonth },
  { name: 'organization_spend', owner: 'organization', ofRow: 'organization', ...byMonth },
  { name: 'key_usage', owner: 'key', ofRow: 'key', ...byHour },
  { name: 'organization_usage', owner: 'organization', ofRow: 'organization', ...byHour },
]

type Joined = { owner: string; period: string | bigint } & { [figure: string]: bigint | string | null }

function checkTable(
  db: Connection,
  { table, checked, mostListed: maxListed }: { table: Table; checked: CheckedSums; mostListed: number },
): void {
  for (const row of db.prepare<[], Joined>(joined(table)).safeIntegers().iterate()) {
    checked.checked++
    for (const figure of table.figures) {
      const [stored, rows] = [bigintOf(row[`stored_${figure}`]), bigintOf(row[`rows_${figure}`])]
      if (stored === rows) continue
      checked.wrong++
      if (checked.listed.length === maxListed) continue
      checked.listed.push({ table: table.name, owner: row.owner, period: periodText(row.period), figure, stored, rows })
    }
  }
}

/** Both sides by owner and period; NULL where a side has no rows. */
function joined({ name, owner, ofRow, period, periodOfRow, figures }: Table): string {
  const stored = figures.map((figure) => `sum(${figure}) AS stored_${figure}`)
  const rows = figures.map((figure) => `${inLedger[figure]} AS rows_${figure}`)
  return `
    SELECT * FROM (SELECT ${owner} AS owner, ${period} AS period, ${stored} FROM ${name} GROUP BY 1, 2)
    FULL JOIN (
      SELECT ${ofRow} AS owner, ${periodOfRow} AS period, ${rows} FROM ledger WHERE ${ofRow} IS NOT NULL GROUP BY 1, 2
    ) USING (owner, period)`
}

function bigintOf(value: bigint | string | null | undefined): bigint {
  return typeof value === 'bigint' ? value : 0n
}

function periodText(period: string | bigint): string {
  return typeof period === 'string' ? period : formatTime(Number(period) * hourMs)
}
