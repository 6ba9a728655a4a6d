import { monitorEventLoopDelay } from 'node:perf_hooks'
import { beforeAll, expect, test } from 'vitest'
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
const problemsOf = new Map<string, string[]>()

/**
 * Where the event loop stood still, times mean nothing: a few cells that are not as expected are then run again, with less beside
 * them.
 */
beforeAll(async () => {
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
}, limit(240_000))

/** Milliseconds. */
const longestStallMs = 50
const mostAgain = 20

function isUnexpected({ id }: Cell): boolean {
  return (problemsOf.get(id)?.length === 0) !== (pendingReason(id) === undefined)
}

async function run(some: readonly Cell[], running: Running): Promise<void> {
  for (const [{ id }, problems] of await problemsAtRouter(some, running)) problemsOf.set(id, problems)
}

test.each(cells.map((cell) => [cell.id, cell] as const))('%s', (id) => {
  const problems = problemsOf.get(id)
  const reason = pendingReason(id)
  if (reason === undefined) expect(problems).toEqual([])
  else expect(problems, `it is pending (${reason}), and passes`).not.toEqual([])
})
