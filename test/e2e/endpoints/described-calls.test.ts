import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { storeIn } from '../money/budget-world.ts'

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const reply = {
  id: 'c1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage,
}
const response = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  output: [
    { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] },
  ],
  usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
}
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 2 },
}

let provider: LoopbackProvider
let router: TestRouter
let store: Store
beforeAll(async () => {
  provider = await loopbackProvider(({ path, body }, answer) => {
    if (body.stream) {
      beginStream(answer)
      const chunk = (more: object) => `data: ${JSON.stringify({ id: 'c1', choices: [], ...more })}\n\n`
      const choices = [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
      return void answer.end(`${chunk({ choices })}${chunk({ usage })}data: [DONE]\n\n`)
    }
    answerJson(answer, path.endsWith('/messages') ? message : path.endsWith('/responses') ? response : reply)
  })
  const settings = { base_url: provider.url, secret: '${KEY}' }
  router = await testRouter({
    providers: { openai: settings, 'openai-responses': settings, anthropic: settings, cohere: settings },
    env: { KEY: 'sk-1' },
  })
  store = await storeIn(router.folder)
})
afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})
beforeEach(() => {
  provider.received.length = 0
})

const requesty = {
  tags: ['a', 'b'],
  user_id: 'u-1',
  trace_id: 't-1',
  session_id: 's-1',
  extra: { country: 'at', tier: 2, beta: true, none: null },
}
const headers = {
  'x-title': 'My App',
  'http-referer': 'https://app.example',
  'X-Requesty-Agent': 'münchen',
  'x-requesty-api-key': 'sk-not-a-description',
}
const recorded = {
  origin_title: 'My App',
  origin_referer: 'https://app.example',
  agent: 'münchen',
  tags: 'a,b',
  trace_id: 't-1',
  session_id: 's-1',
  country: 'at',
  tier: '2',
  beta: 'true',
}

const calls = [
  ['/v1/chat/completions', { model: 'openai/gpt-4o', messages: [{ role: 'user', content: 'Hi' }] }],
  ['/v1/responses', { model: 'openai-responses/gpt-4o', input: 'Hi' }],
  ['/v1/responses', { model: 'openai/gpt-4o', input: 'Hi' }],
  [
    '/v1/messages',
    { model: 'anthropic/claude-sonnet-4-5', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] },
  ],
  ['/v1/messages', { model: 'openai/gpt-4o', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }],
] as const

describe.each(calls)('%s to %j', (path, body) => {
  test('is recorded as its client describes it, and the provider hears nothing of that', async () => {
    const answer = await router.call(path, { ...body, requesty }, { ...headers, 'x-router-strict': 'true' })
    expect(answer.status).toBe(200)
    const id = answer.headers.get('x-request-id')
    const row = await newestRow()
    expect(row).toMatchObject({ id, user: 'u-1' })
    expect(row?.metadata).toEqual(recorded)
    const [sent] = provider.received
    expect(JSON.stringify(sent?.body)).not.toMatch(/requesty|t-1|u-1|country/)
    expect(Object.keys(sent?.headers ?? {}).filter((name) => /requesty|title|referer/.test(name))).toEqual([])
  })

  test('asks for caching where that must be asked for, and says so where it cannot be', async () => {
    const answer = await router.call(path, { ...body, requesty: { auto_cache: true } })
    const isAsked = provider.received[0]?.body.cache_control !== undefined
    expect(isAsked).toBe(body.model.startsWith('anthropic/'))
    if (isAsked) expect(provider.received[0]?.body.cache_control).toEqual({ type: 'ephemeral' })
    expect(answer.headers.get('x-router-dropped')).toBe(isAsked ? null : 'requesty.auto_cache')
  })

  test.each([
    [{ tags: 'a' }, 'requesty.tags'],
    [{ user_id: 7 }, 'requesty.user_id'],
    [{ extra: { deep: {} } }, 'requesty.extra.deep'],
    [{ trace_id: 'x'.repeat(513) }, 'requesty.trace_id'],
    [{ extra: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`f${n}`, 'x'])) }, 'requesty.extra'],
    [{ auto_cache: 'yes' }, 'requesty.auto_cache'],
  ])('is refused when the description is wrong: %#', async (wrong, param) => {
    const answer = await router.call(path, { ...body, requesty: wrong })
    expect(answer.status).toBe(400)
    expect(((await answer.json()) as { error: { param: string } }).error.param).toBe(param)
    expect(provider.received).toEqual([])
  })
})

test('the metadata of the body, requesty and the tags override what headers say, in this order', async () => {
  const body = {
    model: 'openai/gpt-4o',
    messages: [{ role: 'user', content: 'Hi' }],
    metadata: { agent: 'body', team: 'body', task: 'body' },
    requesty: { extra: { team: 'extra', task: 'extra' }, user_id: 'second' },
    user: 'first',
  }
  const tags = { 'x-requesty-agent': 'header', 'x-router-tags': 'task=tag' }
  expect((await router.call('/v1/chat/completions', body, tags)).status).toBe(200)
  expect(await newestRow()).toMatchObject({ user: 'first', metadata: { agent: 'body', team: 'extra', task: 'tag' } })
})

test('`usage: {include: true}` asks for the usage of a stream, and no provider gets it', async () => {
  const body = { model: 'openai/gpt-4o', messages: [{ role: 'user', content: 'Hi' }], stream: true }
  const wishes = [
    {},
    { usage: { include: false } },
    { usage: { include: true } },
    { stream_options: { include_usage: true } },
  ]
  const texts = await Promise.all(
    wishes.map(async (wish) => await (await router.call('/v1/chat/completions', { ...body, ...wish })).text()),
  )
  expect(texts.map((text) => /"choices":\[\][^\n]*"usage":\{/.test(text))).toEqual([false, false, true, true])
  expect(provider.received.filter((sent) => 'usage' in sent.body)).toEqual([])
})

const newestRow = async () => (await Array.fromAsync(store.ledger.each({}))).at(-1)
