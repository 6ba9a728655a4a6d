import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ModelEntry, PricingTier } from '../../src/core/models/model.ts'
import { promptTokens, type Usage, type UsageClass, usageClasses } from '../../src/core/usage.ts'
import { priceOf } from '../../src/money/price.ts'
import { highestImagePrice, mostExpensiveImageModes } from '../../src/money/rates.ts'
import { testInRuns } from '../helpers/slow.ts'

/** The prices of these tests do not depend on when a call comes. */
const at = Date.UTC(2026, 10, 21, 12)

/** Whole pico-USD, as price lists print them: at most twelve decimals. */
const pico = fc.integer({ min: 0, max: 200_000_000 })
const price = pico.map((count) => count / 1e12)

const tierPrices = fc.record({
  input_price: price,
  cached_price: fc.option(price),
  caching_price: fc.option(price),
  caching_5m_price: fc.option(price),
  caching_1h_price: fc.option(price),
  output_price: price,
})

const tiers = fc
  .tuple(
    tierPrices,
    fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 400_000 }), tierPrices), {
      selector: ([threshold]) => threshold,
      maxLength: 3,
    }),
  )
  .map(([first, others]): PricingTier[] => [
    { prompt_tokens_threshold: 0, ...first },
    ...others.map(([threshold, prices]) => ({ prompt_tokens_threshold: threshold, ...prices })),
  ])

const entry = fc.record(
  {
    api: fc.constant('chat'),
    pricing: tiers,
    tier_billing: fc.constantFrom('whole' as const, 'marginal' as const),
    tier_from: fc.constantFrom('above' as const, 'at' as const),
    multipliers: fc.constant({ flex: 0.5, priority: 1.75, us: 1.1 }),
    other_prices: fc.record(
      {
        reasoning_token: price,
        input_audio_token: price,
        web_search_per_call: price,
        per_second: price,
        per_megapixel: price,
        per_query: price,
        per_input_image: price,
        per_image: price,
      },
      { requiredKeys: [] },
    ),
    image_prices: fc.dictionary(fc.constantFrom('hd', '1024x1024', 'hd 1024x1024', '2048x2048', 'edit hd'), price),
  },
  { requiredKeys: ['api', 'pricing'] },
)

const tokens = fc.oneof(fc.nat(2_000), fc.nat(500_000))
const usage = fc
  .record(Object.fromEntries(usageClasses.map((name) => [name, tokens])) as Record<UsageClass, typeof tokens>, {
    requiredKeys: [],
  })
  .map((counts): Usage => counts)
const modes = fc.subarray(['flex', 'priority', 'us', 'unheard_of', 'hd', '1024x1024'])

const runs = { numRuns: 1_000 }

testInRuns(
  'the one rounding moves a cost by at most half a nano-dollar from the sum of its parts',
  { fast: 150, slow: 1_000 },
  (numRuns) => {
    const rounding = fc.property(entry, usage, modes, (model, counts, how) => {
      const { nanoUsd, parts } = priceOf({ ...counts, modes: how }, model as ModelEntry, at)
      const sum = Object.values(parts).reduce((total, part) => total + part, 0)
      expect(Number.isInteger(nanoUsd)).toBe(true)
      expect(Math.abs(nanoUsd - sum)).toBeLessThanOrEqual(0.5 + sum * 1e-12)
    })
    fc.assert(rounding, { numRuns })
  },
)

testInRuns('no image costs more than the bound of images of its model', { fast: 150, slow: 1_000 }, (numRuns) => {
  const bounded = fc.property(entry, fc.nat(100), modes, (model, images, how) => {
    const [actual, most] = [how, mostExpensiveImageModes(model as ModelEntry)].map(
      (served) => priceOf({ images, modes: served.filter(isOfImage) }, model as ModelEntry, at).parts.images ?? 0,
    )
    expect(actual).toBeLessThanOrEqual((most as number) * (1 + 1e-12))
    expect(most).toBeCloseTo(images * highestImagePrice(model as ModelEntry) * 1e9, 3)
  })
  fc.assert(bounded, { numRuns })
})

const isOfImage = (mode: string) => /hd|x/.test(mode)

testInRuns('more of anything that does not lift the tier never costs less', { fast: 150, slow: 1_000 }, (numRuns) => {
  const more = fc.property(
    entry,
    usage,
    fc.constantFrom(...usageClasses),
    fc.nat(5_000),
    (model, counts, name, add) => {
      const grown = { ...counts, [name]: (counts[name] ?? 0) + add }
      const [less, most] = [priceOf(counts, model as ModelEntry, at), priceOf(grown, model as ModelEntry, at)]
      fc.pre(less.priceVersion === most.priceVersion)
      // In slices the classes behind one that grows move on to dearer or cheaper tiers.
      fc.pre(model.tier_billing !== 'marginal' || reached(model.pricing, promptTokens(grown), model.tier_from) === 0)
      expect(most.nanoUsd).toBeGreaterThanOrEqual(less.nanoUsd)
    },
  )
  fc.assert(more, { numRuns })
})

testInRuns(
  'slices of a prompt cost the sum of the prices of their tokens at their positions',
  { fast: 150, slow: 1_000 },
  (numRuns) => {
    const small = fc.tuple(fc.nat(30), fc.nat(30), fc.nat(30), fc.nat(30))
    const bounds = fc.uniqueArray(fc.integer({ min: 1, max: 100 }), { maxLength: 3 })
    const sliced = fc.property(
      small,
      bounds,
      fc.array(fc.tuple(pico, pico, pico), { minLength: 4, maxLength: 4 }),
      ([read, written, input, output], thresholds, prices) => {
        const pricing = [0, ...thresholds.toSorted((a, b) => a - b)].map((prompt_tokens_threshold, place) => {
          const [cached, caching, plain] = (prices[place] as [number, number, number]).map((count) => count / 1e12)
          return {
            prompt_tokens_threshold,
            cached_price: cached,
            caching_price: caching,
            input_price: plain,
            output_price: plain,
          }
        }) as PricingTier[]
        const marginal: ModelEntry = { api: 'chat', pricing, tier_billing: 'marginal' }
        let picoUsd = 0
        const laid = [...Array(read).fill('cached'), ...Array(written).fill('caching'), ...Array(input).fill('input')]
        for (const [place, kind] of laid.entries()) {
          const tier = pricing.findLast((one) => one.prompt_tokens_threshold <= place) as PricingTier
          picoUsd += Math.round((tier[`${kind}_price` as 'input_price'] ?? 0) * 1e12)
        }
        picoUsd += output * Math.round((pricing[reached(pricing, laid.length)]?.output_price ?? 0) * 1e12)
        const { nanoUsd } = priceOf({ cache_read: read, cache_write_5m: written, input, output }, marginal, at)
        expect(nanoUsd).toBe(Math.floor((picoUsd + 500) / 1_000))
      },
    )
    fc.assert(sliced, { numRuns })
  },
)

test('a prompt inside the first tier costs the same whole and in slices', () => {
  const same = fc.property(entry, usage, (model, counts) => {
    fc.pre(reached(model.pricing, promptTokens(counts), model.tier_from) === 0)
    const [whole, marginal] = (['whole', 'marginal'] as const).map((tier_billing) =>
      priceOf(counts, { ...model, tier_billing } as ModelEntry, at),
    )
    expect(marginal?.nanoUsd).toBe(whole?.nanoUsd)
  })
  fc.assert(same, runs)
})

test('a multiplier multiplies the tokens before the rounding, in any order, and leaves fees alone', () => {
  const multiplied = fc.property(tiers, fc.nat(100_000), fc.nat(10_000), price, (pricing, input, output, fee) => {
    const model = {
      api: 'chat',
      pricing,
      multipliers: { twice: 2, tenth: 0.1 },
      other_prices: { web_search_per_call: fee },
    }
    const counts = { input, output, searches: 3 }
    const { parts } = priceOf(counts, model, at)
    const half = priceOf({ ...counts, modes: ['twice', 'tenth'] }, model, at)
    const other = priceOf({ ...counts, modes: ['tenth', 'twice'] }, model, at)
    expect(other).toEqual(half)
    expect(half.parts.searches ?? 0).toBeCloseTo(parts.searches ?? 0, 3)
    expect(half.parts.input ?? 0).toBeCloseTo((parts.input ?? 0) * 0.2, 3)
    const tokenPico = Math.round(((parts.input ?? 0) + (parts.output ?? 0)) * 1_000)
    const feePico = 3 * Math.round(fee * 1e12)
    expect(half.nanoUsd).toBe(Math.floor((tokenPico * 2 + feePico * 10 + 5_000) / 10_000))
  })
  fc.assert(multiplied, runs)
})

function reached(pricing: PricingTier[], prompt: number, from: ModelEntry['tier_from'] = 'above'): number {
  const ascending = pricing.toSorted((one, other) => one.prompt_tokens_threshold - other.prompt_tokens_threshold)
  const above = (threshold: number) => (from === 'at' ? threshold <= prompt : threshold < prompt)
  return Math.max(
    ascending.findLastIndex((tier) => above(tier.prompt_tokens_threshold)),
    0,
  )
}

test('small sums and large ones, which are added up in different ways, are the same sums', () => {
  const huge = 9e9
  const same = fc.property(entry, fc.constantFrom(...usageClasses), usage, (model, name, counts) => {
    // A multiplier of 1 is the way of large sums.
    const multiplied = { ...model, tier_billing: 'whole' as const, multipliers: { plain: 1 } }
    for (const used of [counts, { ...counts, [name]: huge }]) {
      const one = priceOf(used, multiplied, at)
      const other = priceOf({ ...used, modes: ['plain'] }, multiplied, at)
      expect(one.nanoUsd).toBe(other.nanoUsd)
      expect(Object.keys(one.parts).sort()).toEqual(Object.keys(other.parts).sort())
    }
  })
  fc.assert(same, runs)
})
