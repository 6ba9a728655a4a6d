import type { ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { accumulated, eventsIn } from '../../api/messages-stream.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  pause,
  type Received,
  within,
} from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'fine' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 1, novelty: 7 },
}
const completion = {
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
}
const native = { model: 'anthropic/claude-sonnet-5-5', max_tokens: 50, messages: [{ role: 'user', content: 'hello' }] }
const other = { ...native, model: 'openai/gpt-4o-mini' }
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const event = (data: { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

const usual = ({ path }: Received, response: ServerResponse) => {
  answerJson(response, path.endsWith('/messages') ? message : completion)
}
let answers: (request: Received, response: ServerResponse) => void | Promise<void> = usual
let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider((request, response) => answers(request, response))
  router = await testRouter({
    env: { ANTHROPIC_API_KEY: 'secret', OPENAI_API_KEY: 'secret' },
    providers: {
      anthropic: { base_url: provider.url, headers: { 'anthropic-beta': 'b-2, a-1' } },
      openai: { base_url: provider.url },
    },
    keepAliveMs: 30,
  })
})

afterEach(() => {
  answers = usual
  provider.received.length = 0
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

// biome-ignore lint/suspicious/noExplicitAny: a test knows the reply it expects.
async function json(answer: Response): Promise<any> {
  return await answer.json()
}

describe('a provider of the same format', () => {
  test('gets the original body except for the model, and its own members come back with the cost', async () => {
    const body = { ...native, unheard: { of: 1 }, metadata: { user_id: 'u' } }
    const answer = await router.call('/v1/messages', body)
    expect(await json(answer)).toEqual({
      ...message,
      model: native.model,
      usage: { ...message.usage, cost: expect.any(Number) },
    })
    expect(provider.received[0]?.body).toEqual({ ...body, model: 'claude-sonnet-5-5' })
  })

  test('gets the client’s version and its betas beside those of the manifest', async () => {
    const headers = { 'anthropic-version': '2099-01-01', 'anthropic-beta': 'c-3,a-1' }
    await router.call('/v1/messages', native, headers)
    expect(provider.received[0]?.headers).toMatchObject({
      'anthropic-version': '2099-01-01',
      'anthropic-beta': 'b-2,a-1,c-3',
      'x-api-key': 'secret',
    })
    await router.call('/v1/messages', native)
    expect(provider.received[1]?.headers).toMatchObject({
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'b-2, a-1',
    })
  })
})

test('a provider of another format gets none of these headers', async () => {
  const headers = { 'anthropic-version': '2099-01-01', 'anthropic-beta': 'c-3' }
  const answer = await router.call('/v1/messages', other, headers)
  expect(await json(answer)).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'fine' }] })
  expect(Object.keys(provider.received[0]?.headers ?? {}).filter((name) => name.startsWith('anthropic'))).toEqual([])
  await router.call('/v1/chat/completions', native, headers)
  expect(provider.received[1]?.headers).toMatchObject({
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'b-2, a-1',
  })
})

describe('POST /v1/messages/count_tokens', () => {
  const { max_tokens: _limit, ...countable } = native
  const count = (body: object, headers = {}) => router.call('/v1/messages/count_tokens', body, headers)

  test('calls the provider where it counts', async () => {
    answers = (_, response) => answerJson(response, { input_tokens: 14 })
    const answer = await count(countable, { 'anthropic-beta': 'c-3' })
    expect([answer.status, await json(answer)]).toEqual([200, { input_tokens: 14 }])
    expect(provider.received[0]).toMatchObject({
      path: '/v1/messages/count_tokens',
      body: { ...countable, model: 'claude-sonnet-5-5' },
      headers: { 'anthropic-beta': 'b-2,a-1,c-3' },
    })
    expect(provider.received[0]?.body).toEqual({ ...countable, model: 'claude-sonnet-5-5' })
  })

  test('estimates elsewhere, marks it, and calls no provider', async () => {
    const answer = await count({ ...countable, model: other.model, system: 'x'.repeat(400) })
    // Four characters are a token, and four tokens are the markup of a turn.
    expect(await json(answer)).toEqual({ input_tokens: 106, estimated: true })
    expect(provider.received).toEqual([])
  })

  test('fails as every call does, in the shape of this API', async () => {
    const statusAndType = async (answer: Response) => [answer.status, (await json(answer)).error.type]
    expect(await statusAndType(await count({ model: native.model }))).toEqual([400, 'invalid_request_error'])
    expect(await statusAndType(await count({ ...countable, model: 'anthropic/none' }))).toEqual([
      404,
      'not_found_error',
    ])
    const withoutKey = { method: 'POST', body: JSON.stringify(countable) }
    expect(await statusAndType(await fetch(`${router.url}/v1/messages/count_tokens`, withoutKey))).toEqual([
      401,
      'authentication_error',
    ])
    answers = (_, response) =>
      answerJson(response, { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } }, 429)
    const busy = await count(countable)
    expect(busy.headers.get('retry-after')).toBe('1')
    expect(await json(busy)).toMatchObject({
      type: 'error',
      error: { type: 'rate_limit_error', message: 'slow' },
      request_id: busy.headers.get('x-request-id'),
    })
    answers = (_, response) => answerJson(response, { tokens: 14 })
    expect((await count(countable)).status).toBe(502)
    expect((await fetch(`${router.url}/v1/messages/count_tokens`)).status).toBe(405)
  })
})

describe('models', () => {
  const get = (path: string, headers = {}) => fetch(router.url + path, { headers })
  const version = { 'anthropic-version': '2023-06-01' }

  test('are found by id, written plainly or encoded', async () => {
    for (const path of ['/v1/models/demo/echo', '/v1/models/demo%2Fecho']) {
      expect(await json(await get(path))).toMatchObject({ id: 'demo/echo', object: 'model', pricing: [{}] })
    }
    expect((await router.openai().models.retrieve('demo/echo')).id).toBe('demo/echo')
  })

  test('that do not exist are 404, in the shape of the caller’s API', async () => {
    const plain = await get('/v1/models/demo/none')
    expect([plain.status, await json(plain)]).toMatchObject([404, { error: { code: 'model_not_found' } }])
    const shaped = await get('/v1/models/demo/none', version)
    expect([shaped.status, await json(shaped)]).toMatchObject([
      404,
      { type: 'error', error: { type: 'not_found_error' }, request_id: expect.any(String) },
    ])
    expect((await get('/v1/models/demo/echo', { 'x-api-key': 'wrong' })).status).toBe(403)
  })

  test('are listed in pages for callers of the Messages API', async () => {
    const whole = await json(await get('/v1/models?limit=1000', version))
    expect(whole).toMatchObject({ has_more: false, first_id: whole.data[0].id, last_id: whole.data.at(-1).id })
    const plain = await json(await get('/v1/models'))
    const ids = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id)
    expect(ids(whole).toSorted()).toEqual(ids(plain).toSorted())
    const created = whole.data.map((entry: { created_at: string }) => entry.created_at)
    expect(created).toEqual(created.toSorted().toReversed())
    const known = whole.data.find(({ id }: { id: string }) => id === native.model)
    expect(known).toMatchObject({
      type: 'model',
      display_name: expect.any(String),
      created_at: expect.stringMatching(/^20..-..-..T..:..:..Z$/),
    })
    expect(await json(await get(`/v1/models/${native.model}`, version))).toEqual(known)

    const paged: string[] = []
    let cursor = ''
    for (let more = true; more; ) {
      const page = await json(await get(`/v1/models?limit=7${cursor}`, version))
      paged.push(...ids(page))
      cursor = `&after_id=${encodeURIComponent(page.last_id)}`
      more = page.has_more
    }
    expect(paged).toEqual(ids(whole))
    const back = await json(await get(`/v1/models?limit=3&before_id=${paged[5]}`, version))
    expect([ids(back), back.has_more]).toEqual([paged.slice(2, 5), true])
    const first = await json(await get(`/v1/models?limit=3&before_id=${paged[2]}`, version))
    expect([ids(first), first.has_more]).toEqual([paged.slice(0, 2), false])
    for (const wrong of ['limit=0', 'limit=many', 'after_id=none', 'before_id=none']) {
      const refused = await get(`/v1/models?${wrong}`, version)
      expect([refused.status, await json(refused)]).toMatchObject([400, { error: { param: wrong.split('=')[0] } }])
    }
  })
})

describe('a stream that is silent for a while', () => {
  let goOn = () => {}
  /** A provider that is silent until the client has read what `readUntil` waits for. */
  const thinking = async (response: ServerResponse, first: string, last: string) => {
    const { promise: silence, resolve } = Promise.withResolvers<void>()
    goOn = resolve
    beginStream(response)
    response.write(first)
    await silence
    response.end(last)
  }

  /** The text of a stream whose provider goes on when the client has read this so often. */
  async function readUntil(sign: string, times: number, answer: Response): Promise<string> {
    let text = ''
    for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece
      if (text.split(sign).length > times) goOn()
    }
    return text
  }

  test('of another format pings, and is a whole message', async () => {
    answers = (_, response) =>
      thinking(response, chunk({ content: 'a' }), `${chunk({ content: 'b' }, 'stop')}data: [DONE]\n\n`)
    const answer = await router.call('/v1/messages', { ...other, stream: true })
    const events = eventsIn(await within(15_000, 'three pings', readUntil('event: ping\n', 3, answer)))
    expect(events.filter(({ type }) => type === 'ping').length).toBeGreaterThan(2)
    expect(accumulated(events)).toMatchObject({ content: [{ type: 'text', text: 'ab' }], stop_reason: 'end_turn' })
  })

  test('of the same format pings between the frames', async () => {
    const { content: _content, ...head } = message
    const start = event({ type: 'message_start', message: { ...head, content: [], stop_reason: null } } as {
      type: string
    })
    const opened = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'a' } }
    const closed = { type: 'content_block_stop', index: 0 }
    const delta = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }
    const rest = event(closed) + event(delta) + event({ type: 'message_stop' })
    answers = (_, response) => thinking(response, start + event(opened), rest)
    const answer = await router.call('/v1/messages', { ...native, stream: true })
    const events = eventsIn(await within(15_000, 'two pings', readUntil('event: ping\n', 2, answer)))
    expect(events.map(({ type }) => type).filter((type) => type !== 'ping')).toEqual([
      'message_start',
      'content_block_start',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(events.filter(({ type }) => type === 'ping').length).toBeGreaterThan(1)
  })

  test.each([
    ['/v1/chat/completions', { model: other.model, messages: other.messages, stream: true }],
    ['/v1/responses', { model: other.model, input: 'hello', stream: true }],
  ])('is kept alive by comments on %s', async (path, body) => {
    answers = (_, response) =>
      thinking(response, chunk({ content: 'a' }), `${chunk({ content: 'b' }, 'stop')}data: [DONE]\n\n`)
    const answer = await router.call(path, body)
    const text = await within(15_000, 'two comments', readUntil(': keep-alive\n\n', 2, answer))
    expect(text.split(': keep-alive\n\n').length).toBeGreaterThan(2)
    expect(text.startsWith(':')).toBe(false)
  })

  test('before its first event still fails with a status of its own', async () => {
    answers = async (_, response) => {
      await pause(120)
      answerJson(response, { error: { message: 'slow down' } }, 429)
    }
    const answer = await router.call('/v1/messages', { ...other, stream: true })
    expect([answer.status, await json(answer)]).toMatchObject([429, { type: 'error' }])
  })
})

test('errors before the line are in the shape of this API as well', async () => {
  const headers = { 'x-api-key': testKey, 'content-type': 'application/json' }
  const answer = await fetch(`${router.url}/v1/messages`, { method: 'POST', headers, body: '{' })
  expect([answer.status, await json(answer)]).toMatchObject([
    400,
    { type: 'error', error: { type: 'invalid_request_error' }, request_id: answer.headers.get('x-request-id') },
  ])
})
