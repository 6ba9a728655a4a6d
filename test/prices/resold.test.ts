import { expect, test } from 'vitest'
import { isRetired, type ModelEntry } from '../../src/core/models/model.ts'
import { shippedEntry, shippedModels } from '../money/catalog.ts'

/** Models whose makers charge more for long prompts, and whose resellers do not, by the lists that know them. */
const flat = [
  'azure/grok-4',
  'bedrock/global.xai.grok-4.6',
  'bedrock/us.xai.grok-4.6',
  'bedrock/xai.grok-4.3',
  'bedrock/xai.grok-4.6',
]

const makers = ['openai', 'xai', 'google', 'anthropic', 'deepseek', 'mistral', 'cohere']
const resellers = [
  'azure',
  'bedrock',
  'vertex',
  'openrouter',
  'groq',
  'together',
  'fireworks',
  'cloudflare',
  'perplexity',
]

test('a resold model has the tiers for long prompts that its maker has', () => {
  const made = new Map(makers.flatMap(entriesOf).map(({ entry }) => [entry.model_canonical_name, entry]))
  const withoutTier = resellers.flatMap(entriesOf).flatMap(({ id, entry }) => {
    const [, tier] = made.get(entry.model_canonical_name)?.pricing ?? []
    const reached = tier && (entry.context_window ?? 0) > tier.prompt_tokens_threshold
    return reached && (entry.pricing?.length ?? 0) < 2 ? [id] : []
  })
  expect(withoutTier).toEqual(flat)
})

test.each([
  ['openai/gpt-5.6', 2],
  ['azure/gpt-4.1', 1.75],
  ['azure/gpt-4.1-mini', 1.75],
  ['azure/gpt-5', 2],
  ['azure/gpt-5-mini', 1.8],
  ['azure/gpt-5.3-codex', 2],
  ['azure/gpt-5.6-luna', 2],
  ['azure/gpt-5.6-sol', 2],
  ['azure/gpt-5.6-terra', 2],
  ['google/gemini-4-argon', 1.8],
  ['google/gemini-flash-latest', 1.8],
  ['google/gemini-flash-lite-latest', 1.8],
  ['google/gemini-pro-latest', 1.8],
  ['vertex/gemini-flash-latest', 1.8],
  ['bedrock/openai.gpt-oss-120b-1:0', 1.75],
])('%s costs %d times as much with priority', (model, times) => {
  expect(shippedEntry(model).multipliers?.priority).toBe(times)
})

test('a model of OpenAI costs as much more with priority at Azure, where another list does not say otherwise', () => {
  const differing = entriesOf('azure').flatMap(({ id, entry }) => {
    const theirs = shippedModels('openai').models[id.slice('azure/'.length)]?.multipliers?.priority
    return isRetired(entry, Date.now()) || theirs === undefined || theirs === entry.multipliers?.priority ? [] : [id]
  })
  // No list has a price of priority for the older ones at Azure.
  const older = ['gpt-4.1-nano', 'gpt-4.1-nano-2025-04-14', 'gpt-4o-2024-08-06', 'gpt-4o-2024-11-20']
  expect(differing).toEqual([...older, 'gpt-5.5', 'gpt-5.5-2026-04-23'].map((model) => `azure/${model}`))
})

test('an alias of Gemini costs what the model costs that it stands for', () => {
  for (const [alias, model] of [
    ['gemini-flash-latest', 'gemini-3.7-flash'],
    ['gemini-flash-lite-latest', 'gemini-3.5-flash-lite'],
    ['gemini-pro-latest', 'gemini-3.1-pro-preview'],
  ]) {
    for (const provider of ['google', 'vertex']) {
      if (!shippedModels(provider).models[`${alias}`]) continue
      const [one, other] = [shippedEntry(`${provider}/${alias}`), shippedEntry(`${provider}/${model}`)]
      for (const name of ['pricing', 'price_changes', 'other_prices', 'multipliers'] as const) {
        expect(one[name], `${provider}/${alias} ${name}`).toEqual(other[name])
      }
    }
  }
})

function entriesOf(provider: string): { id: string; entry: ModelEntry }[] {
  const { defaults, models } = shippedModels(provider)
  return Object.entries(models).map(([id, own]) => ({
    id: `${provider}/${id}`,
    entry: { ...defaults, ...own } as ModelEntry,
  }))
}
