import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Cell } from './cells.ts'
import { isCounted, outcomeOf } from './judge.ts'
import type { Result } from './run.ts'
import { prices } from './setup.ts'
import { answerTokens, promptTokens } from './simulator/answer.ts'

type Row = { request_id: string; cost_nano: number; estimated: number; outcome: string; status: number }

const nano = { input: prices.input * 1e9, output: prices.output * 1e9 }
const begunCost = promptTokens * nano.input + 2 * nano.output
const wholeCost = promptTokens * nano.input + answerTokens * nano.output

/** What the books of a router that has a folder say wrong about the calls of cells, by the ids of the cells. */
export function ledgerProblems(folder: string, results: readonly Result[]): Map<string, string[]> {
  const db = new Database(join(folder, 'data/router.sqlite'), { readonly: true })
  const all = db.prepare('SELECT request_id, cost_nano, estimated, outcome, status FROM ledger').all() as Row[]
  db.close()
  const rows = Map.groupBy(all, ({ request_id }) => request_id)
  return new Map(
    results.map((result) => {
      const { id } = result.cell
      const found = [
        ...rowProblems(result, rows.get(id) ?? []),
        ...afterwards(result.cell, rows.get(`${id}-after`) ?? []),
      ]
      return [id, found.map((problem) => `the ledger: ${problem}`)]
    }),
  )
}

function rowProblems({ cell, seen }: Result, rows: readonly Row[]): string[] {
  if (!seen) return []
  // What an attempt before the last one has cost is a row of its own.
  const row = rows.at(-1)
  if (!row || rows.slice(0, -1).some(({ outcome }) => outcome === 'complete')) return [`${rows.length} rows`]
  const { of } = outcomeOf(cell, seen)
  const sum = rows.reduce((total, { cost_nano }) => total + cost_nano, 0)
  if (of === 'complete' && isCounted(cell)) return costProblems(row, wholeCost)
  if (of === 'complete') {
    const isEstimated = cell.scenario.estimated !== true || rows.some(({ estimated }) => estimated === 1)
    return sum > 0 && isEstimated ? [] : [`${sum} nano-USD without an estimate`]
  }
  if (row.outcome === 'complete') return of === 'damaged' ? [] : ['a failure is told as a success']
  // What was held back is paid all the same.
  if (seen.text === '' && cell.onCut === 'hold') return []
  // A provider that has begun may have counted the prompt.
  if (seen.text === '') return row.cost_nano <= begunCost ? [] : [`${row.cost_nano} nano-USD for nothing`]
  const tokens = seen.text.split(' ').length
  return sum >= tokens * nano.output ? [] : [`${sum} nano-USD for ${tokens} tokens and a prompt`]
}

function afterwards({ scenario }: Cell, rows: readonly Row[]): string[] {
  if (scenario.outage) return []
  const [row] = rows
  return row && rows.length === 1 ? costProblems(row, wholeCost) : [`${rows.length} rows of the healthy call`]
}

function costProblems({ cost_nano, estimated }: Row, expected: number): string[] {
  if (cost_nano === expected && estimated === 0) return []
  return [`${cost_nano} nano-USD${estimated ? ', estimated,' : ''} and not ${expected}`]
}
