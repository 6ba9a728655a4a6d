import { calcPrice } from '@pydantic/genai-prices'
import { describe, expect, test } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { priceOf } from '../../src/money/price.ts'
import { recount } from '../../src/money/recount.ts'
import { plainRecord } from '../store/plain-record.ts'
import { shippedEntry } from './catalog.ts'
import { maxCost } from './max-cost.ts'

const change = Date.UTC(2026, 11, 1)
const before = change - 1

const tier = (prompt_tokens_threshold: number, input_price: number, output_price: number) => ({
  prompt_tokens_threshold,
  input_price,
  output_price,
})

const model: ModelEntry = {
  api: 'chat',
  max_output_tokens: 1_000,
  pricing: [tier(0, 1e-6, 2e-6), tier(100, 3e-6, 5e-6)],
  multipliers: { flex: 0.5, priority: 2 },
  other_prices: { web_search_per_call: 0.01 },
  price_changes: [
    {
      from: '2026-12-01T00:00:00Z',
      pricing: [tier(0, 10e-6, 20e-6), tier(200, 30e-6, 50e-6)],
      multipliers: { flex: 0.25, priority: 2 },
    },
  ],
}

describe('a call is billed at the prices of its time', () => {
  test.each([
    ['the lower tier', { input: 100, output: 10 }, 100_000 + 20_000, 1_000_000 + 200_000],
    ['the upper tier, which begins elsewhere', { input: 201, output: 10 }, 603_000 + 50_000, 6_030_000 + 500_000],
    ['a prompt between the two thresholds', { input: 150 }, 450_000, 1_500_000],
    ['a multiplier that changed', { input: 100, modes: ['flex'] }, 50_000, 250_000],
    ['one that did not', { input: 100, modes: ['priority'] }, 200_000, 2_000_000],
    ['a fee that did not', { searches: 1 }, 10_000_000, 10_000_000],
  ])('to the millisecond: %s', (_, usage, early, late) => {
    expect(priceOf(usage, model, before).nanoUsd).toBe(early)
    expect(priceOf(usage, model, change).nanoUsd).toBe(late)
  })

  test('and names them: the version is that of a model which always had these prices', () => {
    const { price_changes, ...plain } = model
    const usage = { input: 100 }
    const version = (entry: ModelEntry, at: number) => priceOf(usage, entry, at).priceVersion
    expect(version(model, before)).toBe(version(plain, change))
    expect(version(model, change)).toBe(version({ ...plain, ...price_changes?.[0] }, before))
    expect(version(model, before)).not.toBe(version(model, change))
  })
})

describe('a reservation', () => {
  const request = {
    model: 'acme/m',
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
    max_output_tokens: 500,
    origin: { api: 'chat', body: {} },
  } as NeutralRequest
  const held = (at: number) => maxCost(request, [{ entry: model }], { defaultOutputTokens: 1_000, at })

  test('one second before midnight is made at the prices at which the call is then paid', () => {
    const at = Date.parse('2026-11-30T23:59:59Z')
    const { nanoUsd, promptTokens } = held(at)
    expect(nanoUsd).toBe(BigInt(priceOf({ input: promptTokens, output: 500 }, model, at).nanoUsd))
  })

  test('at midnight is made at the new ones', () => {
    const { nanoUsd, promptTokens } = held(change)
    expect(nanoUsd).toBe(BigInt(priceOf({ input: promptTokens, output: 500 }, model, change).nanoUsd))
    expect(nanoUsd).toBeGreaterThan(held(change - 1).nanoUsd)
  })
})

describe('a recount', () => {
  const usage = { input: 7, output: 11 }
  const call = (at: number, entry = model): CallRecord =>
    plainRecord({ provider: 'acme', model: 'm', at, usage, cost: priceOf(usage, entry, at) })

  test('takes each call at the prices of its own moment, whenever it is done', async () => {
    const calls = [before, change, change - 86_400_000, change + 86_400_000].map((at) => call(at))
    const found = await recount(calls, () => model)
    expect([found.agreeing, found.wrong.calls, found.repriced.size]).toEqual([4, 0, 0])
  })

  test('agrees with calls that were settled before the change was known', async () => {
    const { price_changes, ...unaware } = model
    const found = await recount([call(before, unaware), call(change, unaware)], () => model)
    expect(found.agreeing).toBe(1)
    expect(found.repriced.get('acme/m')).toEqual({ calls: 1, ledger: 29_000n, today: 290_000n })
  })

  test('adds up what providers reported, by model', async () => {
    const reported = (dollars: number, model: string) => ({
      ...call(before),
      model,
      usage: { ...usage, reported_cost: dollars },
    })
    const found = await recount(
      [reported(0.5, 'm'), reported(0.25, 'm'), reported(1, 'other'), call(before)],
      () => model,
    )
    expect([...found.reported]).toEqual([
      ['acme/m', { calls: 2, ledger: 58_000n, provider: 750_000_000n }],
      ['acme/other', { calls: 1, ledger: 29_000n, provider: 1_000_000_000n }],
    ])
  })

  test('counts calls and attempts that cost nothing apart', async () => {
    const cost = { nanoUsd: 0, parts: {}, priceVersion: '' }
    const free = plainRecord({ cost })
    const attempt = plainRecord({ attemptOf: 'r', cost })
    const found = await recount([free, free, attempt, call(before)], () => model)
    expect([found.calls, found.attempts, found.unbilled, found.agreeing]).toEqual([3, 1, 2, 1])
  })
})

describe('the shipped models', () => {
  const friday = Date.UTC(2026, 10, 20)
  const hour = 3_600_000
  const usage = { input: 1_000, cache_read: 1_000, output: 1_000 }
  const nano = (name: string, at: number) => priceOf(usage, shippedEntry(name), at).nanoUsd

  test.each([
    ['google/gemini-4-argon', '2026-12-01', 12_100_000],
    ['google/gemini-4-carbon', '2026-12-01', 12_100_000],
    ['google/gemini-3.6-flash', '2027-01-01', 4_575_000],
    ['google/gemini-3.7-flash', '2027-01-01', 4_575_000],
    ['google/gemini-3.8-flash', '2027-01-01', 4_575_000],
    ['google/gemini-flash-latest', '2027-01-01', 4_575_000],
    ['vertex/gemini-3.6-flash', '2027-01-01', 4_575_000],
    ['vertex/gemini-3.7-flash', '2027-01-01', 4_575_000],
    ['vertex/gemini-3.8-flash', '2027-01-01', 4_575_000],
  ])('%s doubles on %s', (name, day, now) => {
    const at = Date.parse(day)
    expect([nano(name, at - 1), nano(name, at)]).toEqual([now, now * 2])
  })

  test.each([
    ['deepseek/deepseek-flash', 753_000],
    ['deepseek/deepseek-chat', 753_000],
    ['deepseek/deepseek-v4-pro', 2_662_000],
  ])('%s doubles at the hours in which Beijing works', (name, quiet) => {
    const peaks = (day: number) =>
      Array.from({ length: 24 }, (_, index) => index).filter((at) => nano(name, day + at * hour) === quiet * 2)
    expect(nano(name, friday)).toBe(quiet)
    for (const day of [-4, -3, -2, -1, 0, 3]) expect(peaks(friday + day * 24 * hour)).toEqual([1, 2, 3, 6, 7, 8, 9])
    for (const day of [1, 2]) expect(peaks(friday + day * 24 * hour)).toEqual([])
  })

  // That list knows no weekends, and no model of DeepSeek's but this one at today's prices.
  test('deepseek-v4-pro costs the same by a second price list, at every half hour of a working day', () => {
    const theirs = { input_tokens: 2_000, cache_read_tokens: 1_000, output_tokens: 1_000 }
    for (let at = friday; at < friday + 24 * hour; at += hour / 2) {
      const other = calcPrice(theirs, 'deepseek-v4-pro', { providerId: 'deepseek', timestamp: new Date(at) })
      const name = new Date(at).toISOString()
      expect(nano('deepseek/deepseek-v4-pro', at), name).toBe(Math.round((other?.total_price ?? 0) * 1e9))
    }
  })
})
