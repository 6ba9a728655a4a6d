import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { callOnce, newKey, pricedManifest, pricedProvider, storeIn, tenTokens } from './budget-world.ts'

// How long a reply may be: what is asked for is what is held, and what is held fits into what is left.

let provider: LoopbackProvider
let router: TestRouter
let store: Store

/** The formats by the ends of their paths, with a short reply. */
const replies: { [end: string]: JsonObject } = {
  completions: {
    ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
  },
  messages: {
    ...{ id: 'm', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', stop_sequence: null },
    content: [{ type: 'text', text: 'Hi' }],
    usage: { input_tokens: 5, output_tokens: 1 },
  },
  responses: {
    ...{ id: 'r', object: 'response', created_at: 1, model: 'm', status: 'completed' },
    output: [
      { type: 'message', id: 'i', role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] },
    ],
    usage: { input_tokens: 5, output_tokens: 1, total_tokens: 6 },
  },
  converse: {
    output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: 5, outputTokens: 1, totalTokens: 6 },
  },
  generateContent: {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1, totalTokenCount: 6 },
  },
}

beforeAll(async () => {
  provider = await loopbackProvider(({ path }, response) => {
    const end = Object.keys(replies).find((name) => path.endsWith(name)) ?? ''
    answerJson(response, replies[end])
  })
  const at = (path: string) => ({ base_url: provider.url + path })
  router = await testRouter({
    providers: {
      openai: { ...at('/v1'), secret: 'k' },
      'openai-responses': { ...at('/v1'), secret: 'k' },
      anthropic: { ...at(''), secret: 'k' },
      google: { ...at('/v1beta'), secret: 'k' },
      bedrock: at(''),
    },
    env: { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's', AWS_REGION: 'us-east-1' },
  })
  store = await storeIn(router.folder)
})

beforeEach(() => {
  provider.received.length = 0
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

const usd = (amount: number) => BigInt(Math.round(amount * 1e9))

/** One call with a key of this limit, and the body that reached the provider. */
async function ask(path: string, body: JsonObject, limitNano: bigint | null = null, headers = {}) {
  const { secret } = await newKey(store, { monthlyLimitNano: limitNano })
  const response = await router.call(path, body, { authorization: `Bearer ${secret}`, ...headers })
  const answer = (await response.json()) as JsonObject
  return {
    status: response.status,
    answer,
    dropped: response.headers.get('x-router-dropped'),
    sent: provider.received.at(-1)?.body,
  }
}

const chat = (model: string, more: JsonObject = {}) => ({ model, messages: [{ role: 'user', content: 'Hi' }], ...more })
const claude = 'anthropic/claude-sonnet-4-5-20250929'

describe('a caller that states no length', () => {
  test('without a limit gets the whole length of the model', async () => {
    expect((await ask('/v1/chat/completions', chat(claude))).sent.max_tokens).toBe(64_000)
    expect((await ask('/v1/chat/completions', chat('openai/gpt-5'))).sent.max_completion_tokens).toBeUndefined()
  })

  test('with a limit gets as much as costs an eighth of what is left, and it is sent', async () => {
    // 15 USD per million tokens: an eighth of 1.20 USD is 10,000.
    expect((await ask('/v1/chat/completions', chat(claude), usd(1.2))).sent.max_tokens).toBe(10_000)
    expect((await ask('/v1/responses', { model: claude, input: 'Hi' }, usd(1.2))).sent.max_tokens).toBe(10_000)
    // 10 USD per million.
    expect((await ask('/v1/chat/completions', chat('openai/gpt-5'), usd(1.2))).sent).toMatchObject({
      max_completion_tokens: 15_000,
    })
    const onResponses = { model: 'openai-responses/gpt-5', input: 'Hi' }
    expect((await ask('/v1/responses', onResponses, usd(1.2))).sent).toMatchObject({ max_output_tokens: 15_000 })
  })

  test('with a limit gets no more than its prompt leaves, where that is less than an eighth', async () => {
    // With its markup and what providers put before it no more than 146,000 tokens at 3 USD per million: 0.062 USD of 0.50 are left.
    const messages = [{ role: 'user', content: 'x'.repeat(144_912) }]
    const { status, sent } = await ask('/v1/chat/completions', { model: claude, messages }, usd(0.5))
    expect([status, sent.max_tokens]).toEqual([200, 4_133])
  })

  test('with a limit gets all that the model can give, where that is less: nothing is sent', async () => {
    expect((await ask('/v1/chat/completions', chat(claude), usd(100))).sent.max_tokens).toBe(64_000)
    expect(
      (await ask('/v1/chat/completions', chat('openai/gpt-5'), usd(100))).sent.max_completion_tokens,
    ).toBeUndefined()
  })

  test('gets the configured length at least, or nothing', async () => {
    expect((await ask('/v1/chat/completions', chat(claude), usd(0.1))).sent.max_tokens).toBe(4_096)
    const refused = await ask('/v1/chat/completions', chat(claude), usd(0.05))
    expect(refused).toMatchObject({ status: 402, answer: { error: { code: 'budget_exhausted' } } })
    expect(JSON.stringify(refused.answer)).toContain('so 4096 output tokens are assumed')
  })

  test('pays for all choices, and shares the eighth among them', async () => {
    const { sent } = await ask('/v1/chat/completions', chat('openai/gpt-5', { n: 3 }), usd(1.2))
    expect(sent).toMatchObject({ n: 3, max_completion_tokens: 5_000 })
  })
})

describe('a length that the provider does not take', () => {
  const nova = chat('bedrock/us.amazon.nova-2-lite-v1:0', { max_tokens: 600, reasoning_effort: 'high' })

  test('is held as all that the model can give', async () => {
    const { sent, status } = await ask('/v1/chat/completions', nova, usd(10))
    expect([status, sent.inferenceConfig?.maxTokens]).toEqual([200, undefined])
    provider.received.length = 0
    const refused = await ask('/v1/chat/completions', nova, usd(0.02))
    expect(refused).toMatchObject({ status: 402, answer: { error: { code: 'budget_exhausted' } } })
    expect(provider.received).toEqual([])
  })

  test('counts what a thinking budget adds to it', async () => {
    const thinking = chat(claude, { max_tokens: 600, reasoning: { max_tokens: 8_000 } })
    expect((await ask('/v1/chat/completions', thinking, usd(10))).sent.max_tokens).toBe(8_600)
    expect((await ask('/v1/chat/completions', thinking, usd(0.1))).status).toBe(402)
  })
})

describe('a manifest that sends a longer length than is asked for', () => {
  let longer: LoopbackProvider
  let own: TestRouter
  let ownStore: Store

  beforeAll(async () => {
    longer = await pricedProvider({ wait: async () => {} })
    const patch = `endpoints: { chat: { patch: { request: '$merge([$, { "max_tokens": max_tokens * 4 }])' } } }`
    own = await testRouter({ files: { 'providers/priced.yaml': `${pricedManifest(longer.url)}${patch}\n` } })
    ownStore = await storeIn(own.folder)
  })

  afterAll(async () => {
    await ownStore?.close()
    await own?.end()
    await longer?.close()
  })

  // 10 tokens are asked for, 40 are sent, and each costs 100,000 nano-USD.
  test.each([
    ['one choice', {}, 4_000_000n],
    ['each of three choices', { n: 3 }, 12_000_000n],
  ])('is held to what it sends, for %s', async (_, more, nano) => {
    const call = async (monthlyLimitNano: bigint) => {
      const { secret } = await newKey(ownStore, { monthlyLimitNano })
      return (await callOnce(own.url, secret, { ...tenTokens, ...more })).status
    }
    const before = longer.received.length
    expect(await call(nano - 1n)).toBe(402)
    expect(longer.received).toHaveLength(before)
    expect(await call(nano)).toBe(200)
    expect(longer.received.at(-1)?.body).toMatchObject({ max_tokens: 40, ...more })
  })
})

describe('a stated length above what the model can give', () => {
  test.each([
    ['/v1/chat/completions', chat(claude, { max_tokens: 200_000 }), 'max_tokens', 'max_tokens', 64_000],
    ['/v1/messages', chat(claude, { max_tokens: 200_000 }), 'max_tokens', 'max_tokens', 64_000],
    [
      '/v1/responses',
      { model: claude, input: 'Hi', max_output_tokens: 200_000 },
      'max_output_tokens',
      'max_tokens',
      64_000,
    ],
    [
      '/v1/chat/completions',
      chat('openai/gpt-5', { max_completion_tokens: 200_000 }),
      'max_completion_tokens',
      'max_completion_tokens',
      128_000,
    ],
    [
      '/v1/responses',
      { model: 'openai-responses/gpt-5', input: 'Hi', max_output_tokens: 200_000 },
      'max_output_tokens',
      'max_output_tokens',
      128_000,
    ],
  ] as const)('is lowered on %s (%#), and named', async (path, body, named, field, most) => {
    const { sent, dropped } = await ask(path, body as unknown as JsonObject)
    expect([sent[field], dropped]).toEqual([most, named])
    const strict = await ask(path, body as unknown as JsonObject, null, { 'x-router-strict': 'true' })
    expect(strict.status).toBe(400)
  })

  test('of two fields the larger one is lowered, and held', async () => {
    const both = { max_tokens: 300_000, max_completion_tokens: 10 }
    const { sent, dropped } = await ask('/v1/chat/completions', chat('openai/gpt-5', both))
    expect(sent).toMatchObject({ max_completion_tokens: 10 })
    expect(dropped).toContain('max_tokens')
    const smaller = { max_tokens: 20_000, max_completion_tokens: 10 }
    expect((await ask('/v1/chat/completions', chat('openai/gpt-5', smaller), usd(0.15))).status).toBe(402)
  })

  test('of two fields the larger one is held for each choice', async () => {
    // 60,000 tokens at 10 USD per million, and 0.002 USD at most for the prompt.
    const three = chat('openai/gpt-5', { max_tokens: 20_000, max_completion_tokens: 10, n: 3 })
    provider.received.length = 0
    expect((await ask('/v1/chat/completions', three, usd(0.59))).status).toBe(402)
    expect(provider.received).toEqual([])
    expect((await ask('/v1/chat/completions', three, usd(0.61))).status).toBe(200)
  })
})

describe('a prompt whose bytes do not fit', () => {
  // 40,000 characters are some 8,000 tokens; a million of them cost 1.25 USD, and ten of output 0.0001 USD.
  const long = chat('openai/gpt-5', {
    messages: [{ role: 'user', content: 'The quick brown fox jumps over the lazy dog. '.repeat(889) }],
    max_completion_tokens: 10,
  })

  test('is counted as tokens, and fits with them', async () => {
    expect((await ask('/v1/chat/completions', long, usd(0.06))).status).toBe(200)
    expect((await ask('/v1/chat/completions', long, usd(0.015))).status).toBe(200)
  })

  test('is refused where its tokens do not fit either', async () => {
    expect((await ask('/v1/chat/completions', long, usd(0.011))).status).toBe(402)
    expect((await ask('/v1/chat/completions', long, usd(0.001))).status).toBe(402)
  })

  test('has twice as many tokens for a model with another tokenizer', async () => {
    const other = { ...long, model: claude, max_completion_tokens: 10 }
    // 3 USD per million: 40,000 bytes 0.12 USD, 18,000 tokens 0.06 USD.
    expect((await ask('/v1/chat/completions', other, usd(0.08))).status).toBe(200)
    expect((await ask('/v1/chat/completions', other, usd(0.04))).status).toBe(402)
  })
})

test('a call that leaves open how often it searches is told so where it does not fit, and fits once it says it', async () => {
  const search = (more: JsonObject = {}) => ({
    ...chat(claude, { max_tokens: 10 }),
    tools: [{ type: 'web_search_20250305', name: 'web_search', ...more }],
  })
  // A use may show the model all that it can read: 200,000 tokens at 3 USD per million, ten times.
  const refused = await ask('/v1/messages', search(), usd(3))
  expect(refused.status).toBe(402)
  expect(JSON.stringify(refused.answer)).toContain(
    '(it sets no limit such as max_uses on the tools that run at the provider, so 10 uses of each are assumed)',
  )
  expect((await ask('/v1/messages', search({ max_uses: 1 }), usd(3))).status).toBe(200)
})
