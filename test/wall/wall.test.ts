import { monitorEventLoopDelay } from 'node:perf_hooks'
import { beforeAll, describe, expect, test } from 'vitest'
import { slow } from '../helpers/slow.ts'
import { limit } from '../helpers/time.ts'
import { problemsAtRouter } from './at-router.ts'
import { type Cell, cellsOf } from './cells.ts'
import { pendingReason } from './pending.ts'
import type { Running } from './run.ts'
import { classic, others } from './scenarios.ts'

const all = [...classic, ...others]
const streams = (some: readonly Cell[]) => some.filter(({ targets, mode }) => targets === 'two' && mode === 'streamed')
const cells = [
  ...cellsOf(all),
  ...streams(cellsOf(all, { turn: 1 })),
  ...streams(cellsOf(all, { onCut: 'hold' })),
  ...(['continue', 'restart'] as const).flatMap((onCut) =>
    streams(
      cellsOf(
        all.filter((scenario) => scenario.onCut),
        { onCut },
      ),
    ),
  ),
]
/** Of each scenario one cell with two targets and one with one, in turns streamed or whole and of each client API. */
const fast = new Set(
  Object.values(Object.groupBy(cellsOf(all), ({ scenario }) => scenario.name)).flatMap((ofScenario = [], index) =>
    (['two', 'one'] as const).map((targets, at) => {
      const some = ofScenario.filter((cell) => cell.targets === targets)
      return some[(index + at) % some.length]?.id
    }),
  ),
)
const problemsOf = new Map<string, string[]>()

/**
 * Where the event loop stood still, times mean nothing: a few cells that are not as expected are then run again, with less beside
 * them.
 */
async function runAll(cells: readonly Cell[]): Promise<void> {
  // What has run already runs faster.
  await run(cellsOf(classic.filter(({ name }) => name === 'accounting')), { atOnce: 1, waitingAtOnce: 1 })
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  await run(cells, { atOnce: 4, waitingAtOnce: 40 })
  delay.disable()
  for (let round = 1; round <= 2 && delay.max / 1e6 > longestStallMs; round++) {
    const left = cells.filter(isUnexpected)
    if (left.length > 0 && left.length <= mostAgain) await run(left, { atOnce: 1, waitingAtOnce: mostAgain })
  }
}

/** Milliseconds. */
const longestStallMs = 50
const mostAgain = 20

function isUnexpected({ id }: Cell): boolean {
  return (problemsOf.get(id)?.length === 0) !== (pendingReason(id) === undefined)
}

async function run(some: readonly Cell[], running: Running): Promise<void> {
  for (const [{ id }, problems] of await problemsAtRouter(some, running)) problemsOf.set(id, problems)
}

function wall(some: readonly Cell[]): void {
  beforeAll(() => runAll(some), limit(240_000))
  test.each(some.map(({ id }) => id))('%s', (id) => {
    const problems = problemsOf.get(id)
    const reason = pendingReason(id)
    if (reason === undefined) expect(problems).toEqual([])
    else expect(problems, `it is pending (${reason}), and passes`).not.toEqual([])
  })
}

describe('two cells of each scenario', () => wall(cells.filter(({ id }) => fast.has(id))))
describe('the other cells', slow, () => wall(cells.filter(({ id }) => !fast.has(id))))
