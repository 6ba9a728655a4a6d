import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import { chargeOf, maxReportedUsd } from '../../src/money/charge.ts'
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

test('a charge is at least each price that is known of it, its parts add up, and a recount finds the same', async () => {
  await fc.assert(
    fc.asyncProperty(calls, async ({ model, served, byReport, usage }) => {
      const entry = entries[model]
      const cost = chargeOf(usage, { entry, served: entries[served ?? ''], byReport }, 0)
      const reported = byReport ? Math.round((usage.reported_cost ?? 0) * 1e9) : 0
      const prices = [model, served].map((name) => priceOf(usage, entries[name ?? ''], 0).nanoUsd)
      expect(cost.nanoUsd).toBe(Math.max(...prices, reported))
      const sum = Object.values(cost.parts).reduce((total, part) => total + part, 0)
      expect(Math.abs(sum - cost.nanoUsd)).toBeLessThanOrEqual(0.5 + 1e-3)
      const row = { provider: 'p', model, usage, cost, at: 0, ...(served && { served }) } as CallRecord
      const found = await recount(
        [row],
        (_, name) => entries[name],
        () => byReport,
      )
      expect([found.wrong.calls, found.repriced.size]).toEqual([0, 0])
    }),
  )
})

const free = entryAt(0)
const unpriced = { nanoUsd: 0, parts: {}, priceVersion: '', unpriced: true }

test.each<[fact: string, asked: ModelEntry | undefined, served: ModelEntry | undefined, cost: object]>([
  ['the one asked for, where it costs more', entryAt(3e-6), entryAt(1e-6), { nanoUsd: 30_000 }],
  ['the one that served, where it costs more', entryAt(1e-6), entryAt(3e-6), { nanoUsd: 30_000 }],
  ['the one asked for, where no other is known', entryAt(1e-6), undefined, { nanoUsd: 10_000 }],
  ['the one asked for, where the other has no price', entryAt(1e-6), { api: 'chat' }, { nanoUsd: 10_000 }],
  ['the one that served, where only it has a price', { api: 'chat' }, entryAt(3e-6), { nanoUsd: 30_000 }],
  ['the one asked for, where the other is free', entryAt(1e-6), free, { nanoUsd: 10_000 }],
])('of two models the price is that of %s', (_, entry, served, cost) => {
  const charged = chargeOf({ input: 4, output: 6 }, { entry, served, byReport: false }, 0)
  expect(charged).toMatchObject(cost)
  expect(charged.unpriced).toBeUndefined()
})

test('a call that only free models can have served is not unpriced, and one of models without a price is', () => {
  const usage = { input: 4, output: 6 }
  expect(chargeOf(usage, { entry: { api: 'chat' }, served: free, byReport: false }, 0)).not.toHaveProperty('unpriced')
  expect(chargeOf(usage, { entry: undefined, byReport: false }, 0)).toEqual(unpriced)
  expect(chargeOf(usage, { entry: { api: 'chat' }, served: { api: 'chat' }, byReport: false }, 0)).toEqual(unpriced)
})

test.each([
  [
    'above the prices, where the provider charges by it',
    true,
    0.00005,
    { nanoUsd: 50_000, parts: { reported: 40_000 } },
  ],
  ['below the prices', true, 0.000001, { nanoUsd: 10_000, parts: { input: 4_000, output: 6_000 } }],
  [
    'of a provider that does not charge by it',
    false,
    0.00005,
    { nanoUsd: 10_000, parts: { input: 4_000, output: 6_000 } },
  ],
])('a reported figure %s', (_, byReport, reported, cost) => {
  const usage = { input: 4, output: 6, reported_cost: reported }
  expect(chargeOf(usage, { entry: entryAt(1e-6), byReport }, 0)).toMatchObject(cost)
})

test('a reported figure is charged where there is no price, and a call without one stays unpriced', () => {
  const usage = { input: 4, output: 6 }
  const reported = chargeOf({ ...usage, reported_cost: 0.00005 }, { entry: undefined, byReport: true }, 0)
  expect(reported).toMatchObject({ nanoUsd: 50_000, parts: { reported: 50_000 } })
  expect(reported.unpriced).toBeUndefined()
  expect(chargeOf({ ...usage, reported_cost: 0 }, { entry: undefined, byReport: true }, 0)).toEqual(unpriced)
})

test.each([
  ['a dollar for a small call', 0.01, 1],
  ['a dollar for a call of a tenth', 0.1, 1],
  ['ten times as much as the prices lead to', 5, 50],
  ['ten times as much, up to 100 dollars', 50, 100],
  ['no more than the prices lead to, where that is more than 100 dollars', 250, 250],
  ['100 dollars where there are no prices', 0, 100],
])('the highest figure that is believed: %s', (_, mostUsd, believed) => {
  expect(maxReportedUsd(BigInt(Math.round(mostUsd * 1e9)))).toBeCloseTo(believed, 9)
})
