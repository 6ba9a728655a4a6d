import type { Cell } from './cells.ts'
import { outcomeOf, wholeProblems } from './judge.ts'
import type { Scenario } from './scenarios.ts'
import { callFor, type World } from './world.ts'

/** Calls again and again while the first target is down and until it is back. What was wrong. */
export async function outageProblems(
  cell: Cell,
  { every, lasts, backWithin, mostProbes }: NonNullable<Scenario['outage']>,
  world: World,
): Promise<string[]> {
  const ms = (seconds: number) => seconds * 1_000 * world.time
  const began = Date.now()
  const calls: Promise<Called>[] = []
  for (let number = 0; number * every < lasts + backWithin; number++) {
    await until(began + ms(number * every))
    calls.push(callProblems(cell, world, began + ms(lasts)))
  }
  const called = await Promise.all(calls)
  const problems = [...new Set(called.flatMap((one) => one.problems))]
  if (!called.at(-1)?.isWhole) problems.push(`no answer ${backWithin} s after the return of the first target`)
  const asked = (await world.requestsOf(cell.id)).filter(({ model }) => model === cell.scenario.first)
  const [first] = asked
  if (!first) return [...problems, 'the first target was never asked']
  const upAt = first.at + ms(lasts)
  const probes = asked.filter(({ at }) => at < upAt).length
  // One that is alone is asked by every call.
  const most = mostProbes * (world.judges ?? 1)
  if (cell.targets === 'two' && probes > most)
    problems.push(`${probes} requests for the first target while it was down, not ${most} at most`)
  if (!asked.some(({ at }) => at >= upAt && at <= upAt + ms(backWithin)))
    problems.push(`the first target was not asked within ${backWithin} s of its return`)
  return problems
}

type Called = { problems: string[]; isWhole: boolean }

/** With another target every call is served; alone, calls fail properly while the target is down, and may right after that. */
async function callProblems(cell: Cell, world: World, upAt: number): Promise<Called> {
  const seen = await callFor(cell, world, cell.id)
  if (cell.targets === 'two') return { problems: wholeProblems(cell, seen), isWhole: true }
  if (seen.status === 0) return { problems: seen.wrong, isWhole: false }
  const { of, problems } = outcomeOf(cell, seen)
  const isEarly = of === 'complete' && Date.now() < upAt
  return {
    problems: [...seen.wrong, ...problems, ...(isEarly ? ['an answer of a target that is down'] : [])],
    isWhole: of === 'complete',
  }
}

async function until(at: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - Date.now())))
}
