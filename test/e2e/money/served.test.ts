import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CallRecord } from '../../../src/core/call.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { storeIn } from './budget-world.ts'

// A provider that says which model served and what it charged is believed, upwards.

let provider: LoopbackProvider
let router: TestRouter
let store: Store
/** What the provider says in its next replies. */
let says: { model: string; cost?: number; fails?: 'status' | 'whole' | 'event' }

const chatManifest = (url: string, own: string) => `slug: ${own.includes('reports') ? 'market' : 'plain'}
name: A provider
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
${own}
models:
  cheap: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000001 }] }
  dear: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.00001, output_price: 0.00001 }] }
  very-cheap: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000001 }] }
  short: { api: chat, context_window: 9000, max_output_tokens: 1000, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000001 }] }
  mine: { is: cheap }
  auto: { api: chat }
`

beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      ...(says.cost !== undefined && { cost: says.cost }),
    }
    const facts = { id: 'c', created: 1, model: says.model }
    if (says.fails === 'event') {
      beginStream(response)
      response.end(`data: ${JSON.stringify({ ...facts, error: { message: 'No.', type: 'server_error' }, usage })}\n\n`)
      return
    }
    if (says.fails) {
      const failed = { ...facts, error: { message: 'No.', type: 'server_error' }, usage }
      answerJson(response, failed, says.fails === 'status' ? 500 : 200)
      return
    }
    if (!body.stream) {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
      answerJson(response, { ...facts, object: 'chat.completion', choices, usage })
      return
    }
    beginStream(response)
    const chunk = (choices: object[], more = {}) =>
      `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices, ...more })}\n\n`
    response.write(chunk([{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }]))
    response.end(`${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}${chunk([], { usage })}data: [DONE]\n\n`)
  })
  router = await testRouter({
    files: {
      'providers/market.yaml': chatManifest(provider.url, 'reports: [model, cost]'),
      'providers/plain.yaml': chatManifest(provider.url, 'timeouts: {}'),
    },
  })
  store = await storeIn(router.folder)
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

const paths = {
  chat: { path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'Hi' }] } },
  responses: { path: '/v1/responses', body: { input: 'Hi' } },
  messages: { path: '/v1/messages', body: { max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] } },
}

async function called(model: string, api: keyof typeof paths, stream: boolean) {
  const { path, body } = paths[api]
  const response = await router.call(path, { model, stream, ...body })
  expect(response.status).toBe(200)
  const models = new Set([...(await response.text()).matchAll(/"model":"([^"]*)"/g)].map(([, name]) => name))
  const [row] = (await Array.fromAsync(store.ledger.each({}))).toSorted(
    (one, other) => other.at - one.at || (one.id < other.id ? 1 : -1),
  )
  return { models: [...models], header: response.headers.get('x-router-model'), row: row as CallRecord }
}

const ways = (Object.keys(paths) as (keyof typeof paths)[]).flatMap((api) => [
  [api, false] as const,
  [api, true] as const,
])

describe.each(ways)('through %s, streamed: %s', (api, stream) => {
  test('another model that served is in the row, in the reply and in the price', async () => {
    says = { model: 'dear' }
    for (const slug of ['market', 'plain']) {
      const { models, header, row } = await called(`${slug}/cheap`, api, stream)
      expect([models, header]).toEqual([[`${slug}/dear`], `${slug}/dear`])
      expect(row).toMatchObject({ model: 'cheap', served: 'dear', cost: { nanoUsd: 150_000 } })
    }
  })

  test('a cheaper one does not lower the price, and another name of the same model is no other one', async () => {
    says = { model: 'cheap' }
    expect((await called('market/dear', api, stream)).row).toMatchObject({
      served: 'cheap',
      cost: { nanoUsd: 150_000 },
    })
    for (const [asked, model] of [
      ['market/very-cheap', 'cheap-very-20260131'],
      ['market/cheap', ''],
      ['market/cheap', 'cheap-2026-01-31'],
      ['market/mine', 'cheap'],
      ['market/mine', 'mine'],
      ['plain/cheap', 'unheard-of'],
    ] as const) {
      says = { model }
      const { models, row } = await called(asked, api, stream)
      expect([models, row.served]).toEqual([[asked], undefined])
    }
  })

  test('a model that nobody knows is named where the provider chooses models', async () => {
    says = { model: 'unheard-of' }
    const { models, header, row } = await called('market/cheap', api, stream)
    expect([models, header, row.served]).toEqual([['market/unheard-of'], 'market/unheard-of', 'unheard-of'])
  })

  test('a model that chooses others costs what its provider says', async () => {
    says = { model: 'cheap', cost: 0.5 }
    const { row } = await called('market/auto', api, stream)
    expect(row).toMatchObject({ served: 'cheap', cost: { nanoUsd: 500_000_000 } })
    expect(row.cost).not.toHaveProperty('unpriced')
  })

  test('a name of any length and letters travels', async () => {
    says = { model: 'é\n😀'.repeat(2_000) }
    const { header, row } = await called('market/cheap', api, stream)
    expect([header?.length, row.served?.length]).toEqual([expect.any(Number), 1_024])
  })

  test('the figure of a provider that charges by it is a lower bound', async () => {
    says = { model: 'cheap', cost: 0.5 }
    const { row } = await called('market/cheap', api, stream)
    expect(row.cost).toMatchObject({
      nanoUsd: 500_000_000,
      parts: { input: 10_000, output: 5_000, reported: 499_985_000 },
    })
    expect((await called('plain/cheap', api, stream)).row.cost.nanoUsd).toBe(15_000)
    for (const cost of [0.000001, 0, -5]) {
      says = { model: 'cheap', cost }
      expect((await called('market/cheap', api, stream)).row.cost).toMatchObject({ nanoUsd: 15_000 })
    }
  })

  test('a figure that cannot be is bounded, and marked', async () => {
    for (const [model, most] of [
      ['short', 1],
      ['auto', 100],
    ] as const) {
      says = { model: 'cheap', cost: 5e8 }
      const { row } = await called(`market/${model}`, api, stream)
      expect(row).toMatchObject({ usage: { reported_cost: most }, cost: { nanoUsd: most * 1e9, estimated: true } })
      says = { model: 'cheap', cost: 5e12 }
      expect((await called(`market/${model}`, api, stream)).row.cost.nanoUsd).toBe(15_000)
    }
  })
})

test.each([
  ['a status', 'status', false],
  ['a whole answer', 'whole', false],
  ['a document in place of a stream', 'whole', true],
  ['an event', 'event', true],
] as const)(
  'a failure as %s is charged as the more expensive model that its provider names',
  async (_, fails, stream) => {
    const { path, body } = paths.chat
    for (const [asked, model, nanoUsd] of [
      ['plain/cheap', 'dear', 150_000],
      ['plain/dear', 'cheap', 150_000],
      ['plain/cheap', 'cheap', 15_000],
    ] as const) {
      says = { model, fails }
      expect((await router.call(path, { model: asked, stream, ...body })).status).toBe(502)
      const [row] = (await Array.fromAsync(store.ledger.each({}))).toSorted(
        (one, other) => other.at - one.at || (one.id < other.id ? 1 : -1),
      )
      expect(row?.cost.nanoUsd).toBe(nanoUsd)
      expect(row?.served).toBe(asked.endsWith(model) ? undefined : model)
    }
  },
)
