import { describe, expect, test } from 'vitest'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Usage } from '../../src/core/usage.ts'
import { priceOf } from '../../src/money/price.ts'

/** The prices of these tests do not depend on when a call comes. */
const at = Date.UTC(2026, 10, 21, 12)

/** Prices in USD per million tokens here, as price lists print them. */
function tier(above: number, million: { [name: string]: number | null }) {
  const prices = Object.entries(million).map(([name, usd]) => [`${name}_price`, usd === null ? null : usd / 1e6])
  return { prompt_tokens_threshold: above, input_price: null, output_price: null, ...Object.fromEntries(prices) }
}

function model(pricing: ModelEntry['pricing'], other?: ModelEntry['other_prices']): ModelEntry {
  return { api: 'chat', ...(pricing && { pricing }), ...(other && { other_prices: other }) }
}

const full = model([tier(0, { input: 3, output: 15, cached: 0.3, caching_5m: 3.75, caching_1h: 6 })])
const gaps = model([tier(0, { input: 2, output: 8, cached: null, caching: null })])
const oneWritePrice = model([tier(0, { input: 2, output: 8, caching: 2.5 })])
const inputOnly = model([tier(0, { input: 0.1, output: null })])
const steps = model([
  tier(272_000, { input: 2.5, output: 15, cached: 0.25 }),
  tier(0, { input: 1.25, output: 10, cached: 0.125 }),
])
const threeSteps = model([tier(0, { input: 1 }), tier(32_000, { input: 2 }), tier(128_000, { input: 3 })])
const small = model([tier(0, { input: 0.0375, output: 0.0375, cached: 0.000041 })])
const thinker = model([tier(0, { input: 1, output: 10 })], { reasoning_token: 3e-6 })
const media = model([tier(0, { input: 0.3, output: 2.5 })], { input_audio_token: 1e-6, output_image_token: 60e-6 })
const searcher = model([tier(0, { input: 1, output: 2 })], { web_search_per_call: 0.01 })
const units = model([], { per_image: 0.04, per_second: 0.0001, per_character: 15e-6 })

const reached: ModelEntry = { ...steps, tier_from: 'at' }
const slices: ModelEntry = { ...threeSteps, tier_billing: 'marginal' }
const slicedCache: ModelEntry = {
  ...model([
    tier(0, { input: 2, cached: 0.2, caching: 2.5, output: 8 }),
    tier(100, { input: 4, cached: 0.4, caching: 5, output: 12 }),
  ]),
  tier_billing: 'marginal',
}
const served: ModelEntry = {
  ...model([tier(0, { input: 2.5, output: 10, cached: 1.25 })], { web_search_per_call: 0.01, per_request: 0.001 }),
  multipliers: { flex: 0.5, priority: 1.7, fast: 5 / 3, us: 1.1 },
}
const asker = model([tier(0, { input: 1, output: 1 })], {
  per_request: 0.005,
  per_request_medium: 0.008,
  per_request_high: 0.012,
  web_search_per_call: 0.025,
  web_search_per_call_low: 0.01,
})
const researcher = model([tier(0, { input: 2, output: 8 })], {
  reasoning_token: 3e-6,
  citation_token: 2e-6,
  web_search_per_call: 0.005,
})
const listener = model([tier(0, { input: 0.3, output: 2.5, cached: 0.03 })], {
  input_audio_token: 1e-6,
  cached_audio_token: 0.1e-6,
})

/** Worked out by hand: nano-USD. */
const table: [fact: string, entry: ModelEntry, usage: Usage, nanoUsd: number][] = [
  ['input and output', full, { input: 1_000, output: 500 }, 3_000_000 + 7_500_000],
  [
    'cache reads and both writes',
    full,
    { input: 10, cache_read: 2_000, cache_write_5m: 100, cache_write_1h: 200, output: 7 },
    30_000 + 600_000 + 375_000 + 1_200_000 + 105_000,
  ],
  ['reasoning without a price of its own costs what output costs', full, { output: 7, reasoning: 3 }, 105_000 + 45_000],
  ['reasoning at its own price', thinker, { output: 100, reasoning: 50 }, 1_000_000 + 150_000],
  ['no discount, no surcharge: input price', gaps, { input: 1, cache_read: 10, cache_write_5m: 100 }, 222_000],
  ['no surcharge for an hour either', gaps, { cache_write_1h: 1_000 }, 2_000_000],
  ['one price for all cache writes', oneWritePrice, { cache_write_5m: 100, cache_write_1h: 1_000 }, 2_750_000],
  ['output that is not billed by token', inputOnly, { input: 100, output: 50 }, 10_000],
  ['a prompt that reaches the threshold is below it', steps, { input: 272_000, output: 100 }, 341_000_000],
  ['one more token lifts the whole request', steps, { input: 272_001, output: 100 }, 681_502_500],
  ['cached tokens count for the tier', steps, { input: 72_001, cache_read: 200_000 }, 180_002_500 + 50_000_000],
  ['cache writes count for the tier', threeSteps, { input: 1, cache_write_5m: 32_000 }, 2 * 32_001_000],
  ['the highest of several tiers that the prompt exceeds', threeSteps, { input: 128_001 }, 384_003_000],
  ['no prompt at all: the first tier', steps, { output: 5 }, 50_000],
  ['half a nano-dollar rounds up', small, { input: 1 }, 38],
  ['three halves too', small, { input: 3 }, 113],
  ['less than half rounds down', small, { cache_read: 12 }, 0],
  ['a little more than half rounds up', small, { cache_read: 13 }, 1],
  ['rounded once, not part by part', small, { input: 1, output: 1 }, 75],
  ['audio in at its own price', media, { input: 10, input_audio: 258, output: 2 }, 3_000 + 258_000 + 5_000],
  ['audio out without a price of its own', media, { output_audio: 4 }, 10_000],
  ['image tokens in without a price of their own', media, { input_image: 258 }, 77_400],
  ['image tokens out at their own price', media, { output_image: 1_290 }, 77_400_000],
  ['searches', searcher, { input: 5, searches: 3 }, 5_000 + 30_000_000],
  ['images', units, { images: 2 }, 80_000_000],
  ['fractions of a second', units, { seconds: 12.5 }, 1_250_000],
  ['characters', units, { characters: 1_000 }, 15_000_000],
  ['a tier that begins at its threshold', reached, { input: 272_000, output: 100 }, 680_000_000 + 1_500_000],
  ['one token less stays below it', reached, { input: 271_999, output: 100 }, 339_998_750 + 1_000_000],
  ['each slice of a prompt at its own tier', slices, { input: 130_000 }, 32_000_000 + 2 * 96_000_000 + 3 * 2_000_000],
  ['a prompt inside the first slice', slices, { input: 32_000 }, 32_000_000],
  [
    'the cached beginning fills the first slice, the answer costs what the reached tier says',
    slicedCache,
    { cache_read: 60, cache_write_5m: 60, input: 10, output: 5 },
    60 * 200 + 40 * 2_500 + 20 * 5_000 + 10 * 4_000 + 5 * 12_000,
  ],
  ['half the price of tokens', served, { input: 11, output: 3, modes: ['flex'] }, 13_750 + 15_000 + 1_000_000],
  [
    'more for tokens, not for fees',
    served,
    { input: 10, cache_read: 2, output: 3, searches: 2, modes: ['priority'] },
    42_500 + 4_250 + 51_000 + 20_000_000 + 1_000_000,
  ],
  ['a tier and a region', served, { input: 100, output: 7, modes: ['priority', 'us'] }, 467_500 + 130_900 + 1_000_000],
  ['no way of serving counts twice', served, { input: 100, modes: ['us', 'us'] }, 275_000 + 1_000_000],
  ['thirds', served, { input: 3, output: 3, modes: ['fast'] }, 12_500 + 50_000 + 1_000_000],
  ['a way of serving that has no price', served, { input: 100, modes: ['provisioned', 'toString'] }, 1_250_000],
  ['a request', asker, { input: 7, output: 1 }, 8_000 + 5_000_000],
  ['a request with a large search', asker, { input: 7, output: 1, modes: ['search_high'] }, 8_000 + 12_000_000],
  ['a search by its size', asker, { searches: 3, modes: ['search_low'] }, 30_000_000 + 5_000_000],
  ['a search of no known size', asker, { searches: 3, modes: ['search_medium'] }, 75_000_000 + 8_000_000],
  [
    'sources, thoughts and searches of a long research',
    researcher,
    { input: 33, output: 7_163, reasoning: 73_997, citations: 20_016, searches: 18 },
    66_000 + 57_304_000 + 221_991_000 + 40_032_000 + 90_000_000,
  ],
  [
    'audio from the cache',
    listener,
    { input: 10, cache_read: 40, cache_read_audio: 20, input_audio: 30 },
    3_000 + 1_200 + 2_000 + 30_000,
  ],
  [
    'searches in files',
    model([tier(0, { input: 1 })], { file_search_per_call: 0.0025 }),
    { input: 1, file_searches: 2 },
    5_001_000,
  ],
  ['nothing used', full, {}, 0],
  ['more tokens than anybody sends', full, { input: 1_000_000_000_001 }, 3_000_000_000_003_000],
]

describe('a usage costs, to the nano-dollar:', () => {
  test.each(table)('%s', (_, entry, usage, nanoUsd) => {
    expect(priceOf(usage, entry, at)).toMatchObject({ nanoUsd })
    expect(priceOf(usage, entry, at).unpriced).toBeUndefined()
  })
})

test('the parts of a cost have fractions and add up to it', () => {
  const { parts, nanoUsd } = priceOf({ input: 1, output: 3, cache_read: 12 }, small, at)
  expect(parts).toEqual({ input: 37.5, output: 112.5, cache_read: 0.492 })
  expect(nanoUsd).toBe(150)
})

test.each([
  ['a model nobody knows', undefined],
  ['a model without prices', model(undefined)],
  ['a model without tiers', model([])],
  ['a model of which only the searches have a price', model([], { web_search_per_call: 0.01 })],
])('%s is unpriced and costs nothing', (_, entry) => {
  expect(priceOf({ input: 100, output: 5, searches: 1 }, entry, at)).toEqual({
    nanoUsd: 0,
    parts: {},
    priceVersion: '',
    unpriced: true,
  })
})

test('the price version distinguishes tiers and prices, and is the same for the same prices', () => {
  const version = (entry: ModelEntry, usage: Usage) => priceOf(usage, entry, at).priceVersion
  expect(version(steps, { input: 1 })).toMatch(/^[0-9a-f]{12}$/)
  expect(version(steps, { input: 1 })).not.toBe(version(steps, { input: 300_000 }))
  expect(version(structuredClone(steps), { input: 1 })).toBe(version(steps, { input: 1 }))
  expect(version(gaps, {})).not.toBe(version(oneWritePrice, {}))
  expect(version(slices, { input: 5 })).not.toBe(version(threeSteps, { input: 5 }))
  expect(version(reached, { input: 5 })).not.toBe(version(steps, { input: 5 }))
})

test('the price version covers how a call was served, and nothing that changes no price', () => {
  const version = (modes: string[], entry = served) => priceOf({ input: 1, modes }, entry, at).priceVersion
  expect(new Set([version([]), version(['flex']), version(['us']), version(['us', 'flex'])]).size).toBe(4)
  expect(version(['us', 'flex'])).toBe(version(['flex', 'us', 'provisioned']))
  expect(version(['flex'])).not.toBe(version(['flex'], { ...served, multipliers: { flex: 0.4 } }))
  expect(version([])).toBe(version([], { ...served, multipliers: { flex: 0.4 } }))
  expect(version(['search_high'], asker)).not.toBe(version([], asker))
})
