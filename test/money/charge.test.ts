import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import type { ModelEntry } from '../../src/core/model.ts'
import { chargeOf } from '../../src/money/charge.ts'
import { priceOf } from '../../src/money/price.ts'
import { recount } from '../../src/money/recount.ts'

const entryAt = (price: number): ModelEntry => ({
  api: 'chat',
  pricing: [{ prompt_tokens_threshold: 0, input_price: price, output_price: price }],
})
const entries: { [model: string]: ModelEntry } = { a: entryAt(1e-6), b: entryAt(3e-6), none: { api: 'chat' } }

const calls = fc.record({
  model: fc.constantFrom('a', 'b', 'none'),
  served: fc.constantFrom('a', 'b', 'none', 'unheard-of', undefined),
  byReport: fc.boolean(),
  usage: fc.record(
    { input: fc.nat(1_000), output: fc.nat(1_000), reported_cost: fc.double({ min: 0, max: 10, noNaN: true }) },
    { requiredKeys: ['input', 'output'] },
  ),
})

test('a charge is at least each price that is known of it, its parts add up, and a recount finds the same', () => {
  fc.assert(
    fc.property(calls, ({ model, served, byReport, usage }) => {
      const entry = entries[model]
      const cost = chargeOf(usage, { entry, served: entries[served ?? ''], byReport }, 0)
      const reported = byReport ? Math.round((usage.reported_cost ?? 0) * 1e9) : 0
      const prices = [model, served].map((name) => priceOf(usage, entries[name ?? ''], 0).nanoUsd)
      expect(cost.nanoUsd).toBe(Math.max(...prices, reported))
      const sum = Object.values(cost.parts).reduce((total, part) => total + part, 0)
      expect(Math.abs(sum - cost.nanoUsd)).toBeLessThanOrEqual(0.5 + 1e-3)
      const row = { provider: 'p', model, usage, cost, at: 0, ...(served && { served }) } as CallRecord
      const found = recount(
        [row],
        (_, name) => entries[name],
        () => byReport,
      )
      expect([found.wrong.calls, found.repriced.size]).toEqual([0, 0])
    }),
  )
})
