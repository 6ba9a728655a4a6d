import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { errorIn, newKey, storeIn } from '../money/budget-world.ts'

// Fields that decide who serves, what it costs or what is kept, through a whole router.

let provider: LoopbackProvider
let router: TestRouter
let store: Store
let stranger: string

/** Answers in the form of the API of the path; a message is made in a container of its own. */
beforeAll(async () => {
  let made = 0
  provider = await loopbackProvider(({ path, body }, response) => {
    const number = ++made
    if (!path.endsWith('/messages')) {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
      const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
      answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model: body.model, choices, usage })
      return
    }
    const container = { id: `container_${number}`, expires_at: '2030-01-01T00:00:00Z' }
    const message = { id: `msg_${number}`, type: 'message', role: 'assistant', model: body.model }
    const usage = { input_tokens: 10, output_tokens: 2 }
    const content = [{ type: 'text', text: 'Hi' }]
    if (!body.stream) {
      answerJson(response, { ...message, container, content, stop_reason: 'end_turn', stop_sequence: null, usage })
      return
    }
    beginStream(response)
    const delta = { stop_reason: 'end_turn', stop_sequence: null, container }
    for (const event of [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta, usage },
      { type: 'message_stop' },
    ])
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  })
  router = await testRouter({
    providers: {
      anthropic: { base_url: provider.url, secret: 's' },
      openai: { base_url: provider.url, secret: 's' },
      openrouter: { base_url: provider.url, secret: 's' },
    },
  })
  store = await storeIn(router.folder)
  const other = await store.organizations.create('other')
  stranger = (await newKey(store, { organization: other.id })).secret
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

beforeEach(() => {
  provider.received.length = 0
})

const claude = { model: 'anthropic/claude-haiku-4-5', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }

test.each([
  ['chat/completions', { max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }],
  ['responses', { input: 'Hi' }],
  ['messages', { max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }],
])('no other model than the one that was asked for is bought through /v1/%s', async (path, body) => {
  for (const own of [
    { fallbacks: ['anthropic/claude-opus-5'] },
    { extra_body: { models: ['anthropic/claude-opus-5'] } },
    { openrouter: { models: ['anthropic/claude-opus-5'] } },
  ]) {
    const response = await router.call(`/v1/${path}`, { model: 'openrouter/openai/gpt-5-mini', ...body, ...own })
    expect(response.status).toBe(400)
    const { code, param, message } = await errorIn(response)
    expect([code, param, message]).toEqual([
      'invalid_request',
      expect.stringMatching(/(models|fallbacks)$/),
      expect.stringContaining('`models`'),
    ])
  }
  expect(provider.received).toEqual([])
})

test.each([
  ['chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
  ['responses', { input: 'Hi' }],
  ['messages', { max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }],
])(
  'a field is known by its exact name alone: providers that read others as the same get none through /v1/%s',
  async (path, body) => {
    for (const name of [
      'Model',
      'MODELS',
      ' model',
      'mes\u017fages',
      'Input',
      'Max_Tokens',
      'Service_Tier',
      'Background',
    ]) {
      for (const model of ['openrouter/openai/gpt-5-mini', 'anthropic/claude-haiku-4-5', 'openai/gpt-4.1']) {
        const response = await router.call(`/v1/${path}`, { model, ...body, [name]: 'openai/o1-pro' })
        expect([name, response.status, (await errorIn(response)).param]).toEqual([name, 400, name])
      }
    }
    expect(provider.received).toEqual([])
    const harmless = { 'X-Own': 1, Temperatur: 2, model: 'openai/gpt-4.1' }
    if (path.startsWith('chat')) expect((await router.call(`/v1/${path}`, { ...body, ...harmless })).status).toBe(200)
  },
)

describe('a container', () => {
  test.each([{}, { stream: true }])('goes on with the organization that it was made for, %j', async (how) => {
    const text = await (await router.call('/v1/messages', { ...claude, ...how })).text()
    const container = /container_\d+/.exec(text)?.[0]
    const own = await router.call('/v1/messages', { ...claude, container })
    expect([own.status, provider.received.at(-1)?.body.container]).toEqual([200, container])
    provider.received.length = 0
    const others = await router.call('/v1/messages', { ...claude, container }, { authorization: `Bearer ${stranger}` })
    expect([others.status, (await errorIn(others)).param]).toEqual([400, 'container'])
    const elsewhere = await router.call('/v1/messages', { ...claude, model: 'openai/gpt-5', container })
    expect([elsewhere.status, (await errorIn(elsewhere)).param]).toEqual([400, 'container'])
    const counted = await router.call('/v1/messages/count_tokens', { ...claude, container: 'container_0' })
    expect(counted.status).toBe(400)
    expect(provider.received).toEqual([])
  })
})

describe("Anthropic's SDK", () => {
  const client = (apiKey = testKey) => new Anthropic({ baseURL: router.url, apiKey, maxRetries: 0 })
  const bodies = () => provider.received.map(({ body }) => body as JsonObject)
  const sizes = () => bodies().map(({ messages }) => (messages as unknown[]).length)

  test('continues a thread where threads are', async () => {
    const thread = client().beta.messages.thread({ model: claude.model, max_tokens: 100 })
    await thread.send({ role: 'user', content: 'One' })
    await thread.send({ role: 'user', content: 'Two' })
    expect(bodies().map(({ thread }) => (thread as JsonObject).type)).toEqual(['create', 'continue'])
    expect(sizes()).toEqual([1, 1])
  })

  test.each([
    { id: 'thread_1' },
    { type: 'continue', message_id: 'msg_1' },
    { type: 'continue', thread: { id: 'x' } },
    'msg_1',
  ])('names no thread in other words: %j', async (thread) => {
    const refused = await router.call('/v1/messages', { ...claude, thread })
    expect([refused.status, (await errorIn(refused)).param]).toEqual([
      typeof thread === 'string' ? 404 : 400,
      expect.stringMatching(/^thread\./),
    ])
    expect(provider.received).toEqual([])
  })

  test('goes on without a thread at a model that has none', async () => {
    const thread = client().beta.messages.thread({
      model: 'openai/gpt-5',
      max_tokens: 100,
      unsupportedRequestBehavior: 'continue_unthreaded',
    })
    await thread.send({ role: 'user', content: 'One' })
    await thread.send({ role: 'user', content: 'Two' })
    expect(sizes()).toEqual([1, 3])
    expect(bodies().every((body) => !('thread' in body))).toBe(true)
  })

  test('begins a new thread where the router knows none', async () => {
    const before = client().beta.messages.thread({ model: claude.model, max_tokens: 100 })
    await before.send({ role: 'user', content: 'One' })
    const thread = { type: 'continue', previous_message_id: before.previousMessageId }
    const refused = await router.call('/v1/messages', { ...claude, thread }, { authorization: `Bearer ${stranger}` })
    expect([refused.status, (await errorIn(refused)).details]).toEqual([404, { error_code: 'thread_not_found' }])
  })
})

test('nothing is stored at a provider for an organization that stores nothing', async () => {
  const { id } = await store.organizations.create('forgetful')
  await store.organizations.setRetention(id, { stores: false })
  const { secret } = await newKey(store, { organization: id })
  const body = { model: 'openai/gpt-5', store: true, messages: [{ role: 'user', content: 'Hi' }] }
  const response = await router.call('/v1/chat/completions', body, { authorization: `Bearer ${secret}` })
  expect([response.status, provider.received[0]?.body.store]).toEqual([200, false])
})
