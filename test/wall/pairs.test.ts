import { expect, test } from 'vitest'
import { slow } from '../helpers/slow.ts'
import { problemsAtRouter } from './at-router.ts'
import { type Cell, cellsOf } from './cells.ts'
import { classic, type OnCut, others, type Scenario } from './scenarios.ts'

/** All that targets do, but for what takes long. */
const models = [...new Set([...classic, ...others].flatMap(({ first, second = 'ok' }) => [first, second]))].filter(
  (name) => !/^(silent-120s|pings|down-for|first-token)/.test(name),
)

/** Pairs of what targets do, each under other conditions. */
function cells(count: number, seed: number): Cell[] {
  let state = seed
  const draw = <Value>(of: readonly Value[]): Value => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return of[Math.floor((state / 2 ** 31) * of.length)] as Value
  }
  const any = {
    answer: ['complete', 'damaged', 'error'],
    first: [0, 6],
    second: [0, 6],
    seconds: 150,
    parts: true,
  } as const
  return Array.from({ length: count }, (_, n) => {
    const [first, second] = [draw(models), draw(models)]
    const scenario: Scenario = {
      name: `pair-${n}`,
      about: `${first}, then ${second}`,
      first,
      second,
      two: any,
      one: any,
    }
    const onCut = draw<OnCut | undefined>([undefined, 'hold', 'continue', 'restart'])
    const made = cellsOf([scenario], { turn: draw([0, 1, 2] as const), ...(onCut && { onCut }) })
    return draw(made.filter(({ targets, mode }) => targets === 'two' && (mode === 'streamed' || draw([0, 1, 2]) === 0)))
  })
}

/** More of them, or others: WALL_PAIRS=1000 WALL_SEED=2. */
const some = cells(Number(process.env.WALL_PAIRS ?? 60), Number(process.env.WALL_SEED ?? 1))

test(
  'whatever two targets do, the answer is whole or a clean error, it has one end, and it is paid',
  slow,
  async () => {
    const found = await problemsAtRouter(some, { atOnce: 4, waitingAtOnce: 8 })
    const wrong = found.filter(([, problems]) => problems.length > 0)
    expect(wrong.map(([{ id, scenario }, problems]) => [`${id}: ${scenario.about}`, ...problems])).toEqual([])
  },
)
