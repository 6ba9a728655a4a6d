import { usdOf, usdText } from '../money/usd.ts'
import type { CheckedSums, WrongSum } from '../store/verify-sums.ts'
import { columns } from './args.ts'
import type { Finding, LedgerRoom } from './ledger-action.ts'

/** Options besides those of every action. */
export const options: readonly string[] = []

/** `ledger check`: are all sums of spend and usage what the rows add up to? */
export function read(): (room: LedgerRoom) => Finding {
  return ({ store }) => {
    const checked = store.books.wrongSums(mostListed)
    return { json: asJson(checked), text: asText(checked), fine: checked.wrong === 0 }
  }
}

/** So many wrong sums are shown: more of them have one cause. */
const mostListed = 100

function asJson({ checked, wrong, listed }: CheckedSums) {
  const shown = ({ figure, kept, rows, ...sum }: WrongSum) =>
    figure === 'nano'
      ? { ...sum, figure: 'spend', kept: usdOf(kept), rows: usdOf(rows) }
      : { ...sum, figure, kept: Number(kept), rows: Number(rows) }
  return { checked, wrong, listed: listed.map(shown) }
}

function asText({ checked, wrong, listed }: CheckedSums): string {
  if (wrong === 0) return `${checked} sums are what the rows of the ledger add up to\n`
  const shown = wrong > mostListed ? ` (the first ${mostListed})` : ''
  const rows = listed.map(({ table, owner, period, figure, kept, rows }) =>
    figure === 'nano'
      ? [table, owner, period, 'USD', usdText(kept), usdText(rows)]
      : [table, owner, period, figure, String(kept), String(rows)],
  )
  const head = ['TABLE', 'OF', 'PERIOD', 'FIGURE', 'SUM', 'ROWS']
  return `${wrong} of ${checked} sums are not what the rows of the ledger add up to${shown}:\n${columns([head, ...rows])}`
}
