import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import { noLimits } from '../../../src/store/keys.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { wav } from '../../media/sounds.ts'
import { newKey, storeIn } from '../money/budget-world.ts'

// What a call reserves and counts that may go to several targets: the most that any of them can take, whichever stands first.

const priced = (api: string, output: number, more: object = {}) => ({
  api,
  pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: output }],
  ...more,
})
const manifest = (url: string) => ({
  ...{ slug: 'one', name: 'One', base_url: url, auth: { scheme: 'none' }, dialect: 'openai-chat' },
  endpoints: { transcribe: {} },
  models: {
    cheap: priced('chat', 1e-6, { max_output_tokens: 4_000 }),
    expensive: priced('chat', 1e-4, { max_output_tokens: 100 }),
    vectors: { api: 'embedding', pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 0 }] },
    'expensive-vectors': {
      ...{ api: 'embedding', pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-3, output_price: 0 }] },
    },
    'short-words': priced('transcription', 1e-6, { max_output_tokens: 50 }),
    words: priced('transcription', 1e-6, { max_output_tokens: 200 }),
  },
})

const orders = {
  chat: ['one/cheap', 'one/expensive'],
  embedding: ['one/vectors', 'one/expensive-vectors'],
  transcription: ['one/short-words', 'one/words'],
}

let provider: LoopbackProvider
let router: TestRouter
let store: Store

beforeAll(async () => {
  provider = await loopbackProvider(({ path }, response) => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 }
    if (path.endsWith('embeddings')) {
      const data = [{ object: 'embedding', index: 0, embedding: [1] }]
      answerJson(response, { object: 'list', data, usage: { prompt_tokens: 5, total_tokens: 5 } })
    } else if (path.endsWith('transcriptions')) answerJson(response, { text: 'Hi' })
    else answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage })
  })
  const policies = Object.entries(orders).flatMap(([name, targets]) => [
    [`${name}-up`, { targets }],
    [`${name}-down`, { targets: targets.toReversed() }],
  ])
  router = await testRouter({
    files: { 'providers/one.yaml': JSON.stringify(manifest(provider.url)) },
    settings: { policies: Object.fromEntries(policies), budget: { default_output_tokens: 5_000 } },
  })
  store = await storeIn(router.folder)
})

beforeEach(() => {
  provider.received.length = 0
})

afterAll(async () => {
  await store?.close()
  await router?.end()
  await provider?.close()
})

const messages = [{ role: 'user', content: 'Hi' }]

async function call(path: string, body: JsonObject | FormData, changes: Parameters<typeof newKey>[1]) {
  const { secret } = await newKey(store, changes)
  const isForm = body instanceof FormData
  const response = await fetch(router.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, ...(!isForm && { 'content-type': 'application/json' }) },
    body: isForm ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, text, left: Number(response.headers.get('x-ratelimit-remaining-tokens')) }
}

const limited = { limits: { ...noLimits, tokensPerMinute: 1_000_000 } }

describe.each(['up', 'down'])('prices that go %s', (order) => {
  test('a conversation reserves what the most expensive target can cost', async () => {
    const body = { model: `policy/chat-${order}`, max_tokens: 100, messages }
    // 100 tokens cost 10,000,000 nano-USD at the one and 100,000 at the other.
    const short = await call('/v1/chat/completions', body, { monthlyLimitNano: 9_999_999n })
    expect([short.status, provider.received.length]).toEqual([402, 0])
    expect((await call('/v1/chat/completions', body, { monthlyLimitNano: 10_000_000n })).status).toBe(200)
  })

  test('an embedding reserves what the most expensive target can cost', async () => {
    const body = { model: `policy/embedding-${order}`, input: 'Hi' }
    // A text of two bytes has ten tokens at most.
    const short = await call('/v1/embeddings', body, { monthlyLimitNano: 9_999_999n })
    expect([short.status, provider.received.length]).toEqual([402, 0])
    expect((await call('/v1/embeddings', body, { monthlyLimitNano: 10_000_000n })).status).toBe(200)
  })
})

describe.each(['up', 'down'])('lengths that go %s', (order) => {
  test('a conversation counts the longest reply in advance', async () => {
    const { left } = await call('/v1/chat/completions', { model: `policy/chat-${order}`, messages }, limited)
    // Of the prompt five tokens are estimated.
    expect(left).toBe(1_000_000 - 5 - 4_000)
  })

  test('a refusal names the longest reply that was assumed', async () => {
    const { status, text } = await call(
      '/v1/chat/completions',
      { model: `policy/chat-${order}`, messages },
      {
        monthlyLimitNano: 1n,
      },
    )
    expect([status, text]).toEqual([402, expect.stringContaining('so 4000 output tokens are assumed')])
  })

  test('a transcription counts the longest text in advance', async () => {
    const form = new FormData()
    form.set('model', `policy/transcription-${order}`)
    form.set('file', new Blob([new Uint8Array(wav(1))], { type: 'audio/wav' }), 'a.wav')
    const both = await call('/v1/audio/transcriptions', form, limited)
    form.set('model', 'one/words')
    const longest = await call('/v1/audio/transcriptions', form, limited)
    form.set('model', 'one/short-words')
    const shortest = await call('/v1/audio/transcriptions', form, limited)
    expect([both.status, longest.status, shortest.status]).toEqual([200, 200, 200])
    expect(both.left).toBe(longest.left)
    expect(shortest.left - longest.left).toBe(150)
  })
})
