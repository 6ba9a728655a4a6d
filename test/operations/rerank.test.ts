import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newKey } from '../e2e/money/budget-world.ts'
import { answerJson } from '../helpers/provider.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { type JsonWorld, jsonWorld, testMoney } from './json-world.ts'

const byQuery = { api: 'rerank', other_prices: { per_query: 0.002 }, max_inputs: 1_000 }
const byToken = { api: 'rerank', pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 0 }] }
const documents = ['a', { text: 'b', title: 'B' }, 'c']
const results = [
  { index: 2, relevance_score: 0.25 },
  { index: 1, relevance_score: 0.75 },
  { index: 0, relevance_score: 0.5 },
]
const texts = ['a', 'b', 'c']
const words = (tokens: number) => 'word'.repeat(tokens)

/** How a provider is asked for the order of three documents, and how it answers; the cost in USD. */
const dialects = [
  {
    slug: 'cohere',
    entry: byQuery,
    path: '/v2/rerank',
    sends: { model: 'm', query: 'q', documents: texts, top_n: 2, max_tokens_per_doc: 9 },
    answer: { id: 'r', results, meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } } },
    cost: 0.002,
  },
  {
    slug: 'jina',
    entry: byToken,
    path: '/rerank',
    sends: { model: 'm', query: 'q', documents: texts, top_n: 2, return_documents: false },
    answer: { model: 'm', results, usage: { total_tokens: 7 } },
    cost: 7e-6,
  },
  {
    slug: 'voyage',
    entry: byToken,
    path: '/rerank',
    sends: { model: 'm', query: 'q', documents: texts, top_k: 2 },
    answer: { object: 'list', model: 'm', data: results, usage: { total_tokens: 7 } },
    cost: 7e-6,
  },
  ...['together', 'fireworks', 'vllm'].map((slug) => ({
    slug,
    entry: byToken,
    path: '/rerank',
    sends: { model: 'm', query: 'q', documents: texts, top_n: 2 },
    answer: { object: 'rerank', id: 'r', model: 'm', results, usage: { prompt_tokens: 7, total_tokens: 7 } },
    cost: 7e-6,
  })),
  {
    slug: 'bedrock',
    entry: byQuery,
    path: '/model/m/invoke',
    sends: { query: 'q', documents: texts, top_n: 2 },
    answer: { results },
    cost: 0.002,
  },
]

describe.each(dialects.map((dialect) => [dialect.slug, dialect] as const))('%s', (slug, dialect) => {
  let world: JsonWorld
  beforeAll(async () => {
    world = await jsonWorld((_, response) => answerJson(response, dialect.answer), {
      providers: { [slug]: { models: { m: dialect.entry } } },
    })
  })
  afterAll(() => world?.end())

  test('the best documents first, with what was asked for', async () => {
    const body = { query: 'q', documents, top_n: 2, return_documents: true, max_tokens_per_doc: 9 }
    const response = await world.ask('/v1/rerank', { model: `${slug}/m`, ...body })
    expect(response.status).toBe(200)
    const reply = (await response.json()) as { usage: { cost: number } }
    expect(reply).toMatchObject({
      model: `${slug}/m`,
      results: [
        { index: 1, relevance_score: 0.75, document: { text: 'b', title: 'B' } },
        { index: 0, relevance_score: 0.5, document: { text: 'a' } },
      ],
      meta: { billed_units: { search_units: 1 } },
    })
    expect(reply.usage.cost).toBe(dialect.cost)
    const sent = world.provider.received.at(-1)
    expect([sent?.path, sent?.body]).toEqual([dialect.path, dialect.sends])
    const dropped = 'max_tokens_per_doc' in dialect.sends ? null : 'max_tokens_per_doc'
    expect(response.headers.get('x-router-dropped')).toBe(dropped)
  })

  test('all documents, without their texts', async () => {
    const response = await world.ask('/v1/rerank', { model: `${slug}/m`, query: 'q', documents })
    const { results: ranked } = (await response.json()) as { results: object[] }
    expect(ranked).toEqual([results[1], results[2], results[0]])
  })
})

describe('POST /v1/rerank', () => {
  let world: JsonWorld
  let answer: object = { results }
  beforeAll(async () => {
    world = await jsonWorld((_, response) => answerJson(response, answer), {
      providers: { cohere: { models: { m: byQuery, few: { ...byQuery, max_inputs: 2 } } } },
    })
  })
  afterAll(() => world?.end())
  const ask = (fields: object) => world.ask('/v1/rerank', { model: 'cohere/m', query: 'q', documents, ...fields })

  test.each([
    ['no query', { query: null }, 'query'],
    ['an empty query', { query: '' }, 'query'],
    ['no documents', { documents: null }, 'documents'],
    ['an empty list', { documents: [] }, 'documents'],
    ['a document without a text', { documents: ['a', { title: 'b' }] }, 'documents[1].text'],
    ['a document that is a number', { documents: [1] }, 'documents[0]'],
    ['none of them', { top_n: 0 }, 'top_n'],
    ['a flag that is none', { return_documents: 'yes' }, 'return_documents'],
    ['more than the model takes', { model: 'cohere/few' }, 'documents'],
  ])('%s is a 400 before anything is sent', async (_, fields, param) => {
    const before = world.provider.received.length
    const response = await ask(fields)
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }])
    expect(world.provider.received).toHaveLength(before)
  })

  test.each([
    ['of another document', [{ index: 3, relevance_score: 1 }]],
    ['of one twice', [results[0], results[0]]],
    ['without a score', [{ index: 0 }]],
    ['that are none', ['a']],
  ])('results %s are a 502', async (_, wrong) => {
    answer = { results: wrong }
    expect((await ask({})).status).toBe(502)
    answer = { results }
  })

  test.each([
    [1, 1],
    [100, 1],
    [101, 2],
    [250, 3],
  ])('%i documents are %i queries where the provider counts none', async (count, queries) => {
    answer = { results: [{ index: 0, relevance_score: 1 }] }
    const reply = (await (await ask({ documents: Array(count).fill('a') })).json()) as { usage: { cost: number } }
    expect(reply.usage.cost).toBe((queries * 2) / 1_000)
    answer = { results }
  })

  test('long documents are reserved as several', async () => {
    const long = await jsonWorld(() => {}, { providers: { cohere: { models: { m: byQuery } } } })
    const key = await newKey(long.store, { monthlyLimitNano: 15_000_000n })
    const body = { model: 'cohere/m', query: 'q', documents: Array(100).fill('a'.repeat(5_000)) }
    expect((await long.ask('/v1/rerank', body, key)).status).toBe(402)
    await long.end()
  })
})

test('long documents are as many queries as they have parts, where the provider reports none', async () => {
  const amazon = { ...byQuery, context_window: 32_000 }
  const providers = { bedrock: { models: { 'amazon.rerank-v1:0': amazon } } }
  const many = Array.from({ length: 100 }, (_, index) => ({ index, relevance_score: 0.5 }))
  const world = await jsonWorld((_, response) => answerJson(response, { results: many }), { providers })
  const ask = (document: string, more: object = {}) =>
    world.ask('/v1/rerank', {
      ...{ model: 'bedrock/amazon.rerank-v1:0', query: 'q', documents: Array(100).fill(document), ...more },
    })
  for (const [document, more, queries] of [
    [words(10), {}, 1],
    [words(900), {}, 2],
    [words(9_000), {}, 19],
    [words(9_000), { max_tokens_per_doc: 1 }, 19],
  ] as const) {
    const response = await ask(document, more)
    const reply = (await response.json()) as { usage: { cost: number } }
    expect(reply.usage.cost).toBeCloseTo(0.002 * queries, 9)
  }
  await world.end()
})

describe('money by the query', () => {
  testMoney({
    api: 'rerank',
    path: '/v1/rerank',
    body: { query: 'q', documents: ['a'] },
    entry: byQuery,
    answer: { results: [{ index: 0, relevance_score: 1 }] },
    nano: 2_000_000n,
  })
})

describe.skipIf(recordingsMissing)('recorded exchanges', () => {
  test.each(recordings('rerank').map((one) => [one.case, one] as const))('%s', async (_, { request, response }) => {
    const world = await jsonWorld((__, answer) => answerJson(answer, response.body), { providers: { cohere: {} } })
    const { model, ...fields } = request?.body ?? {}
    const answer = await world.ask('/v1/rerank', { model: `cohere/${model}`, ...fields })
    const { id, results: ranked, meta } = response.body
    expect(await answer.json()).toEqual({
      ...{ id, results: ranked, meta, model: `cohere/${model}` },
      usage: { prompt_tokens: 0, total_tokens: 0, cost: 0.002 },
    })
    const sent = world.provider.received.at(-1)
    expect([sent?.path, sent?.body]).toEqual([request?.path, request?.body])
    await world.end()
  })
})
