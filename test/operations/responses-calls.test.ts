import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../src/store/open.ts'
import { newKey, storeIn } from '../e2e/money/budget-world.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, pause, type Received } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'

// What the Responses API has besides responses: counting and compacting.

let answer: (request: Received) => { status?: number; body: unknown }
let wait: () => Promise<void>
let provider: LoopbackProvider
let router: TestRouter
let store: Store

const priced = {
  api: 'chat',
  max_output_tokens: 1_000,
  pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 1e-6 }],
}

beforeAll(async () => {
  provider = await loopbackProvider(async (request, response) => {
    await wait()
    const { status = 200, body } = answer(request)
    answerJson(response, body, status)
  })
  const address = { base_url: provider.url, secret: 's' }
  router = await testRouter({
    providers: {
      'openai-responses': { ...address, models: { priced } },
      openai: address,
    },
    settings: { policies: { both: { targets: ['openai-responses/gpt-5', 'openai-responses/gpt-5-mini'] } } },
  })
  store = await storeIn(router.folder)
})

afterAll(async () => {
  await store?.close()
  await router?.end()
  await provider?.close()
})

beforeEach(() => {
  wait = async () => {}
  provider.received.length = 0
})

const input = [{ role: 'user' as const, content: 'Hello' }]
const model = 'openai-responses/gpt-5'

const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-5',
  store: false,
  output: [
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
    },
  ],
  usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7 },
}

const compacted = {
  id: 'resp_2',
  object: 'response.compaction',
  created_at: 2,
  output: [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'sealed' }],
  usage: {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 40 },
    output_tokens: 10,
    output_tokens_details: { reasoning_tokens: 4 },
    total_tokens: 110,
  },
}

const rows = async (key?: string) => await Array.fromAsync(store.ledger.each(key === undefined ? {} : { key }))

describe('POST /v1/responses/input_tokens', () => {
  test('is counted by a provider of the format, without what only generating needs', async () => {
    answer = () => ({ body: { object: 'response.input_tokens', input_tokens: 14 } })
    const counted = await router.openai().responses.inputTokens.count({ model, input, instructions: 'Be brief.' })
    expect(counted).toEqual({ object: 'response.input_tokens', input_tokens: 14 })
    await router.call('/v1/responses/input_tokens', {
      model,
      input,
      store: true,
      temperature: 1,
      max_output_tokens: 20,
    })
    expect(provider.received.map(({ path, body }) => [path, body])).toEqual([
      ['/responses/input_tokens', { model: 'gpt-5', input, instructions: 'Be brief.' }],
      ['/responses/input_tokens', { model: 'gpt-5', input }],
    ])
    expect(await rows()).toEqual([])
  })

  test('counts the turns before it, of a response that this router stored', async () => {
    answer = () => ({ body: response })
    const first = await router.call('/v1/responses', { model, input })
    const { id } = (await first.json()) as { id: string }
    answer = () => ({ body: { input_tokens: 30 } })
    const next = [{ role: 'user' as const, content: 'And now?' }]
    const counted = await router.openai().responses.inputTokens.count({ model, input: next, previous_response_id: id })
    expect(counted).toEqual({ object: 'response.input_tokens', input_tokens: 30 })
    const sent = provider.received.at(-1)?.body
    expect(JSON.stringify(sent.input)).toMatch(/Hello[\s\S]*Hi[\s\S]*And now\?/)
    expect(sent).not.toHaveProperty('store')
  })

  test('is estimated elsewhere, and said so', async () => {
    const counted = await router.openai().responses.inputTokens.count({ model: 'demo/echo', input: 'x'.repeat(400) })
    expect(counted).toMatchObject({ object: 'response.input_tokens', estimated: true })
    expect(counted.input_tokens).toBeGreaterThan(100)
    expect(provider.received).toEqual([])
  })

  test('fails as other calls do', async () => {
    const count = async (body: object, headers = {}) => {
      const reply = await router.call('/v1/responses/input_tokens', body, headers)
      return [reply.status, ((await reply.json()) as { error: { param: string } }).error.param]
    }
    expect(await count({ input })).toEqual([400, 'model'])
    expect(await count({ model })).toEqual([400, 'input'])
    expect(await count({ model: 'openai-responses/none', input })).toEqual([404, 'model'])
    expect((await count({ model, input }, { authorization: 'Bearer no-key' }))[0]).toBe(403)
    expect(await count({ model: 'openai/text-embedding-3-small', input })).toEqual([400, 'model'])
    answer = () => ({ body: { tokens: 3 } })
    expect((await count({ model, input }))[0]).toBe(502)
  })
})

describe('POST /v1/responses/compact', () => {
  test('is done by a provider of the format, and paid', async () => {
    answer = () => ({ body: compacted })
    const before = (await rows()).length
    const reply = await router.openai().responses.compact({ model, input, instructions: 'Be brief.' })
    // 60 tokens of the input are new at 1.25, 40 cached at 0.125; 10 of the output at 10 dollars for a million.
    const cost = (60 * 1.25 + 40 * 0.125 + 10 * 10) / 1e6
    expect(reply).toEqual({ ...compacted, usage: { ...compacted.usage, cost } })
    expect(provider.received.map(({ path, body }) => [path, body])).toEqual([
      ['/responses/compact', { model: 'gpt-5', input, instructions: 'Be brief.' }],
    ])
    expect((await rows()).slice(before)).toMatchObject([
      {
        api: 'responses',
        operation: 'compact',
        outcome: 'complete',
        usage: { input: 60, cache_read: 40, output: 6, reasoning: 4 },
        cost: { nanoUsd: cost * 1e9 },
      },
    ])
  })

  test('of the turns before it', async () => {
    answer = () => ({ body: response })
    const first = await router.call('/v1/responses', { model, input })
    const { id } = (await first.json()) as { id: string }
    answer = () => ({ body: compacted })
    const reply = await router.call('/v1/responses/compact', { model, input: 'Go on', previous_response_id: id })
    expect(reply.status).toBe(200)
    const sent = provider.received.at(-1)?.body
    expect(JSON.stringify(sent.input)).toMatch(/Hello[\s\S]*Hi[\s\S]*Go on/)
    expect(Object.keys(sent).sort()).toEqual(['input', 'model'])
  })

  test.each(['demo/echo', 'openai/gpt-5'])('%s cannot, and it is said who can', async (unable) => {
    const reply = await router.call('/v1/responses/compact', { model: unable, input })
    const { error } = (await reply.json()) as { error: { message: string; param: string } }
    expect([reply.status, error.param, error.message]).toEqual([
      400,
      'model',
      `'${unable}' cannot compact conversations; these can: openai-responses/<model>.`,
    ])
    expect(provider.received).toEqual([])
  })

  test('a second target takes over, and garbage is a 502 that is paid', async () => {
    answer = ({ body }) => (body.model === 'gpt-5' ? { status: 503, body: {} } : { body: compacted })
    const reply = await router.call('/v1/responses/compact', { model: 'both', input })
    expect([reply.status, reply.headers.get('x-router-model'), reply.headers.get('x-router-attempts')]).toEqual([
      200,
      'openai-responses/gpt-5-mini',
      '2',
    ])
    answer = () => ({ body: { usage: { input_tokens: 10, output_tokens: 1 } } })
    expect((await router.call('/v1/responses/compact', { model, input })).status).toBe(502)
    expect((await rows()).at(-1)).toMatchObject({
      outcome: 'failed',
      usage: { input: 10, output: 1 },
      cost: { nanoUsd: 22_500 },
    })
  })

  test('says why which targets were asked', async () => {
    answer = ({ body }) => (body.model === 'gpt-5' ? { status: 503, body: {} } : { body: compacted })
    const headers = { 'x-router-explain': 'true' }
    const reply = await router.call('/v1/responses/compact', { model: 'both', input }, headers)
    const targets = [{ model: 'openai-responses/gpt-5' }, { model: 'openai-responses/gpt-5-mini' }]
    const attempts = [{ ...targets[0], followed_by: 'next' }, targets[1]]
    expect(await reply.json()).toMatchObject({ router: { attempts: 2, explain: { targets, attempts, skipped: [] } } })
    expect((await rows()).at(-1)).toMatchObject({ explanation: { targets, attempts } })
    const unable = await router.call('/v1/responses/compact', { model: 'demo/echo', input }, headers)
    const skipped = [{ model: 'demo/echo', step: 'able', reason: 'cannot compact conversations' }]
    expect(await unable.json()).toMatchObject({ error: { router: { attempts: 0, explain: { skipped } } } })
  })

  test('of ten calls at once, a key that pays two makes exactly two', async () => {
    answer = () => ({ body: { ...compacted, usage: { input_tokens: 9, output_tokens: 1_000, total_tokens: 1_009 } } })
    wait = () => pause(50)
    // A call writes at most 1,000 tokens, for 0.001 dollars.
    const key = await newKey(store, { monthlyLimitNano: 2_500_000n })
    const headers = { authorization: `Bearer ${key.secret}` }
    const body = { model: 'openai-responses/priced', input }
    const ended = await Promise.all(
      Array.from({ length: 10 }, () => router.call('/v1/responses/compact', body, headers)),
    )
    expect(ended.map(({ status }) => status).sort()).toEqual([200, 200, ...Array(8).fill(402)])
    expect((await rows(key.id)).map(({ cost }) => cost.nanoUsd)).toEqual([1_000_000, 1_000_000])
  })
})
