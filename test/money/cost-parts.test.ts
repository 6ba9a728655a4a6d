import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Usage } from '../../src/core/usage.ts'
import { chargeOf } from '../../src/money/charge.ts'
import { costParts } from '../../src/money/cost-parts.ts'
import { usdOfPico } from '../../src/money/usd.ts'

const at = Date.UTC(2026, 10, 21, 12)
/** Whole pico-USD, as price lists print them. */
const price = fc.integer({ min: 0, max: 200_000_000 }).map((pico) => pico / 1e12)
const tier = fc.record({ input_price: price, cached_price: price, output_price: price })

const entries = fc.record({
  api: fc.constant('chat'),
  pricing: fc.tuple(tier, tier).map(([low, high]) => [
    { prompt_tokens_threshold: 0, ...low },
    { prompt_tokens_threshold: 200_000, ...high },
  ]),
  tier_billing: fc.constantFrom('whole' as const, 'marginal' as const),
  multipliers: fc.constant({ flex: 0.5, fast: 5 / 3, us: 1.1 }),
  other_prices: fc.record({
    per_request: price,
    per_second: price,
    web_search_per_call: price,
    reasoning_token: price,
  }),
})
const count = fc.integer({ min: 0, max: 400_000 })
const usages = fc.record(
  {
    input: count,
    cache_read: count,
    output: count,
    reasoning: count,
    searches: fc.nat(20),
    seconds: fc.double({ min: 0, max: 10_000, noNaN: true }),
    modes: fc.subarray(['flex', 'fast', 'us']),
    reported_cost: fc.double({ min: 0, max: 50, noNaN: true }),
  },
  { requiredKeys: [] },
)

/** A JSON number of USD in pico-USD, by its digits. */
function digits(usd: number): bigint {
  const [whole = '', fraction = ''] = usd.toFixed(12).split('.')
  expect(Number(`${whole}.${fraction}`)).toBe(usd)
  return BigInt(whole + fraction)
}

describe('the parts of a cost', () => {
  test('add up to it exactly, also as JSON numbers', () => {
    fc.assert(
      fc.property(entries, usages, fc.boolean(), (entry, usage, byReport) => {
        const cost = chargeOf(usage as Usage, { entry: entry as ModelEntry, byReport }, at)
        const parts = costParts({ usage: usage as Usage, cost })
        const sum = parts.reduce((total, { picoUsd }) => total + digits(usdOfPico(picoUsd)), 0n)
        expect(sum).toBe(BigInt(cost.nanoUsd) * 1_000n)
      }),
      { numRuns: 500 },
    )
  })

  test('have the prices of their tier, times the multipliers of how the call was served', () => {
    const entry: ModelEntry = {
      api: 'chat',
      pricing: [{ prompt_tokens_threshold: 0, input_price: 2.5e-6, output_price: 0.15e-6 }],
      multipliers: { flex: 0.5 },
      other_prices: { web_search_per_call: 0.01, per_request: 0.002 },
    }
    const partsOf = (usage: Usage) =>
      costParts({ usage, cost: chargeOf(usage, { entry, byReport: true }, at) }).map(({ picoUsd, ...part }) => ({
        ...part,
        cost: usdOfPico(picoUsd),
      }))
    expect(partsOf({ input: 7, output: 3, searches: 2 })).toEqual([
      { class: 'request', units: 1, price: 0.002, per: 1, cost: 0.002 },
      { class: 'input', units: 7, price: 2.5, per: 1_000_000, cost: 0.0000175 },
      { class: 'output', units: 3, price: 0.15, per: 1_000_000, cost: 0.00000045 },
      { class: 'searches', units: 2, price: 0.01, per: 1, cost: 0.02 },
    ])
    expect(partsOf({ input: 7, output: 3, modes: ['flex'], reported_cost: 1 })).toEqual([
      { class: 'input', units: 7, price: 1.25, per: 1_000_000, cost: 0.00000875 },
      { class: 'output', units: 3, price: 0.075, per: 1_000_000, cost: 0.000000225 },
      { class: 'request', units: 1, price: 0.002, per: 1, cost: 0.002 },
      { class: 'reported', cost: 0.997991025 },
    ])
    expect(partsOf({ output: 1, reported_cost: 0 })).toContainEqual({
      class: 'output',
      units: 1,
      price: 0.15,
      per: 1e6,
      cost: 1.5e-7,
    })
  })

  test('have the rounding as a part of its own', () => {
    const entry: ModelEntry = {
      api: 'chat',
      pricing: [{ prompt_tokens_threshold: 0, input_price: 0.0375e-6, output_price: 0 }],
    }
    const usage = { input: 1 }
    expect(costParts({ usage, cost: chargeOf(usage, { entry, byReport: false }, at) })).toEqual([
      { class: 'input', units: 1, price: 0.0375, per: 1_000_000, picoUsd: 37_500n },
      { class: 'rounding', picoUsd: 500n },
    ])
  })
})
