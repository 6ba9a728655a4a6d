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

/** They pass on what the models behind them cost. */
const unpriced = new Set(['groq/compound', 'groq/compound-mini'])

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

function expectPrices(id: string, pricing: PricingTier[] = []): void {
  const thresholds = pricing.map((tier) => tier.prompt_tokens_threshold)
  expect(thresholds, id).toEqual(thresholds.toSorted((a, b) => a - b))
  expect(thresholds[0], id).toBe(unpriced.has(id) ? undefined : 0)
  for (const { prompt_tokens_threshold, ...prices } of pricing) {
    for (const price of Object.values(prices)) if (price !== null) expect(price, id).toBeLessThan(dearest)
    const { input_price: input, cached_price: cached, output_price: output } = prices
    // What slips by a unit shows here: no model sells its words for a tenth of what it takes to read.
    expect((output ?? 0) * 10, id).toBeGreaterThanOrEqual(input ?? 0)
    expect(cached ?? 0, id).toBeLessThanOrEqual(input ?? 0)
    if (cached) expect(cached * 200, `${id}: cached`).toBeGreaterThanOrEqual(input ?? 0)
  }
}

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
