import { usdOf, usdText } from '../../money/usd.ts'
import type { CheckedSums, Damage, WrongSum } from '../../store/checks.ts'
import { table } from '../command.ts'
import type { Finding, LedgerAction, LedgerSource } from './ledger-action.ts'

export const options: LedgerAction['options'] = {}

/** Prepares `ledger check`: looks for damage in the file, and compares all sums of spend and usage with the rows of the ledger. */
export function prepare(): (source: LedgerSource) => Promise<Finding> {
  return async ({ store }) => {
    const damage = await store.integrity.checkAll()
    // The sums of a damaged file would be wrong as well, or cannot be read.
    if (damage.length > 0) return { json: { damage }, text: damageText(damage), ok: false }
    const checked = await store.verifySums(maxListed)
    return { json: { damage, ...asJson(checked) }, text: asText(checked), ok: checked.wrong === 0 }
  }
}

/** The most wrong sums that are listed: further ones have the same cause. */
const maxListed = 100

function damageText(damage: Damage): string {
  return `The database file is damaged; restore it from a backup:\n${damage.map((line) => `  ${line}\n`).join('')}`
}

function asJson({ checked, wrong, listed }: CheckedSums) {
  const entry = ({ figure, stored, rows, ...sum }: WrongSum) =>
    figure === 'nano'
      ? { ...sum, figure: 'spend', kept: usdOf(stored), rows: usdOf(rows) }
      : { ...sum, figure, kept: Number(stored), rows: Number(rows) }
  return { checked, wrong, listed: listed.map(entry) }
}

function asText({ checked, wrong, listed }: CheckedSums): string {
  if (wrong === 0) return `The database file is sound; ${checked} sums equal the totals of the ledger's rows\n`
  const extent = wrong > maxListed ? ` (the first ${maxListed})` : ''
  const rows = listed.map(({ table, owner, period, figure, stored, rows }) =>
    figure === 'nano'
      ? [table, owner, period, 'USD', usdText(stored), usdText(rows)]
      : [table, owner, period, figure, String(stored), String(rows)],
  )
  const head = ['TABLE', 'OF', 'PERIOD', 'FIGURE', 'SUM', 'ROWS']
  return `${wrong} of ${checked} sums differ from the totals of the ledger's rows${extent}:\n${table([head, ...rows])}\n`
}
