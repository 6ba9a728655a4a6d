import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { billedTier, type ModelEntry } from '../../src/core/models/model.ts'
import { commonEntry, entryOfListed, listedModels, listedPolicies } from '../../src/routing/names/listed.ts'
import { directory, scope } from './names.ts'

const number = fc.option(fc.nat(1_000), { nil: undefined })
const flag = fc.option(fc.boolean(), { nil: undefined })
const price = fc.option(fc.nat(100), { nil: undefined })
const tier = fc.record({ input_price: price, cached_price: price, caching_price: price, output_price: price })
const entry = fc
  .record({
    context_window: number,
    max_output_tokens: number,
    supports_vision: flag,
    supports_tool_calling: flag,
    data_retention: flag,
    data_retention_days: number,
    data_used_for_training: flag,
    open_weights: flag,
    geolocation: fc.constantFrom(undefined, 'eu', 'us'),
    tiers: fc.dictionary(fc.constantFrom('0', '100', '200'), tier),
  })
  .map(({ tiers, ...facts }) => {
    const steps = Object.entries({ 0: {}, ...tiers })
    const pricing = steps.map(([threshold, prices]) => ({ prompt_tokens_threshold: Number(threshold), ...prices }))
    const set = Object.entries({ ...facts, pricing }).filter(([, value]) => value !== undefined)
    return { api: 'chat', ...Object.fromEntries(set) } as ModelEntry
  })

/** The prices of a prompt of this size. */
function pricesAt({ pricing = [] }: ModelEntry, tokens: number) {
  const tier = pricing.filter((one) => one.prompt_tokens_threshold <= tokens).at(-1)
  return billedTier(tier ?? { prompt_tokens_threshold: 0 })
}

test('what is said of several models holds for each of them', () => {
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 4 }), (entries) => {
      const common = commonEntry(entries)
      for (const one of entries) {
        for (const name of ['context_window', 'max_output_tokens'] as const) {
          if (one[name] !== undefined) expect(common[name]).toBeLessThanOrEqual(one[name])
        }
        if (one.data_retention_days !== undefined)
          expect(common.data_retention_days).toBeGreaterThanOrEqual(one.data_retention_days)
        for (const name of ['supports_vision', 'supports_tool_calling', 'open_weights'] as const) {
          if (common[name]) expect(one[name]).toBe(true)
        }
        for (const name of ['data_retention', 'data_used_for_training'] as const) {
          if (common[name] === false) expect(one[name]).toBe(false)
        }
        if (common.geolocation !== 'global') expect(one.geolocation).toBe(common.geolocation)
        for (const tokens of [0, 50, 100, 150, 250]) {
          const [ours, theirs] = [pricesAt(common, tokens), pricesAt(one, tokens)]
          for (const name of ['input_price', 'caching_price', 'cached_price', 'output_price'] as const) {
            expect(ours[name]).toBeGreaterThanOrEqual(theirs[name])
          }
        }
      }
    }),
  )
})

test('what one model is said to be stays', () => {
  const one: ModelEntry = { api: 'chat', context_window: 5, supports_vision: true, geolocation: 'eu', model_lab: 'Lab' }
  expect(commonEntry([one, one])).toEqual(one)
})

test('several models have the units, values and limits that they share, at the highest prices', () => {
  const one: ModelEntry = {
    ...{ api: 'image', sizes: ['1k', '2k'], qualities: ['low'], streams: true },
    ...{ other_prices: { per_image: 0.04, per_input_image: 0.001 }, image_prices: { high: 0.2 } },
  }
  const other: ModelEntry = {
    api: 'image',
    sizes: ['1k', '2k'],
    qualities: ['low', 'high'],
    other_prices: { per_image: 0.05 },
  }
  expect(commonEntry([one, other])).toEqual({
    ...{ api: 'image', geolocation: 'global', sizes: ['1k', '2k'], qualities: ['low'] },
    ...{ other_prices: { per_image: 0.05, per_input_image: 0.001 }, image_prices: { high: 0.2 } },
  })
})

test('several models of another kind have the smallest limits', () => {
  const one: ModelEntry = { api: 'speech', max_characters: 4_096, voices: ['a', 'b'], formats: ['mp3'], streams: true }
  const other: ModelEntry = {
    api: 'speech',
    max_characters: 2_000,
    voices: ['b', 'c'],
    formats: ['wav'],
    streams: false,
  }
  const speech = { api: 'speech', geolocation: 'global', max_characters: 2_000, voices: ['b'], streams: false }
  expect(commonEntry([one, other])).toEqual(speech)
  const heard: ModelEntry = { api: 'transcription', granularities_at_once: 2, min_seconds: 1 }
  expect(commonEntry([heard, { ...heard, granularities_at_once: 1, min_seconds: 10 }])).toMatchObject({
    granularities_at_once: 1,
    min_seconds: 10,
  })
  expect(commonEntry([{ api: 'embedding', max_inputs: 96 }, { api: 'embedding' }])).toMatchObject({ max_inputs: 96 })
})

describe('in lists', () => {
  test('a policy has the facts that hold for all its targets, an alias those of what it stands for', async () => {
    const policies = { both: ['one/eu', 'two/keeps'], first: ['one/eu'] }
    const listed = await listedModels(directory(), scope({ policies, aliases: { other: 'both' } }))
    const facts = (id: string) => listed.find((one) => one.id === id)?.entry
    const both = { data_retention: true, data_used_for_training: true, geolocation: 'eu' }
    expect(facts('both')).toMatchObject(both)
    expect(facts('other')).toMatchObject(both)
    expect(facts('first')).toMatchObject({ data_retention: false, data_used_for_training: false, geolocation: 'eu' })
  })

  test('a policy with one target has the facts of that one, and no others', async () => {
    const listed = await listedModels(directory(), scope({ policies: { only: ['two/silent'] } }))
    expect(listed.find(({ id }) => id === 'only')?.entry).toEqual({ api: 'chat', description: 'about only' })
  })

  test('a target that the key may not use does not count', async () => {
    const policies = { both: ['one/eu', 'two/keeps'] }
    const listed = await listedModels(directory(), scope({ policies, rules: { data_retention: false } }))
    expect(listed.find(({ id }) => id === 'both')?.entry).toMatchObject({ data_retention: false })
  })

  test('a managed policy of which no target is configured is not listed: it cannot be called', () => {
    expect(listedPolicies(directory({ far: ['away/m'], near: ['away/m', 'one/eu'] })).map(({ id }) => id)).toEqual([
      'near',
    ])
  })

  test('prices are those of the moment, of each target', () => {
    const tiers = (output_price: number) => [{ prompt_tokens_threshold: 0, input_price: 1, output_price }]
    const steady: ModelEntry = { api: 'chat', pricing: tiers(5) }
    const from = '2026-11-01T00:00:00Z'
    const dearer: ModelEntry = { api: 'chat', pricing: tiers(2), price_changes: [{ from, pricing: tiers(9) }] }
    const targets = [steady, dearer]
    const listed = { id: 'p', entry: { ...commonEntry(targets), description: 'Both' }, targets }
    const at = (moment: string) => entryOfListed(listed, Date.parse(moment))
    expect(at('2026-10-31T00:00:00Z').pricing?.[0]?.output_price).toBe(5)
    expect(at('2026-11-02T00:00:00Z').pricing?.[0]?.output_price).toBe(9)
    expect(at(from).description).toBe('Both')
  })
})
