import { calcPrice } from '@pydantic/genai-prices'
import { describe, expect, test } from 'vitest'
import type { ModelEntry } from '../../src/core/model.ts'
import type { Usage } from '../../src/core/usage.ts'
import { priceOf } from '../../src/money/price.ts'
import { shippedModels } from './catalog.ts'

/** Our providers under the names that the other price list gives them. */
const providers = {
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'google',
  xai: 'x-ai',
  bedrock: 'aws',
  azure: 'azure',
  groq: 'groq',
  deepseek: 'deepseek',
  mistral: 'mistral',
  cohere: 'cohere',
  together: 'together',
  fireworks: 'fireworks',
  perplexity: 'perplexity',
  openrouter: 'openrouter',
} as const

type Provider = keyof typeof providers

/** The same usage in both forms: there, input includes cached tokens. Perplexity's requests cost most at size high there. */
const usages: [what: string, ours: Usage, theirs: Record<string, number>][] = [
  ['plain', { input: 1_003, output: 501, modes: ['search_high'] }, { input_tokens: 1_003, output_tokens: 501 }],
  [
    'cached',
    { input: 201, cache_read: 802, output: 11, modes: ['search_high'] },
    { input_tokens: 1_003, cache_read_tokens: 802, output_tokens: 11 },
  ],
  [
    'written',
    { input: 101, cache_write_5m: 902, output: 7, modes: ['search_high'] },
    { input_tokens: 1_003, cache_write_tokens: 902, output_tokens: 7 },
  ],
  ['long', { input: 300_001, output: 99, modes: ['search_high'] }, { input_tokens: 300_001, output_tokens: 99 }],
]

/** Where we know better than that list, or it looks at something else. */
const explained: [models: RegExp, why: string][] = [
  [
    /^openai\/gpt-5\.[45]-pro|^azure\/gpt-5\.[45]-pro/,
    'it has no discount for cached tokens; other lists have a tenth',
  ],
  [/^(anthropic|azure)\/claude-sonnet-4-5/, 'the tier above 200k ended with the long context on 2026-04-30'],
  [/^anthropic\/claude-sonnet-5-5$/, 'cache reads were cut on 2026-10-07'],
  [/^xai\/grok-4$/, 'it has no long-context tier; another list has one from 128k'],
  [/^bedrock\/(apac|eu|jp|ca)\.amazon\.nova/, 'it gives the price of us-east for every region'],
  [
    /^azure\/([Pp]hi|deepseek|grok|gpt-oss|kimi)/,
    "models of others: it gives their makers' prices, not those of Azure",
  ],
  [/^azure\/gpt-4o-mini-audio/, 'it takes the price of the model without audio'],
  [/^azure\/gpt-5\.6$/, 'it has the promotion of OpenAI'],
  [/^groq\/openai\/gpt-oss-safeguard/, 'the price before the cut'],
  [/^mistral\/(mistral-large|mistral-small|voxtral-small)-latest/, 'the alias has moved to another model'],
  [/^fireworks\//, 'the model was renewed'],
  [/^openrouter\//, 'prices of a market, which move every day'],
]

const day = new Date('2026-11-21T12:00:00Z')

describe('a second price list comes to the same cost', () => {
  const counts: { [provider: string]: { known: number; agreeing: number } } = {}
  const found: string[] = []
  for (const provider of Object.keys(providers) as Provider[]) {
    test(`at the models of ${provider} that it knows`, () => {
      const { defaults, models } = shippedModels(provider)
      const count = { known: 0, agreeing: 0 }
      counts[provider] = count
      const unexplained: string[] = []
      for (const [id, own] of Object.entries(models)) {
        const differences = compared(provider, id, { ...defaults, ...own } as ModelEntry)
        if (!differences) continue
        count.known++
        if (differences.length === 0) count.agreeing++
        else if (explained.some(([pattern]) => pattern.test(`${provider}/${id}`))) found.push(`${provider}/${id}`)
        else unexplained.push(`${id}: ${differences.join(', ')}`)
      }
      expect(unexplained).toEqual([])
      expect(count.known).toBeGreaterThan(0)
    })
  }

  test('with no explanation that nothing needs', () => {
    expect(explained.filter(([pattern]) => !found.some((name) => pattern.test(name))).map(([, why]) => why)).toEqual([])
    const sum = (of: 'known' | 'agreeing') => Object.values(counts).reduce((total, count) => total + count[of], 0)
    console.info(`${sum('agreeing')} of ${sum('known')} models agree; the others are explained`)
    expect(sum('agreeing')).toBeGreaterThan(400)
  })
})

/** Where the two lists come to different costs; undefined when the other one does not know the model. */
function compared(provider: Provider, id: string, entry: ModelEntry): string[] | undefined {
  const results = usages.map(([what, ours, theirs]) => {
    const other = calcPrice(theirs, id, { providerId: providers[provider], timestamp: day })
    if (!other) return undefined
    const [mine, their] = [priceOf(ours, entry, day.getTime()).nanoUsd, other.total_price * 1e9]
    // It sums floats and rounds nothing: the rest is our own rounding.
    return Math.abs(mine - their) <= 0.5 + their * 1e-12 ? '' : `${what} ${mine} instead of ${their}`
  })
  const known = results.filter((one) => one !== undefined)
  return known.length === 0 ? undefined : known.filter(Boolean)
}
