import fc from 'fast-check'
import { expect } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { defaultHealth } from '../../src/core/routing/rules.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { Health } from '../../src/routing/health/health.ts'
import { testInRuns } from '../helpers/slow.ts'

const target = {
  provider: { slug: 'first', baseUrl: 'http://first.example', auth: { scheme: 'none' } } as unknown as Provider,
  model: 'm',
}
const broken = new RouterError('provider_unreachable', 'No connection.', { provider: 'first' })

/** Calls with another target, one every four seconds, while this one is down for a minute. Seconds. */
function outage(random: () => number, offset: number): { backAfter: number; asked: number } {
  let now = 0
  const health = new Health({ settings: () => defaultHealth, now: () => now * 1_000, random })
  let asked = 0
  for (now = offset; now < 200; now += 4) {
    // A call asks a target again once after a failure of its connection.
    for (let attempt = 0; attempt < 2 && health.isOpen(target, true); attempt++) {
      const passage = health.enter(target)
      if (!passage) break
      if (now >= 60) return { backAfter: now - 60, asked }
      asked++
      passage.failed(broken)
      passage.ended()
    }
  }
  return { backAfter: Number.POSITIVE_INFINITY, asked }
}

testInRuns(
  'a target that was down for a minute is asked a few times meanwhile, and again within half a minute of its return',
  { fast: 300, slow: 2_000 },
  (numRuns) => {
    const draws = fc.array(fc.constantFrom(0, 0.25, 0.5, 0.75, 0.999), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(draws, fc.double({ min: 0, max: 4, noNaN: true }), (drawn, offset) => {
        let place = 0
        const { backAfter, asked } = outage(() => drawn[place++ % drawn.length] ?? 0, offset)
        expect(backAfter).toBeLessThanOrEqual(30)
        expect(asked).toBeLessThanOrEqual(12)
      }),
      {
        numRuns,
        examples: [
          [[0.999], 0],
          [[0], 0],
          [[0.5], 3],
        ],
      },
    )
  },
)
