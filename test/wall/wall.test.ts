import { monitorEventLoopDelay } from 'node:perf_hooks'
import { beforeAll, expect, test } from 'vitest'
import { testKey, testRouter } from '../helpers/router.ts'
import { limit } from '../helpers/time.ts'
import { type Cell, cellsOf } from './cells.ts'
import { ledgerProblems } from './ledger.ts'
import { pendingReason } from './pending.ts'
import { type Running, runCells } from './run.ts'
import { classic, others } from './scenarios.ts'
import { setupOf } from './setup.ts'
import { startSimulator } from './simulator/server.ts'

/** The factor of all times: a minute takes 3 s. */
const time = limit(0.05)

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

/** Runs cells against a router and a simulator of their own. */
async function run(some: readonly Cell[], running: Running): Promise<void> {
  const simulator = await startSimulator({ time })
  const urls = await Promise.all(some.map(() => simulator.listen()))
  const { settings, files } = setupOf(some, { url: simulator.url, urls, time })
  const router = await testRouter({ files, settings })
  const results = await runCells(
    some,
    {
      gateway: { url: router.url, key: testKey, limitMs: limit(30_000) },
      time,
      judges: Number(process.env.TEST_THREADS ?? 1),
      slackMs: limit(10_000),
      modelOf: ({ id }) => id,
      healthyOf: ({ id }) => `${id}/ok`,
      requestsOf: async (caller) => simulator.journal.entries({ caller }),
    },
    running,
  )
  const booked = ledgerProblems(router.folder, results)
  for (const { cell, problems } of results) problemsOf.set(cell.id, [...problems, ...(booked.get(cell.id) ?? [])])
  await router.end()
  await simulator.close()
}

test.each(cells.map((cell) => [cell.id, cell] as const))('%s', (id) => {
  const problems = problemsOf.get(id)
  const reason = pendingReason(id)
  if (reason === undefined) expect(problems).toEqual([])
  else expect(problems, `it is pending (${reason}), and passes`).not.toEqual([])
})
