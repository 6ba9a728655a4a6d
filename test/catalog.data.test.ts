import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { findingsIn } from '../src/catalog/findings.ts'
import type { ModelEntry, PricingTier } from '../src/core/model.ts'
import { checkSchema } from '../src/manifest/schema.ts'
import { readSource } from '../src/manifest/source.ts'
import { limit, processorTime } from './helpers/time.ts'

const root = join(import.meta.dirname, '..')
const sources = readdirSync(join(root, 'catalog'))
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => readSource(`catalog/${name}`, readFileSync(join(root, 'catalog', name), 'utf8')))

type File = { provider: string; defaults?: Partial<ModelEntry>; models: { [id: string]: Partial<ModelEntry> } }

/** The facts that model lists show, and every entry has. */
const stated = [
  'created',
  'max_output_tokens',
  'context_window',
  'description',
  'data_retention',
  'data_retention_days',
  'data_used_for_training',
  'privacy_comments',
  'geolocation',
  'open_weights',
  'model_lab',
  'model_canonical_name',
] as const

/** What providers and makers do not say. */
const unstated = [
  // What is kept depends on the model, and is said for some of them only.
  /^bedrock\/\S+ data_retention(_days)?$/,
  /^cloudflare\/\S+ data_retention(_days)?$/,
  /^deepseek\/\S+ data_retention_days$/,
  /^perplexity\/r1-1776 max_output_tokens$/,
  /^fireworks\/accounts\/fireworks\/models\/ember-1 open_weights$/,
  /^openrouter\/(aion-labs|bytedance-seed|cohere|dots-studio|inclusionai|kwaipilot|nex-agi|prism-ml|sakana)\/\S+ open_weights$/,
  /^openrouter\/(tencent|unbiased|upstage|xiaomi)\/\S+ open_weights$/,
  /^openrouter\/stealth\/\S+ (open_weights|model_lab)$/,
]
const notStated = new Set<RegExp>()

/** A token of any model costs less than this. USD. */
const dearest = 0.001

describe.each(sources)('$file', (source) => {
  const { provider, defaults = {}, models } = source.value as File
  const entries = Object.entries(models).map(([id, own]) => ({ id, entry: { ...defaults, ...own } as ModelEntry }))

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
    const names = entries.flatMap(({ id, entry }) => [id, ...(entry.aliases ?? [])])
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  })

  test('has facts and prices that can be', () => {
    for (const { id, entry } of entries) {
      expect(entry.api, id).toBe('chat')
      expect(entry.model_canonical_name, id).toMatch(/\w/)
      if (entry.created !== undefined) expect(new Date(entry.created * 1_000).getFullYear(), id).toBeGreaterThan(2020)
      expectPrices(id, entry.pricing)
      for (const { pricing } of entry.price_changes ?? []) if (pricing) expectPrices(id, pricing)
    }
    expect(findingsIn(Object.fromEntries(entries.map(({ id, entry }) => [id, entry])))).toEqual([])
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

  test('has every fact of every model but those that nobody states', () => {
    const missing = entries.flatMap(({ id, entry }) =>
      stated.flatMap((name) => (entry[name] === undefined ? [`${provider}/${id} ${name}`] : [])),
    )
    expect(missing.filter((fact) => !unstated.some((pattern) => pattern.test(fact)))).toEqual([])
    unstated.forEach((pattern) => {
      for (const fact of missing) if (pattern.test(fact)) notStated.add(pattern)
    })
  })

  // A price that was to change and is multiplied by itself, or by a thousand, shows here.
  test('has price changes of at most the double', () => {
    for (const { id, entry } of entries) {
      for (const { pricing = [] } of entry.price_changes ?? []) {
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

test('nothing is called unstated that every entry has', () => {
  expect(unstated.filter((pattern) => !notStated.has(pattern))).toEqual([])
})

test('all shipped models are there', () => {
  const count = sources.reduce((sum, { value }) => sum + Object.keys((value as File).models).length, 0)
  expect(sources).toHaveLength(16)
  expect(count).toBeGreaterThanOrEqual(840)
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
