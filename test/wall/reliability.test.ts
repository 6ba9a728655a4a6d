import { describe, expect, test } from 'vitest'
import { slow } from '../helpers/slow.ts'
import { limit } from '../helpers/time.ts'
import { type Fault, faults } from './reliability/provider.ts'
import { sdks } from './reliability/sdk.ts'
import { type Cell, cells, measure, nameOf, outage, playRouted } from './reliability/table.ts'

// In virtual time, with the router's own routing and the retries of the official SDKs.

/** Points by which a call through the router may succeed less often than a direct one. */
const tolerance = 0.5

/** What is wrong with a cell. */
async function shortfall(cell: Cell, calls: number): Promise<string[]> {
  const { direct, one, two } = await measure(cell, calls)
  const points = (share: number) => Math.round(share * 10_000) / 100
  return Object.entries({ one, two }).flatMap(([targets, share]) =>
    points(direct) - points(share) <= tolerance
      ? []
      : [`${nameOf(cell)}: ${points(share)} % with ${targets}, ${points(direct)} % directly`],
  )
}

describe.each(faults)('%s: a call through the router succeeds as often as a direct one', (fault) => {
  const own = cells.filter((cell) => cell.fault === fault)

  test('in 200 calls of the SDK of OpenAI, where half of the attempts fail', async () => {
    const problems = []
    const some = own.filter(({ rate, sdk }) => rate === 0.5 && sdk === 'openai')
    for (const cell of some) problems.push(...(await shortfall(cell, 200)))
    expect(problems).toEqual([])
  })

  test('in 2,000 calls of each cell', { ...slow, timeout: limit(600_000) }, async () => {
    const problems = []
    for (const cell of own) problems.push(...(await shortfall(cell, 2_000)))
    expect(problems).toEqual([])
  })
})

describe('while the provider is down for 20 s', () => {
  const down: readonly Fault[] = ['500', '503', '529', 'reset']
  const all = down.flatMap((fault) => sdks.map((sdk) => [fault, sdk] as const))

  test.each(all)(
    '%s: 20 clients of %s send a fifth of what they would send it directly, at most',
    async (fault, sdk) => {
      for (const seed of [1, 2, 3]) {
        const { asked: most } = await outage({ fault, clients: 20, sdk, targets: 0, seed })
        expect(most).toBeGreaterThan(300)
        for (const targets of [1, 2] as const) {
          const { asked } = await outage({ fault, clients: 20, sdk, targets, seed })
          expect(asked / most).toBeLessThanOrEqual(0.2)
          // It is still asked, or nobody would know when it is well.
          expect(asked).toBeGreaterThan(20)
        }
      }
    },
  )

  test.each(all)('%s: each try of a single client of %s reaches it', async (fault, sdk) => {
    for (let seed = 1; seed <= 5; seed++) {
      const { asked, tries } = await outage({ fault, clients: 1, sdk, targets: 1, seed })
      expect(tries).toBeGreaterThan(9)
      expect(asked).toBeGreaterThanOrEqual(tries)
    }
  })
})

describe('what a call costs', () => {
  const paid = cells.filter(({ fault, mode, rate }) => fault === 'cut' && mode === 'whole' && rate === 0.5)

  test.each(paid.map((cell) => [nameOf(cell), cell] as const))('%s', async (_, cell) => {
    for (const targets of [1, 2] as const) {
      const { paid, attempts, rows } = await playRouted(cell, { seed: 1, targets })
      // An SDK makes three tries: in each of them no target is paid twice.
      expect(Math.max(...paid.values())).toBeGreaterThan(1)
      expect(Math.max(...paid.values())).toBeLessThanOrEqual(3 * targets)
      expect(Math.max(...attempts.values())).toBeLessThanOrEqual(3 * 6)
      for (const [call, count] of paid) expect(rows.get(call)).toBe(count)
    }
  })

  test('an attempt that was not billed is made at most six times for each try, and each failed one is a row', async () => {
    const cell: Cell = { fault: '503', rate: 0.5, mode: 'whole', clients: 1, sdk: 'openai' }
    const { attempts, rows } = await playRouted(cell, { seed: 1, targets: 2 })
    expect(Math.max(...attempts.values())).toBeLessThanOrEqual(3 * 6)
    expect([...rows.values()].reduce((sum, one) => sum + one, 0)).toBeGreaterThan(50)
  })
})
