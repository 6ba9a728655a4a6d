import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type CatalogFile, readList } from '../src/catalog/read-list.ts'
import { isRetired, type ModelEntry, type PricingTier } from '../src/core/models/model.ts'
import { checkSchema } from '../src/manifest/check/schema.ts'
import { readSource } from '../src/manifest/read/source.ts'
import { tariffOf } from '../src/money/rates.ts'
import { limit, processorTime } from './helpers/time.ts'

const root = join(import.meta.dirname, '..')
const sources = readdirSync(join(root, 'catalog'))
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => readSource(`catalog/${name}`, readFileSync(join(root, 'catalog', name), 'utf8')))

type File = { provider: string; defaults?: Partial<ModelEntry>; models: { [id: string]: Partial<ModelEntry> } }

/** All entries of a file, as they are used, but of models that are shut down: nothing else is said of them. */
function entriesOf(value: unknown): { id: string; entry: ModelEntry }[] {
  const all = Object.entries(readList(value as CatalogFile).models).map(([id, entry]) => ({ id, entry }))
  return all.filter(({ entry }) => !isRetired(entry, Date.now()))
}

/** The facts that every entry has, whatever its model does. */
const statedOfAll: readonly string[] = [
  'description',
  'modalities',
  'data_retention',
  'data_retention_days',
  'data_used_for_training',
  'privacy_comments',
  'geolocation',
  'model_canonical_name',
]

/** What models of other APIs than chat cannot be without. */
const statedByApi: { readonly [api: string]: readonly (keyof ModelEntry)[] } = {
  completion: ['context_window', 'max_output_tokens', 'pricing'],
  embedding: ['dimensions'],
  image: ['supports_image_generation'],
  decision: ['pricing', 'context_window'],
}

/** The facts that lists of chat models show, and every entry of theirs has. */
const stated = [
  'created',
  'max_output_tokens',
  'context_window',
  'description',
  'modalities',
  'data_retention',
  'data_retention_days',
  'data_used_for_training',
  'privacy_comments',
  'geolocation',
  'open_weights',
  'model_lab',
  'model_canonical_name',
] as const

/** A token of any model costs less than this. USD. */
const dearest = 0.001

describe.each(sources)('$file', (source) => {
  const { provider } = source.value as File
  const all = entriesOf(source.value)
  const entries = all.filter(({ entry }) => entry.api === 'chat')
  const others = all.filter(({ entry }) => entry.api !== 'chat')

  test('is valid for its schema, of a provider that has a manifest', () => {
    expect(source.problems).toEqual([])
    expect(checkSchema(source, 'catalog')).toEqual([])
    expect(provider).toBe(basename(source.file, '.yaml'))
    expect(readdirSync(join(root, 'providers'))).toContain(`${provider}.yaml`)
  })

  test('is the same for the fast reader and the full parser', () => {
    expect(source.value).toEqual(parse(source.text))
  })

  test('names every model once, aliases included', () => {
    const names = all.flatMap(({ id, entry }) => [id, ...(entry.aliases ?? [])])
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })

  test('has facts and prices that can be', () => {
    for (const { id, entry } of all) {
      expect(entry.model_canonical_name, id).toMatch(/\w/)
      if (entry.created !== undefined) expect(new Date(entry.created * 1_000).getFullYear(), id).toBeGreaterThan(2020)
    }
    for (const { id, entry } of entries) {
      expectPrices(id, entry.pricing)
      for (const { pricing } of entry.price_changes ?? []) if (pricing) expectPrices(id, pricing)
    }
    expect(readList(source.value as CatalogFile).findings).toEqual([])
  })

  test('has the facts and prices of models of other APIs than chat', () => {
    const missing = others.flatMap(({ id, entry }) =>
      [...statedOfAll, ...(statedByApi[entry.api] ?? [])].flatMap((name) =>
        name in entry ? [] : [`${provider}/${id} ${name}`],
      ),
    )
    expect(missing).toEqual(missingOfOthers(provider))
    const unpriced = others.flatMap(({ id, entry }) => (tariffOf(entry) ? [] : [`${provider}/${id}`]))
    expect(unpriced).toEqual(withoutPrice.filter((name) => name.startsWith(`${provider}/`)))
    for (const { id, entry } of others) expectUnits(id, entry, freeOfCharge.has(provider))
  })

  test('has limits that can be, and tiers that a prompt can reach', () => {
    for (const { id, entry } of entries) {
      const { context_window = Number.POSITIVE_INFINITY, max_output_tokens = 0, pricing = [] } = entry
      expect(max_output_tokens, id).toBeLessThanOrEqual(context_window)
      const highest = pricing.at(-1)?.prompt_tokens_threshold ?? 0
      // What these report is the sum of many prompts.
      if (!id.startsWith('deep-research')) expect(highest, id).toBeLessThan(context_window)
    }
  })

  test('has every fact of every model', () => {
    const missing = entries.flatMap(({ id, entry }) =>
      stated.flatMap((name) => (entry[name] === undefined ? [`${provider}/${id} ${name}`] : [])),
    )
    expect(missing).toEqual([])
  })

  test('takes and gives what the flags say', () => {
    for (const { id, entry } of entries) {
      const { input = [], output = [] } = entry.modalities ?? {}
      expect(input, id).toContain('text')
      expect(input.includes('image'), `${id}: image`).toBe(entry.supports_vision === true)
      expect(output.includes('image'), `${id}: images`).toBe(entry.supports_image_generation === true)
    }
    const given: { [api: string]: string } = {
      embedding: 'vector',
      image: 'image',
      speech: 'audio',
      rerank: 'score',
      decision: 'score',
    }
    for (const { id, entry } of others) {
      expect(entry.modalities?.output, id).toContain(
        given[entry.api] ?? (entry.api === 'moderation' ? 'score' : 'text'),
      )
    }
  })

  test('lets a name without a date cost what its snapshot does', () => {
    const { models } = readList(source.value as CatalogFile)
    // What is read from a cache is cheaper in a list for one of the two names alone.
    const prices = (entry: ModelEntry | undefined) =>
      entry?.pricing?.map((tier) => [tier.prompt_tokens_threshold, tier.input_price, tier.output_price])
    for (const { id, entry } of all) {
      if (entry.snapshot !== undefined) expect(prices(entry), id).toEqual(prices(models[entry.snapshot]))
    }
  })

  test('names successors that are there', () => {
    const { models } = readList(source.value as CatalogFile)
    const gone = Object.entries(models).filter(([, entry]) => isRetired(entry, Date.now()))
    for (const [id, { successor }] of gone) {
      if (successor !== undefined)
        expect(
          all.map((one) => one.id),
          `${id}: ${successor}`,
        ).toContain(successor)
    }
  })

  // A price that was to change and is multiplied by itself, or by a thousand, shows here.
  test('has price changes of at most the double', () => {
    for (const { id, entry } of entries) {
      for (const { pricing } of entry.price_changes ?? []) {
        if (!pricing) continue
        expect(pricing.length, id).toBe(entry.pricing?.length)
        for (const [place, now] of (entry.pricing ?? []).entries()) {
          for (const name of ['input_price', 'cached_price', 'output_price'] as const) {
            const times = (pricing[place]?.[name] ?? 0) / (now[name] ?? 0)
            expect(times, `${id} ${name}`).toBeGreaterThanOrEqual(0.5)
            expect(times, `${id} ${name}`).toBeLessThanOrEqual(2.000001)
          }
        }
      }
    }
  })
})

/** Their providers have prices that are not known, or in units that no call is measured in. */
const withoutPrice = [
  ...['qwen3-embedding-0p6b', 'qwen3-embedding-4b', 'flux-1-dev-fp8', 'flux-1-schnell-fp8'],
  ...['qwen3-reranker-0p6b', 'qwen3-reranker-4b', 'qwen3-reranker-8b'],
]
  .map((model) => `fireworks/accounts/fireworks/models/${model}`)
  .concat(['jina/jina-embeddings-v3', 'jina/jina-embeddings-v4'])
  .concat(['2411', '2603', 'latest'].map((version) => `mistral/mistral-moderation-${version}`))

function missingOfOthers(provider: string): string[] {
  return provider === 'cloudflare' ? ['cloudflare/@cf/pfnet/plamo-embedding-1b dimensions'] : []
}

/** The most that one of each costs, in USD; a price in the wrong unit is above it, or far below. */
const dearestUnits: { readonly [name: string]: [least: number, most: number] } = {
  per_character: [1e-6, 2e-4],
  per_second: [1e-6, 1e-3],
  per_image: [0.001, 1],
  per_input_image: [1e-5, 0.01],
  per_query: [0.0005, 0.01],
}

/** Calls of these cost nothing, within limits. */
const freeOfCharge: ReadonlySet<string> = new Set(['github', 'nvidia'])

function expectUnits(id: string, entry: ModelEntry, isFree: boolean): void {
  const { other_prices = {}, image_prices = {}, pricing = [], dimensions = 1, dimensions_free: free } = entry
  for (const [name, [least, most]] of Object.entries(dearestUnits)) {
    if (other_prices[name] === undefined) continue
    expect(other_prices[name], `${id} ${name}`).toBeGreaterThanOrEqual(least)
    expect(other_prices[name], `${id} ${name}`).toBeLessThanOrEqual(most)
  }
  for (const price of Object.values(image_prices)) expect(price, id).toBeLessThanOrEqual(1)
  for (const tier of pricing) {
    for (const price of [tier.input_price, tier.output_price]) expect(price ?? 0, id).toBeLessThan(dearest)
    if (entry.api !== 'moderation' && !isFree) expect(tier.input_price, id).toBeGreaterThan(0)
    if (entry.api === 'embedding') expect(tier.output_price, id).toBe(0)
  }
  if (Array.isArray(free)) expect(free, id).toContain(dimensions)
  expect(entry.max_dimensions ?? dimensions, id).toBeGreaterThanOrEqual(dimensions)
  expect(entry.granularities_at_once ?? 0, id).toBeLessThanOrEqual(entry.granularities?.length ?? 0)
}

/** What the model costs that it chooses, which nobody can say before. */
const unpriced = 'openrouter/auto'

function expectPrices(id: string, pricing: PricingTier[] = []): void {
  const thresholds = pricing.map((tier) => tier.prompt_tokens_threshold)
  expect(thresholds, id).toEqual(thresholds.toSorted((a, b) => a - b))
  expect(thresholds[0], id).toBe(id === unpriced ? undefined : 0)
  for (const { prompt_tokens_threshold, ...prices } of pricing) {
    for (const price of Object.values(prices)) if (price !== null) expect(price, id).toBeLessThan(dearest)
    const { input_price: input, cached_price: cached, output_price: output } = prices
    // Catches prices in the wrong unit: no model has output for a tenth of the price of input.
    expect((output ?? 0) * 10, id).toBeGreaterThanOrEqual(input ?? 0)
    expect(cached ?? 0, id).toBeLessThanOrEqual(input ?? 0)
    if (cached) expect(cached * 200, `${id}: cached`).toBeGreaterThanOrEqual(input ?? 0)
  }
}

test('all shipped models are there', () => {
  const apis = sources.flatMap(({ value }) =>
    Object.values(readList(value as CatalogFile).models).map(({ api }) => api),
  )
  expect(sources.length).toBeGreaterThanOrEqual(50)
  const counts = Object.fromEntries([...new Set(apis)].map((api) => [api, apis.filter((one) => one === api).length]))
  const least = { chat: 1_550, completion: 3, embedding: 55, image: 80, speech: 19, transcription: 15, rerank: 16 }
  for (const [api, count] of Object.entries({ ...least, moderation: 2, decision: 2 })) {
    expect(counts[api], api).toBeGreaterThanOrEqual(count)
  }
})

test('what is well known of models of other APIs is what they have', () => {
  const models = Object.assign(
    {},
    ...sources.map(({ value }) => {
      const { provider } = value as File
      return Object.fromEntries(entriesOf(value).map(({ id, entry }) => [`${provider}/${id}`, entry]))
    }),
  ) as { [name: string]: ModelEntry }
  expect(models['openai/text-embedding-3-small']).toMatchObject({
    dimensions: 1_536,
    dimensions_free: true,
    max_inputs: 2_048,
  })
  expect(models['openai/text-embedding-ada-002']).toMatchObject({ dimensions: 1_536, dimensions_free: false })
  expect(models['openai/tts-1']).toMatchObject({ max_characters: 4_096, other_prices: { per_character: 15e-6 } })
  expect(models['openai/whisper-1']).toMatchObject({
    granularities: ['word', 'segment'],
    other_prices: { per_second: 1e-4 },
  })
  expect(models['cohere/rerank-v3.5']?.other_prices).toEqual({ per_query: 0.002 })
  expect(models['cloudflare/@cf/cloudflare/clef']?.pricing).toEqual([
    { prompt_tokens_threshold: 0, input_price: 0.24e-6, output_price: 0 },
  ])
  // They are facts of the provider; those of its chat models are not theirs.
  expect(models['openai/tts-1']).toMatchObject({ data_retention_days: 30, geolocation: 'global' })
  expect(models['openai/tts-1']).not.toHaveProperty('supports_tool_calling')
})

test('names that move say for what they stand', () => {
  const snapshotsOf = (provider: string) => {
    const { models } = readList(sources.find(({ file }) => file === `catalog/${provider}.yaml`)?.value as CatalogFile)
    return Object.fromEntries(Object.entries(models).map(([id, { snapshot }]) => [id, snapshot]))
  }
  expect(snapshotsOf('anthropic')).toMatchObject({ 'claude-sonnet-4-5': 'claude-sonnet-4-5-20250929' })
  expect(snapshotsOf('mistral')).toMatchObject({
    'mistral-large-latest': 'mistral-large-2512',
    'mistral-medium-latest': 'mistral-medium-2604',
    'mistral-small-latest': 'mistral-small-2603',
  })
})

test('the retirement that a provider announces is known', () => {
  const successors = (provider: string, names: readonly string[]) => {
    const source = sources.find(({ file }) => file === `catalog/${provider}.yaml`)
    const { models } = readList(source?.value as CatalogFile)
    return names.map((name) => models[name]?.successor)
  }
  expect(successors('azure', ['o1', 'o3', 'o3-mini', 'o4-mini', 'gpt-4.1-nano', 'gpt-4.1-2025-04-14'])).toEqual([
    ...['gpt-5', 'gpt-5', 'gpt-5-mini', 'gpt-5-mini', 'gpt-5-nano', 'gpt-4.1'],
  ])
  expect(successors('vertex', ['zai-org/glm-5-maas'])).toEqual(['zai-org/glm-5.2-maas'])
  expect(successors('alibaba', ['qwen3-coder-plus'])).toEqual(['qwen3-coder-480b-a35b-instruct'])
})

test('long-context prices rise with the prompt', () => {
  const file = sources.find(({ file }) => file.endsWith('openai.yaml'))?.value as File | undefined
  expect(file?.models['gpt-6.2-sol']?.pricing).toEqual([
    {
      prompt_tokens_threshold: 0,
      input_price: 2e-6,
      caching_price: 2.5e-6,
      caching_1h_price: 5e-6,
      cached_price: 1e-7,
      output_price: 1e-5,
    },
    {
      prompt_tokens_threshold: 272_000,
      input_price: 4e-6,
      caching_price: 5e-6,
      caching_1h_price: 1e-5,
      cached_price: 2e-7,
      output_price: 1.5e-5,
    },
  ])
})

test('the whole folder is read within a quarter of a second', async () => {
  const { ms } = await processorTime(() => sources.map(({ file, text }) => readSource(file, text)))
  expect(ms).toBeLessThan(limit(250))
})
