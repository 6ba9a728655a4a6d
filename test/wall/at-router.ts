import { testKey, testRouter, usualThreads } from '../helpers/router.ts'
import { limit } from '../helpers/time.ts'
import type { Cell } from './cells.ts'
import { ledgerProblems } from './ledger.ts'
import { type Running, runCells } from './run.ts'
import { setupOf } from './setup.ts'
import { startSimulator } from './simulator/server.ts'
import type { World } from './world.ts'

/** The factor of all times: a minute takes 3 s. */
const time = limit(0.05)

/** Runs cells against a router and a simulator of their own. What is wrong with each, what its ledger says among it. */
export async function problemsAtRouter(cells: readonly Cell[], running: Running): Promise<[cell: Cell, string[]][]> {
  const simulator = await startSimulator({ time })
  const urls = await Promise.all(cells.map(() => simulator.listen()))
  const { settings, files } = setupOf(cells, { url: simulator.url, urls, time })
  const router = await testRouter({ files, settings })
  const world: World = {
    gateway: { url: router.url, key: testKey, limitMs: limit(30_000) },
    time,
    judges: usualThreads,
    slackMs: limit(10_000),
    modelOf: ({ id }) => id,
    healthyOf: ({ id }) => `${id}/ok`,
    requestsOf: async (caller) => simulator.journal.entries({ caller }),
  }
  const results = await runCells(cells, world, running)
  const booked = ledgerProblems(router.folder, results)
  await router.end()
  await simulator.close()
  return results.map(({ cell, problems }) => [cell, [...problems, ...(booked.get(cell.id) ?? [])]])
}
