import type { Cell } from './cells.ts'
import type { Seen } from './clients/client.ts'
import { judge, wholeProblems } from './judge.ts'
import { outageProblems } from './outage.ts'
import { callFor, type World } from './world.ts'

/** What came of a cell: nothing is wrong if it passed. */
export type Result = { cell: Cell; problems: string[]; seen?: Seen; ms: number }

/** How cells are run: so many at once, of those that mostly wait and of the others. Each result is told as soon as it is known. */
export type Running = { atOnce: number; waitingAtOnce: number; onResult?(result: Result): void }

export async function runCells(
  cells: readonly Cell[],
  world: World,
  { atOnce, waitingAtOnce, onResult = () => {} }: Running,
): Promise<Result[]> {
  const results: Result[] = []
  const lane = async (left: Cell[]) => {
    for (let cell = left.shift(); cell; cell = left.shift()) {
      const began = performance.now()
      const result = { cell, ...(await runCell(cell, world)), ms: performance.now() - began }
      results.push(result)
      onResult(result)
    }
  }
  const lanes = (left: Cell[], count: number) => Array.from({ length: count }, () => lane(left))
  const waiting = cells.filter(isLong).toSorted((one, other) => lengthOf(other) - lengthOf(one))
  const others = cells.filter((cell) => !isLong(cell))
  await Promise.all([...lanes(waiting, waitingAtOnce), ...lanes(others, atOnce)])
  return results
}

function isLong(cell: Cell): boolean {
  return lengthOf(cell) > 30
}

/** Seconds at factor 1. */
function lengthOf({ scenario, expected }: Cell): number {
  return scenario.outage ? scenario.outage.lasts + scenario.outage.backWithin : (expected.seconds ?? 0)
}

async function runCell(cell: Cell, world: World): Promise<{ problems: string[]; seen?: Seen }> {
  if (cell.scenario.outage) return { problems: await outageProblems(cell, cell.scenario.outage, world) }
  const seen = await callFor(cell, world, cell.id)
  const problems = judge(cell, { seen, requests: await world.requestsOf(cell.id) }, world)
  return { problems: [...problems, ...(await afterwards(cell, world)), ...(await leftOpen(cell, world))], seen }
}

/** What no caller waits for any more must not go on at a provider. */
async function leftOpen({ id }: Cell, { requestsOf, slackMs }: World): Promise<string[]> {
  const began = performance.now()
  for (;;) {
    const open = (await requestsOf(id)).filter(({ endedAt }) => endedAt === undefined)
    if (open.length === 0) return []
    if (performance.now() - began > slackMs) return [`${open.length} requests are still open at the provider`]
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** After a fault a healthy call works at once. */
async function afterwards(cell: Cell, world: World): Promise<string[]> {
  const seen = await callFor(cell, world, `${cell.id}-after`, world.healthyOf(cell))
  const problems = wholeProblems(cell, seen)
  if (seen.ms > world.slackMs) problems.push(`it took ${Math.round(seen.ms)} ms`)
  return problems.map((problem) => `the healthy call afterwards: ${problem}`)
}
