import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  pause,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { administration } from '../../management/administration.ts'
import { wav } from '../../media/sounds.ts'

// What requests say of their routing, through a whole router, in every client API.

let provider: LoopbackProvider
let router: TestRouter
let manage: ReturnType<typeof administration>

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

/** Answers in the form of the path; models whose name has `fails` fail, those that have `sleeps` never answer. */
beforeAll(async () => {
  provider = await loopbackProvider(async ({ path, body }, response) => {
    const model = Array.isArray(body) ? new Map(body).get('model') : body.model
    if (/sleeps/.test(model)) return
    if (/fails/.test(model)) return answerJson(response, { error: { message: 'broken', type: 'server_error' } }, 500)
    if (path.endsWith('/embeddings')) {
      if (/slow/.test(model)) await pause(200)
      const data = [{ object: 'embedding', index: 0, embedding: [0.5] }]
      return answerJson(response, { object: 'list', data, model, usage: { prompt_tokens: 1, total_tokens: 1 } })
    }
    if (path.endsWith('/transcriptions'))
      return answerJson(response, { text: 'Hi', usage: { type: 'duration', seconds: 1 } })
    if (path.endsWith('/count_tokens')) return answerJson(response, { input_tokens: 7 })
    if (path.endsWith('/messages')) return answerMessage(model, response)
    if (path.endsWith('/responses')) return answerResponse(model, response)
    answerChat(model, body.stream === true, response)
  })
  const at = { base_url: provider.url, secret: 'a-secret', unknown_models: 'pass' }
  const pricing = (price: number) => [{ prompt_tokens_threshold: 0, input_price: price, output_price: price }]
  router = await testRouter({
    providers: {
      openai: {
        ...at,
        models: {
          cheap: { api: 'chat', pricing: pricing(1e-6) },
          dear: { api: 'chat', pricing: pricing(1e-4) },
          slow: { api: 'embedding', max_inputs: 1 },
        },
      },
      groq: at,
      openrouter: at,
      anthropic: at,
      'openai-responses': at,
    },
  })
  manage = administration(router)
})

type Answering = Parameters<Parameters<typeof loopbackProvider>[0]>[1]

function answerMessage(model: string, response: Answering): void {
  const content = [{ type: 'text', text: 'Hi' }]
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model, content, stop_reason: 'end_turn' }
  answerJson(response, { ...message, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 5 } })
}

function answerResponse(model: string, response: Answering): void {
  const content = [{ type: 'output_text', text: 'Hi', annotations: [] }]
  const output = [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }]
  const counts = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }
  answerJson(response, {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model,
    output,
    usage: counts,
  })
}

function answerChat(model: string, stream: boolean, response: Answering): void {
  const facts = { id: 'c', created: 1, model }
  if (!stream) {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
    answerJson(response, { ...facts, object: 'chat.completion', choices, usage })
    return
  }
  beginStream(response)
  const chunk = (choices: object[], more = {}) =>
    `data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  response.write(chunk([{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }]))
  response.end(`${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}${chunk([], { usage })}data: [DONE]\n\n`)
}

afterAll(async () => {
  await router?.end()
  await provider?.close()
})

beforeEach(() => {
  provider.received.length = 0
})

const hello = [{ role: 'user', content: 'Hi' }]
const apis: readonly (readonly [path: string, body: JsonObject])[] = [
  ['/v1/chat/completions', { max_tokens: 100, messages: hello }],
  ['/v1/responses', { max_output_tokens: 100, input: 'Hi' }],
  ['/v1/messages', { max_tokens: 100, messages: hello }],
]

/** The models that were asked, in their order. */
const askedModels = () => provider.received.map(({ body }) => body.model as string)
const said = { route: 'fallback', session_id: 's-1', provider: { sort: 'price', max_price: null, zdr: false } }
const ownFields = ['models', 'provider', 'route', 'session_id']

function expectNothingOfRouting({ body }: Received): void {
  const names = Array.isArray(body) ? body.map(([name]) => String(name).split('[')[0]) : Object.keys(body)
  expect(names.filter((name) => ownFields.includes(name ?? ''))).toEqual([])
}

async function call(path: string, body: JsonObject, headers: Record<string, string> = {}) {
  const response = await router.call(path, body, headers)
  const text = await response.text()
  const { status } = response
  const served = response.headers.get('x-router-model')
  const error = status >= 400 ? (JSON.parse(text).error as JsonObject) : undefined
  return { status, served, error, dropped: response.headers.get('x-router-dropped'), text }
}

describe.each(apis)('POST %s', (path, body) => {
  test.each([{}, { stream: true }])(
    'asks further models when the first one fails, and tells no provider, %j',
    async (how) => {
      const models = ['openai/fails-too', 'openrouter/works']
      const answer = await call(path, { model: 'groq/fails', models, route: 'fallback', ...body, ...how })
      expect(answer).toMatchObject({ status: 200, served: 'openrouter/works', dropped: null })
      expect(askedModels()).toEqual(['fails', 'fails-too', 'works'])
      for (const received of provider.received) expectNothingOfRouting(received)
    },
  )

  test('models alone: the first of them stands for the model', async () => {
    const answer = await call(path, { models: ['groq/fails', 'openai/m'], ...body })
    expect([answer.status, answer.served]).toEqual([200, 'openai/m'])
    expect(askedModels()).toEqual(['fails', 'm'])
    for (const received of provider.received) expectNothingOfRouting(received)
    expect((await call(path, { models: [], ...body })).status).toBe(400)
  })

  test('wishes that are not heeded are reported', async () => {
    const provider = { preferred_max_latency: 1, preferred_min_throughput: { p50: 100 } }
    const answer = await call(path, { model: 'openrouter/m', ...body, provider })
    expect([answer.status, answer.dropped?.split(',').sort()]).toEqual([
      200,
      ['provider.preferred_max_latency', 'provider.preferred_min_throughput'],
    ])
    const sealed = await call(path, { model: 'openrouter/m', ...body, provider: { zdr: true } })
    expect([sealed.status, sealed.text]).toEqual([404, expect.stringContaining('`zdr` forbids')])
  })

  test('tells none of it to a provider of its own format, or of another one', async () => {
    for (const model of ['openai/m', 'anthropic/m', 'openai-responses/m', 'openrouter/m', 'groq/m']) {
      const answer = await call(path, { model, models: ['openai/n'], ...said, ...body })
      expect([answer.status, answer.served, answer.dropped], model).toEqual([200, model, null])
    }
    expect(provider.received).toHaveLength(5)
    for (const received of provider.received) expectNothingOfRouting(received)
  })

  test('a session stays where it had to go', async () => {
    const session = { model: 'groq/fails', models: ['openai/m'], session_id: `a session at ${path}` }
    for (const asked of [['fails', 'm'], ['m']]) {
      provider.received.length = 0
      expect((await call(path, { ...session, ...body })).served).toBe('openai/m')
      expect(askedModels()).toEqual(asked)
    }
  })

  test('the wishes of a request decide who is asked', async () => {
    const model = 'groq/m'
    const all = { model, models: ['openai/cheap', 'openai/dear', 'openrouter/m'], ...body }
    const servedWith = async (wishes: JsonObject) => (await call(path, { ...all, provider: wishes })).served
    expect(await servedWith({ only: ['OpenRouter'] })).toBe('openrouter/m')
    expect(await servedWith({ order: ['openrouter', 'openai'] })).toBe('openrouter/m')
    expect(await servedWith({ sort: 'price' })).toBe('openai/cheap')
    expect(await servedWith({ ignore: ['groq'] })).toBe('openai/cheap')
    expect(await servedWith({ max_price: { completion: 1 } })).toBe('openai/cheap')
    const failing = { ...all, model: 'groq/fails' }
    const alone = await call(path, { ...failing, provider: { allow_fallbacks: false } })
    expect([alone.status, alone.error?.provider ?? 'groq']).toEqual([502, 'groq'])
    const none = await call(path, { ...all, provider: { only: ['mistral'] } })
    expect([none.status, none.error?.code ?? none.error?.type]).toEqual([404, expect.stringMatching(/not_found/)])
  })

  test('the time of a call is the shorter one of its header', async () => {
    const begun = performance.now()
    const answer = await call(path, { model: 'groq/sleeps', ...body }, { 'x-router-timeout': '300ms' })
    // Some of the time may have passed before the provider was asked.
    expect([answer.status, answer.text]).toEqual([502, expect.stringMatching(/within (?:[12]\d\d|300) ms/)])
    expect(performance.now() - begun).toBeLessThan(5_000)
    for (const wrong of ['30', 'soon', '0s', '25h', '-1s']) {
      const refused = await call(path, { model: 'groq/m', ...body }, { 'x-router-timeout': wrong })
      expect(refused.status, wrong).toBe(400)
      expect(refused.text).toContain('x-router-timeout')
    }
  })

  test('a wrong value is a 400 that names the field', async () => {
    for (const wrong of [
      { models: 'm' },
      { provider: { sort: 'best' } },
      { route: 'x' },
      { session_id: 'x'.repeat(257) },
    ]) {
      const refused = await call(path, { model: 'groq/m', ...body, ...wrong })
      expect(refused.status).toBe(400)
      expect(refused.text).toContain(`'${Object.keys(wrong)[0]}`)
    }
    expect(provider.received).toEqual([])
  })
})

describe('what a caller may not use', () => {
  const body = { messages: hello }

  test('is passed over; where nothing is left the status is that of the first', async () => {
    const limited = await manage.newKey()
    await manage.post(`/apikey/${limited.id}/access`, { models: ['groq/m', 'openai/m'] })
    const asLimited = { authorization: `Bearer ${limited.secret}` }
    const skipped = await call(
      '/v1/chat/completions',
      { model: 'groq/fails', models: ['openrouter/m', 'openai/m'], ...body },
      asLimited,
    )
    expect([skipped.status, skipped.served, askedModels()]).toEqual([200, 'openai/m', ['m']])
    const refused = await call(
      '/v1/chat/completions',
      { model: 'openrouter/m', models: ['openrouter/n'], ...body },
      asLimited,
    )
    expect([refused.status, refused.error?.param]).toEqual([403, 'model'])
    const unknown = await call(
      '/v1/chat/completions',
      { model: 'nobody/m', models: ['openrouter/n'], ...body },
      asLimited,
    )
    expect([unknown.status, unknown.error?.param]).toEqual([404, 'model'])
  })

  test('policies and aliases are names like any other; @eu holds for all', async () => {
    await manage.put('/policy/some', { targets: ['openai/fails', 'openrouter/m'] })
    await manage.post('/alias', { name: 'another', target: 'some' })
    const answer = await call('/v1/chat/completions', {
      model: 'groq/fails',
      models: ['another', 'policy/some'],
      ...body,
    })
    expect([answer.served, askedModels()]).toEqual(['openrouter/m', ['fails', 'fails', 'm']])
    provider.received.length = 0
    const european = await call('/v1/chat/completions', { model: 'some@eu', models: ['openrouter/m'], ...body })
    expect([european.status, askedModels()]).toEqual([404, []])
  })
})

test('the rules of a policy hold from the change on', async () => {
  const body = { model: 'ruled', messages: hello }
  const put = (rules: object) => manage.put('/policy/ruled', { targets: ['groq/sleeps', 'openai/m'], ...rules })
  const weighted = [{ target: 'groq/sleeps', weight: 0 }, 'openai/m']
  expect((await put({ targets: weighted, sort: 'weighted' })).status).toBe(201)
  expect(await call('/v1/chat/completions', body)).toMatchObject({ status: 200, served: 'openai/m' })
  expect(askedModels()).toEqual(['m'])
  expect((await put({ total: '300ms' })).body).not.toHaveProperty('sort')
  const late = await call('/v1/chat/completions', body)
  expect([late.status, late.served, askedModels()]).toEqual([200, 'openai/m', ['m', 'sleeps', 'm']])
  expect((await put({ targets: ['groq/sleeps', 'openai/sleeps'], total: '300ms' })).status).toBe(200)
  const never = await call('/v1/chat/completions', body)
  expect([never.status, never.error?.code]).toEqual([502, 'provider_timeout'])
  expect((await put({ first_event: '200ms' })).body).not.toHaveProperty('total')
  const streamed = await call('/v1/chat/completions', { ...body, stream: true })
  expect([streamed.status, streamed.served]).toEqual([200, 'openai/m'])
})

test('a target that would lose a field is passed over where every parameter is required', async () => {
  const body = { model: 'anthropic/m', models: ['openai/m'], seed: 7, messages: hello }
  expect(await call('/v1/chat/completions', body)).toMatchObject({ served: 'anthropic/m', dropped: 'seed' })
  const required = { provider: { require_parameters: true } }
  expect(await call('/v1/chat/completions', { ...body, ...required })).toMatchObject({
    served: 'openai/m',
    dropped: null,
  })
  const alone = await call('/v1/chat/completions', { ...body, models: ['anthropic/n'], ...required })
  expect([alone.status, alone.error?.code]).toEqual([400, 'loss_refused'])
})

test('what is reserved covers the dearest of the targets', async () => {
  const { secret } = await manage.newKey({ monthly_limit: 0.01 })
  const as = { authorization: `Bearer ${secret}` }
  const body = { messages: hello, max_tokens: 1_000 }
  expect(await call('/v1/chat/completions', { model: 'openai/cheap', ...body }, as)).toMatchObject({ status: 200 })
  const both = await call('/v1/chat/completions', { model: 'openai/cheap', models: ['openai/dear'], ...body }, as)
  expect([both.status, both.error?.code]).toEqual([402, 'budget_exhausted'])
  const capped = { models: ['openai/dear'], provider: { max_price: { prompt: 2 } } }
  expect(await call('/v1/chat/completions', { model: 'openai/cheap', ...capped, ...body }, as)).toMatchObject({
    status: 200,
  })
})

test('tokens are counted for the first target that may serve', async () => {
  const body = { model: 'nobody/m', models: ['anthropic/m'], ...said, messages: hello }
  const answer = await call('/v1/messages/count_tokens', body)
  expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { input_tokens: 7 }])
  for (const received of provider.received) expectNothingOfRouting(received)
})

describe('other operations', () => {
  test('ask further models, and tell no provider', async () => {
    const body = { model: 'openai/fails', models: ['openai/embeds'], ...said, input: 'Hi' }
    const answer = await call('/v1/embeddings', body)
    expect([answer.status, answer.served, answer.dropped]).toEqual([200, 'openai/embeds', null])
    expect(askedModels()).toEqual(['fails', 'embeds'])
    for (const received of provider.received) expectNothingOfRouting(received)
    const nameless = await call('/v1/embeddings', {
      models: ['openai/embeds'],
      input: 'Hi',
      provider: { preferred_max_latency: 1 },
    })
    expect([nameless.status, nameless.dropped]).toEqual([200, 'provider.preferred_max_latency'])
    const wrong = await call('/v1/embeddings', { ...body, provider: { only: 'openai' } })
    expect([wrong.status, wrong.error?.param]).toEqual([400, 'provider.only'])
    const soon = { 'x-router-timeout': '600ms' }
    const next = await call('/v1/embeddings', { ...body, model: 'openai/sleeps' }, soon)
    expect([next.status, next.served]).toEqual([200, 'openai/embeds'])
    const late = await call('/v1/embeddings', { input: 'Hi', model: 'openai/sleeps' }, soon)
    expect([late.status, late.error?.code]).toEqual([502, 'provider_timeout'])
  })

  test('have one time for all requests that they are made of', async () => {
    const body = { model: 'openai/slow', input: Array.from({ length: 9 }, () => 'Hi') }
    const answer = await call('/v1/embeddings', body, { 'x-router-timeout': '350ms' })
    expect([answer.status, answer.error?.code]).toEqual([502, 'provider_timeout'])
    expect((await call('/v1/embeddings', body, { 'x-router-timeout': '30s' })).status).toBe(200)
  })

  test('read them in forms as well', async () => {
    const form = async (fields: readonly (readonly [string, string])[]) => {
      const body = new FormData()
      for (const [name, value] of fields) body.append(name, value)
      body.append('file', new Blob([new Uint8Array(wav(1))]), 'a.wav')
      const authorization = `Bearer ${(await manage.newKey()).secret}`
      const response = await fetch(`${router.url}/v1/audio/transcriptions`, {
        method: 'POST',
        body,
        headers: { authorization },
      })
      await response.arrayBuffer()
      return [response.status, response.headers.get('x-router-model'), response.headers.get('x-router-dropped')]
    }
    const models = [['models[]', 'openai/hears']] as const
    expect(await form([...models, ['model', 'openai/fails'], ['session_id', 's']])).toEqual([200, 'openai/hears', null])
    expect(await form([...models, ['model', 'nobody/m']])).toEqual([200, 'openai/hears', null])
    expect(await form(models)).toEqual([200, 'openai/hears', null])
    const only = [['provider[only][]', 'groq'] as const]
    expect(await form([['model', 'openai/hears'], ...only])).toEqual([404, null, null])
    expect(
      await form([
        ['model', 'openai/hears'],
        ['provider', '{"only":["groq"]}'],
      ]),
    ).toEqual([404, null, null])
    expect(await form([['model', 'openai/fails'], ...models, ['provider[allow_fallbacks]', 'false']])).toEqual([
      ...[502, 'openai/fails', null],
    ])
    for (const received of provider.received) expectNothingOfRouting(received)
  })
})
