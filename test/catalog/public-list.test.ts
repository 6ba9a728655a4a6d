import { describe, expect, test } from 'vitest'
import { type CatalogFile, readList } from '../../src/catalog/read-list.ts'
import type { Json } from '../../src/core/json.ts'
import { readYaml } from '../../src/manifest/read/read-yaml.ts'
import { compareList } from '../../tools/catalog/compare-list.ts'
import { editCatalog } from '../../tools/catalog/edit-list.ts'
import { readPublicList } from '../../tools/catalog/public-list.ts'

const file = `# Models of Acme. Prices are USD per token.
provider: acme
defaults:
  api: chat
  context_window: 8192   # of all that say nothing else
models:
  big:   # the large one
    max_output_tokens: 4096
    pricing:
      - { prompt_tokens_threshold: 0, input_price: 2e-6, cached_price: 0.5e-6, output_price: 8e-6 }
      - { prompt_tokens_threshold: 200000, input_price: 4e-6, output_price: 16e-6 }
  small: { aliases: [tiny], max_output_tokens: 1024, pricing: { input: 0.1e-6, output: 0.4e-6 } }
  gone: { shutdown: 2026-01-01, successor: big }
  promoted:
    pricing: { input: 1e-6, output: 2e-6 }
    price_changes: [{ until: "2020-01-01T00:00:00Z", pricing: { input: 0.5e-6, output: 1e-6 } }]
by_api:
  embedding:
    models:
      vectors: { context_window: 512, pricing: { input: 0.02e-6 } }
`
const { models } = readList(readYaml(file)?.value as CatalogFile)
const catalog = { provider: 'acme', models, names: ['acme_ai', 'acme'] }
const at = Date.UTC(2026, 10, 23)

describe('a public list', () => {
  test("of LiteLLM's form is read: prices per token, ids with the name of the provider", () => {
    const list = readPublicList({
      sample_spec: { input_cost_per_token: 0, litellm_provider: 'one of ...' },
      'acme_ai/big': {
        litellm_provider: 'acme_ai',
        input_cost_per_token: 2e-6,
        output_cost_per_token: 8e-6,
        max_input_tokens: 8192,
      },
      tiny: { litellm_provider: 'acme', input_cost_per_token: 1e-7 },
      text: { litellm_provider: 'acme', input_cost_per_token: '2.5e-6', max_output_tokens: 'unknown' },
    })
    expect(list.name).toBe('litellm')
    expect(list.models.slice(1)).toEqual([
      { provider: 'acme_ai', model: 'big', input_price: 2e-6, output_price: 8e-6, context_window: 8192 },
      { provider: 'acme', model: 'tiny', input_price: 1e-7 },
      { provider: 'acme', model: 'text', input_price: 2.5e-6 },
    ])
  })

  test('of the form of models.dev is read: prices per million', () => {
    const list = readPublicList({
      acme: {
        id: 'acme',
        models: { big: { cost: { input: 2, output: 8, cache_read: 0.5 }, limit: { context: 8192, output: 4096 } } },
      },
      empty: {},
    })
    expect(list.models).toEqual([
      {
        provider: 'acme',
        model: 'big',
        input_price: 2e-6,
        output_price: 8e-6,
        cached_price: 5e-7,
        context_window: 8192,
        max_output_tokens: 4096,
      },
    ])
  })

  test("of OpenRouter's form is read: prices as text, and -1 for what varies", () => {
    const list = readPublicList({
      data: [
        {
          id: 'acme/big',
          context_length: 8192,
          pricing: { prompt: '0.000002', completion: '-1' },
          top_provider: { max_completion_tokens: null },
        },
        { no: 'id' },
      ],
    })
    expect(list).toEqual({
      name: 'model_list',
      models: [{ provider: '*', model: 'acme/big', input_price: 2e-6, context_window: 8192 }],
    })
  })

  test("of LiteLLM's form has several names for kinds of models of one provider", () => {
    const list = readPublicList({
      'acme_ai/labs/large': { litellm_provider: 'acme_ai-labs_models', input_cost_per_token: 1e-6 },
      'acme/labs': { litellm_provider: 'acme_ai', input_cost_per_token: 1e-6 },
      '/large': { litellm_provider: 'acme_ai', input_cost_per_token: 1e-6 },
    })
    expect(list.models.map(({ model }) => model)).toEqual(['labs/large', 'acme/labs', '/large'])
  })

  test('may say anything of a model: what can be no price or limit is not read', () => {
    const models = { a: null, b: { cost: null, limit: [] }, c: { cost: 'x', limit: 5 } }
    const d = {
      cost: { input: [5], output: true, cache_read: Number.POSITIVE_INFINITY },
      limit: { context: 0, output: 1.5 },
    }
    const e = { cost: { input: 1e305, output: '2', cache_read: -1 }, limit: { context: '0x10', output: [9_000] } }
    const ofModelsDev = readPublicList({ acme: { models: { ...models, d, e } }, other: null } as unknown as Json)
    expect(ofModelsDev.models).toEqual(['a', 'b', 'c', 'd', 'e'].map((model) => ({ provider: 'acme', model })))
    const data = [
      null,
      { id: 'x', pricing: null, top_provider: null },
      { id: 'y', pricing: { prompt: ' ', completion: '1' } },
    ]
    expect(readPublicList({ data }).models).toEqual(['x', 'y'].map((model) => ({ provider: '*', model })))
  })

  const withoutPrices = [{ data: [] }, { data: [{ id: 'big', object: 'model' }] }]
  test.each([null, [], 'x', {}, { a: 1 }, { error: { message: 'no' } }, ...withoutPrices])('is not %j', (json) => {
    expect(() => readPublicList(json)).toThrow('This is not a list of models that can be read')
  })
})

describe('a comparison', () => {
  const list = readPublicList({
    big: {
      litellm_provider: 'acme',
      input_cost_per_token: 2.5e-6,
      cache_read_input_token_cost: 0.5e-6 * (1 + 1e-9),
      output_cost_per_token: 8e-6,
      max_output_tokens: 8192,
    },
    tiny: { litellm_provider: 'acme_ai', input_cost_per_token: 0.1e-6, max_input_tokens: 16384 },
    promoted: { litellm_provider: 'acme', input_cost_per_token: 3e-6 },
    vectors: { litellm_provider: 'acme', input_cost_per_token: 3e-8, max_input_tokens: 512 },
    new: { litellm_provider: 'acme', input_cost_per_token: 1e-6 },
    gone: { litellm_provider: 'acme', input_cost_per_token: 1e-6 },
    other: { litellm_provider: 'nobody', input_cost_per_token: 1e-6 },
  })
  const comparison = compareList([catalog, { provider: 'unheard-of', models, names: ['unheard-of'] }], list, at)

  test('names what differs, by model and field, and what only one side has', () => {
    expect(comparison).toEqual({
      compared: 4,
      differences: [
        { provider: 'acme', model: 'big', field: 'input_price', ours: 2e-6, theirs: 2.5e-6 },
        { provider: 'acme', model: 'big', field: 'max_output_tokens', ours: 4096, theirs: 8192 },
        { provider: 'acme', model: 'small', field: 'context_window', ours: 8192, theirs: 16384 },
        { provider: 'acme', model: 'promoted', field: 'input_price', ours: 1e-6, theirs: 3e-6 },
        { provider: 'acme', model: 'vectors', field: 'input_price', ours: 2e-8, theirs: 3e-8 },
      ],
      unknown: [{ provider: 'acme', model: 'new' }],
      unlisted: [],
    })
  })

  test('is taken over number by number; what no number of the file says is left', () => {
    const { text, byHand } = editCatalog(file, comparison.differences)
    expect(byHand.map(({ model, field }) => [model, field])).toEqual([
      ['small', 'context_window'],
      ['promoted', 'input_price'],
    ])
    const changed = file
      .replace('input_price: 2e-6', 'input_price: 2.5e-6')
      .replace('max_output_tokens: 4096', 'max_output_tokens: 8192')
      .replace('input: 0.02e-6', 'input: 0.03e-6')
    expect(text).toBe(changed)
  })

  test.each([0, 2e-7, 2e-5])('leaves a price that leaps to %d to somebody who looks at it', (theirs) => {
    const leap = { provider: 'acme', model: 'big', field: 'input_price' as const, ours: 2e-6, theirs }
    expect(editCatalog(file, [leap])).toEqual({ text: file, byHand: [leap] })
  })

  test('finds nothing to change after it was taken over', () => {
    const { text } = editCatalog(file, comparison.differences)
    const { models } = readList(readYaml(text)?.value as CatalogFile)
    const left = compareList([{ ...catalog, models }], list, at).differences
    expect(left.map(({ model }) => model)).toEqual(['small', 'promoted'])
  })
})
