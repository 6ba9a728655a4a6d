import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/core/json.ts'
import { openStore } from '../../src/store/open.ts'
import { bodyOf, type Operation, operations, resolved, schemaOf, validator } from '../helpers/openapi.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { testEach } from '../helpers/slow.ts'
import { png } from '../operations/image-world.ts'
import { formOf } from '../operations/transcription-world.ts'

/** A plugin that has stored something of every call. */
const keeper = `import { definePlugin } from 'inference-router/plugin'
export default definePlugin({
  setup: () => ({
    content: { find: () => ({ request: { messages: [] }, omittedBytes: 7 }), deleteOf: () => 3 },
  }),
})
`

let provider: LoopbackProvider
let router: TestRouter
beforeAll(async () => {
  provider = await loopbackProvider(({ path, body }, response) => {
    if (path.endsWith('/audio/transcriptions')) return answerJson(response, { text: 'Hello.', usage: { seconds: 1 } })
    if (path.endsWith('/compact')) {
      const usage = { input_tokens: 9, output_tokens: 1, total_tokens: 10 }
      return answerJson(response, { id: 'r', object: 'response.compaction', created_at: 1, output: [], usage })
    }
    const status = Number(/\d{3}/.exec(body.messages[0].content)?.[0] ?? 200)
    answerJson(response, { error: { message: 'Not today.', type: 'busy' } }, status)
  })
  router = await testRouter({
    files: { 'plugins/keeper.ts': keeper },
    settings: { plugins: [{ name: 'keeper' }] },
    providers: {
      'openai-responses': { base_url: provider.url, secret: 's' },
      vllm: {
        base_url: provider.url,
        unknown_models: 'pass',
        models: {
          whisper: { api: 'transcription' },
          priced: { api: 'chat', pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 1e-6 }] },
        },
      },
    },
  })
  // No request grants it, not even to the key of the first start.
  const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
  const { id, permissions } = (await store.keys.page({ limit: 1 }))[0] ?? expect.fail('no key')
  await store.keys.update(id, { permissions: { ...permissions, content: 'write' } })
  await store.close()
})
afterAll(async () => {
  await router.end()
  await provider.close()
})

/** A reply: the status, the body as JSON (the events of a stream), and the headers. */
// biome-ignore lint/suspicious/noExplicitAny: a test knows the reply it expects.
type Came = { status: number; body: any; headers: Headers }

/** Operations and statuses that were seen. */
const seen = new Set<string>()

const model = 'demo/echo'
const messages = [{ role: 'user', content: 'Hello' }]

/** Calls the router, and validates the request and the reply against the description. */
async function ask(
  method: string,
  path: string,
  { body, headers = {}, key = testKey }: { body?: unknown; headers?: Record<string, string>; key?: string | null } = {},
): Promise<Came> {
  const operation = operationOf(method, path)
  const response = await fetch(router.url + path, {
    method,
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && !(body instanceof FormData) && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: isRaw(body) ? body : JSON.stringify(body) }),
  })
  const { status } = response
  const text = await response.text()
  seen.add(`${operation.body.operationId} ${status}`)
  const described = bodyOf(operation, status)
  expect(described, `${method} ${path} answers ${status}, which is not described: ${text}`).toBeDefined()
  expect(response.headers.get('x-request-id')).toBeTruthy()
  if (status < 300 && operation.body.requestBody && !(body instanceof FormData)) expectBody(operation, body)
  expectHeaders(operation, response)
  const type = response.headers.get('content-type')?.split(';')[0]
  if (described === null) {
    expect([text, type]).toEqual(['', undefined])
    return { status, body: undefined, headers: response.headers }
  }
  const media = described?.[type ?? ''] as JsonObject | undefined
  expect(media, `${method} ${path} answers ${type}, which is not described`).toBeDefined()
  const isText = ['text/plain', 'text/html', 'application/octet-stream'].includes(type ?? '')
  const values = type === 'text/event-stream' ? eventsIn(text) : [isText ? text : JSON.parse(text)]
  // Members of a provider may pass through calls; everything else is the router's own.
  const accepts = validator(media?.schema as Json, {
    closed: !openTags.has(String((operation.body.tags as string[])[0])),
  })
  for (const value of values) expect([accepts(value), accepts.errors, value]).toEqual([true, null, value])
  return { status, body: type === 'text/event-stream' ? values : values[0], headers: response.headers }
}

function isRaw(body: unknown): body is string | FormData {
  return typeof body === 'string' || body instanceof FormData
}

const openTags: ReadonlySet<string> = new Set(['Calls', 'Responses'])

/** Every header of limits and of the router is one that the answer describes. */
function expectHeaders({ body }: Operation, { status, headers }: Response): void {
  const { headers: described = {} } = resolved((body.responses as JsonObject)[status]) as JsonObject
  const own = [...headers.keys()].filter((name) => name.startsWith('x-router-') || name.startsWith('x-ratelimit-'))
  expect(own.filter((name) => !Object.hasOwn(described as JsonObject, name))).toEqual([])
}

function expectBody({ body }: Operation, sent: unknown): void {
  const { content } = resolved(body.requestBody) as { content: { 'application/json': { schema: Json } } }
  const accepts = validator(content['application/json'].schema)
  expect([accepts(sent), accepts.errors]).toEqual([true, null])
}

/** The operation of a path: the one with the fewest variables that fits. */
function operationOf(method: string, path: string): Operation {
  const [plain = ''] = path.split('?')
  const fits = operations.filter((one) => {
    const form = one.path.replace(/^(\/v1\/models|\/v1\/manage\/alias)\/\{\w+\}$/, '$1/.+')
    return one.method === method && new RegExp(`^${form.replace(/\{\w+\}/g, '[^/]+')}$`).test(plain)
  })
  const [found] = fits.sort((one, other) => one.parameters.length - other.parameters.length)
  const exact = fits.find((one) => one.path === plain) ?? found
  if (!exact) throw new Error(`${method} ${path} is not described`)
  return exact
}

function eventsIn(text: string): Json[] {
  const lines = text.split('\n').filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]')
  return lines.map((line) => JSON.parse(line.slice('data: '.length)))
}

describe.each([
  ['Chat Completions', '/v1/chat/completions', { model, messages }],
  ['Responses', '/v1/responses', { model, input: 'Hello' }],
  ['Messages', '/v1/messages', { model, messages, max_tokens: 100 }],
])('%s', (_, path, body) => {
  test('replies whole as described, with the model that served', async () => {
    const { status, headers } = await ask('POST', path, { body, headers: { 'x-router-tags': 'team=search' } })
    expect(status).toBe(200)
    expect([headers.get('x-router-model'), headers.get('x-router-attempts')]).toEqual([model, '1'])
  })

  test('streams events as described', async () => {
    const streamed = {
      ...body,
      stream: true,
      ...(path.includes('chat') && { stream_options: { include_usage: true } }),
    }
    const { status, body: events } = await ask('POST', path, { body: streamed })
    expect([status, events.length > 3]).toEqual([200, true])
  })

  test('says as described why which targets were asked', async () => {
    const headers = { 'x-router-explain': 'true' }
    const { body: reply } = await ask('POST', path, { body, headers })
    expect(reply).toMatchObject({ router: { attempts: 1, explain: { targets: [{ model, by: 'only' }] } } })
    expect((await ask('POST', path, { body: { ...body, stream: true }, headers })).status).toBe(200)
    const { body: failed } = await ask('POST', path, { body: { ...body, model: 'demo/nobody' }, headers })
    expect(failed).toMatchObject({ error: { router: { attempts: 0, explain: { skipped: [] } } } })
  })

  test('refuses as described', async () => {
    const statuses = [
      await ask('POST', path, { body: {} }),
      await ask('POST', path, { body: '{' }),
      await ask('POST', path, { body, key: null }),
      await ask('POST', path, { body, key: 'no-key' }),
      await ask('POST', path, { body: { ...body, model: 'demo/nobody' } }),
      await ask('POST', path, { body: { ...body, model: 'nobody/nothing' } }),
      await ask('POST', path, { body, headers: { 'content-encoding': 'rot13' } }),
    ].map(({ status }) => status)
    expect(statuses).toEqual([400, 400, 401, 403, 404, 404, 415])
  })

  test('passes on failures of a provider as described', async () => {
    const say = (content: string) => ({
      ...body,
      model: 'vllm/m',
      ...('input' in body ? { input: content } : { messages: [{ role: 'user', content }] }),
    })
    const busy = await ask('POST', path, { body: say('429') })
    expect([busy.status, Number(busy.headers.get('retry-after')) > 0]).toEqual([429, true])
    expect((await ask('POST', path, { body: say('500') })).status).toBe(502)
    expect((await ask('POST', path, { body: say('529') })).status).toBe(path === '/v1/messages' ? 529 : 502)
    expect((await ask('POST', path, { body: say('422') })).body.error).toMatchObject({ origin: 'provider' })
  })
})

test.each([
  ['/v1/chat/completions', { model: 'vllm/priced', messages, max_tokens: 10 }],
  ['/v1/responses', { model: 'vllm/priced', input: 'Hello', max_output_tokens: 10 }],
  ['/v1/messages', { model: 'vllm/priced', messages, max_tokens: 10 }],
])('%s says what is left of limits, and when they are used up', async (path, body) => {
  const { body: made } = await ask('POST', '/v1/manage/apikey', { body: { name: 'limited', monthly_limit: 1e-9 } })
  const key = made.api_key
  const { error } = (await ask('POST', path, { body, key })).body
  expect(error.message).toMatch(/limit .* 0\.000000001 USD.* resets at \d{4}-\d\d-01T00:00:00Z/)
  const limits = { requests_per_minute: 1, tokens_per_minute: 1000 }
  await ask('POST', `/v1/manage/apikey/${made.api_key_id}/limits`, { body: limits })
  await ask('POST', `/v1/manage/apikey/${made.api_key_id}/limit`, { body: { monthly_limit: 0 } })
  const free = { ...body, model }
  const { status, headers } = await ask('POST', path, { body: free, key })
  expect([status, ...limitNames.map((name) => headers.get(`x-ratelimit-${name}`))]).toEqual([
    ...[200, '1', '1000', '0', expect.stringMatching(/^\d+$/)],
    ...[expect.stringMatching(/^\d+m?s$/), expect.stringMatching(/^\d+m?s$/)],
  ])
  const refused = await ask('POST', path, { body: free, key })
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true])
  const tagged = await ask('POST', path, { body: free, headers: { 'x-router-tags': 'no value' } })
  expect([tagged.status, tagged.body.error.param]).toEqual([400, 'x-router-tags'])
})

const limitNames = [
  'limit-requests',
  'limit-tokens',
  'remaining-requests',
  'remaining-tokens',
  'reset-requests',
  'reset-tokens',
]

test('a transcription is as described', async () => {
  const transcribe = async (...more: [string, string][]) => {
    const body = formOf([['model', 'vllm/whisper'], ...more])
    return (await ask('POST', '/v1/audio/transcriptions', { body })).body
  }
  const usage = { type: 'duration', seconds: 1 }
  expect(await transcribe()).toEqual({ text: 'Hello.', usage })
  expect(await transcribe(['response_format', 'verbose_json'])).toMatchObject({ text: 'Hello.', duration: 2, usage })
  expect(await transcribe(['response_format', 'text'])).toBe('Hello.\n')
  expect(await transcribe(['stream', 'true'])).toEqual([{ type: 'transcript.text.done', text: 'Hello.', usage }])
})

test('pictures are as described', async () => {
  const body = { model: 'demo/painter', prompt: 'A cat', size: '64x64' }
  expect((await ask('POST', '/v1/images/generations', { body })).status).toBe(200)
  const { body: events } = await ask('POST', '/v1/images/generations', { body: { ...body, stream: true } })
  expect(events).toMatchObject([{ type: 'image_generation.completed' }])
  expect((await ask('POST', '/v1/images/generations', { body: { ...body, n: 0 } })).status).toBe(400)
  const image = `data:image/png;base64,${png().toString('base64')}`
  expect((await ask('POST', '/v1/images/edits', { body: { ...body, images: [image] } })).status).toBe(200)
  expect((await ask('POST', '/v1/images/edits', { body })).status).toBe(400)
})

test('speech is as described', async () => {
  const body = { model: 'demo/tone', input: 'Hello', voice: 'tone' }
  const audio = await ask('POST', '/v1/audio/speech', { body })
  expect([audio.status, audio.headers.get('x-router-audio-format')]).toEqual([200, 'wav'])
  const { status, body: events } = await ask('POST', '/v1/audio/speech', { body: { ...body, stream_format: 'sse' } })
  expect([status, events.length]).toEqual([200, 4])
  expect((await ask('POST', '/v1/audio/speech', { body: { ...body, model } })).status).toBe(400)
})

test('a count of tokens is as described', async () => {
  expect((await ask('POST', '/v1/messages/count_tokens', { body: { model, messages } })).status).toBe(200)
  expect((await ask('POST', '/v1/messages/count_tokens', { body: {} })).status).toBe(400)
  const { body: made } = await ask('POST', '/v1/manage/apikey', { body: { name: 'counts' } })
  await ask('POST', `/v1/manage/apikey/${made.api_key_id}/limits`, { body: { requests_per_minute: 1 } })
  const limited = { body: { model, messages }, key: made.api_key }
  const counted = await ask('POST', '/v1/messages/count_tokens', limited)
  expect(counted.headers.get('x-ratelimit-remaining-requests')).toBe('0')
  expect((await ask('POST', '/v1/messages/count_tokens', limited)).status).toBe(429)
  expect((await ask('POST', '/v1/messages/count_tokens', { body: { model, messages }, key: 'no-key' })).status).toBe(
    403,
  )
})

test('counted and compacted conversations are as described', async () => {
  const counted = await ask('POST', '/v1/responses/input_tokens', { body: { model, input: 'Hello' } })
  expect([counted.status, counted.body.estimated]).toEqual([200, true])
  expect((await ask('POST', '/v1/responses/compact', { body: { model, input: 'Hello' } })).status).toBe(400)
  const native = 'openai-responses/gpt-5'
  expect((await ask('POST', '/v1/responses/compact', { body: { model: native, input: 'Hello' } })).status).toBe(200)
})

test('embeddings, reranks and moderations are as described', async () => {
  const vectors = { model: 'demo/vectors', input: ['a', 'b'], dimensions: 4, user: 'me' }
  for (const encoding_format of ['float', 'base64']) {
    expect((await ask('POST', '/v1/embeddings', { body: { ...vectors, encoding_format } })).status).toBe(200)
  }
  expect((await ask('POST', '/v1/embeddings', { body: { ...vectors, dimensions: 0 } })).status).toBe(400)
  const order = { model: 'demo/ranker', query: 'a', documents: ['a b', { text: 'c' }], return_documents: true }
  expect((await ask('POST', '/v1/rerank', { body: order })).status).toBe(200)
  expect((await ask('POST', '/v1/rerank', { body: { ...order, documents: [] } })).status).toBe(400)
  const verdict = { model: 'demo/moderator', input: [{ type: 'text', text: 'you idiot' }] }
  expect((await ask('POST', '/v1/moderations', { body: verdict })).status).toBe(200)
  expect((await ask('POST', '/v1/moderations', { body: { ...verdict, input: [] } })).status).toBe(400)
})

test('completions, whole and streamed, are as described', async () => {
  const body = { model: 'demo/writer', prompt: ['a', 'b'], max_tokens: 5, suffix: null }
  expect((await ask('POST', '/v1/completions', { body })).status).toBe(200)
  const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
  const { status, body: events } = await ask('POST', '/v1/completions', { body: streamed })
  expect([status, events.at(-1).usage.cost > 0]).toEqual([200, true])
  expect((await ask('POST', '/v1/completions', { body: { ...body, n: 0 } })).status).toBe(400)
})

test('decisions in both forms are as described', async () => {
  const questions = [
    { type: 'predicate', instructions: 'Urgent?' },
    { type: 'choice', name: 'team', instructions: 'Which?', choices: [{ value: 'billing' }, { value: true }] },
    { type: 'score', instructions: 'How angry?', levels: [{ label: 'Calm' }, { label: 'Angry' }] },
  ]
  const listed = await ask('POST', '/v1/decisions', { body: { model, input: 'Hello', questions } })
  expect([listed.status, listed.body.answers.length, listed.body.emulated]).toEqual([200, 3, true])
  const named = {
    a: { type: 'noul', instructions: 'Urgent?' },
    b: { type: 'choice', instructions: 'Which?', criteria: { billing: null, tech: 'Bugs' } },
    c: { type: 'score', instructions: 'How angry?', criteria: ['Calm', 'Angry'] },
  }
  const byName = await ask('POST', '/v1/decisions', { body: { model, state: { text: 'Hello' }, questions: named } })
  expect([byName.status, Object.keys(byName.body.answers)]).toEqual([200, ['a', 'b', 'c']])
  expect((await ask('POST', '/v1/decisions', { body: { model, input: 'Hello' } })).status).toBe(400)
})

test('the operations on a stored response are as described', async () => {
  const { body: made } = await ask('POST', '/v1/responses', { body: { model, input: 'Hello' } })
  const path = `/v1/responses/${made.id}`
  expect((await ask('GET', path)).body).toEqual(made)
  expect((await ask('GET', `${path}?stream=true`)).status).toBe(400)
  expect((await ask('GET', `${path}/input_items?limit=1&order=asc`)).body.data).toHaveLength(1)
  expect((await ask('GET', `${path}/input_items?limit=0`)).status).toBe(400)
  expect((await ask('POST', `${path}/cancel`)).status).toBe(400)
  expect((await ask('DELETE', path)).status).toBe(200)
  expect((await ask('DELETE', path)).status).toBe(404)
  for (const [method, at] of [
    ['GET', ''],
    ['GET', '/input_items'],
    ['POST', '/cancel'],
  ] as const) {
    expect((await ask(method, path + at)).status).toBe(404)
    expect((await ask(method, path + at, { key: null })).status).toBe(401)
    expect((await ask(method, path + at, { key: 'no-key' })).status).toBe(403)
  }
})

test('model lists and models are as described', async () => {
  const anthropic = { 'anthropic-version': '2023-06-01' }
  const apis = [
    'chat',
    'decision',
    'embedding',
    'image',
    'transcription',
    'speech',
    'rerank',
    'moderation',
    'completion',
  ]
  const lists = ['', ...['all', ...apis, 'managed', model]]
  for (const path of lists.map((list) => `/v1/models/${list}`.replace(/\/$/, ''))) {
    expect((await ask('GET', path, { key: null })).status).toBe(200)
    const { status, headers } = await ask('GET', path)
    expect(status).toBe(200)
    expect((await ask('GET', path, { headers: { 'if-none-match': headers.get('etag') ?? '' } })).status).toBe(304)
    if (path !== '/v1/models/managed') expect((await ask('GET', path, { key: 'no-key' })).status).toBe(403)
  }
  expect((await ask('GET', '/v1/models', { headers: anthropic })).body).toHaveProperty('has_more')
  expect((await ask('GET', '/v1/models?limit=0', { headers: anthropic })).status).toBe(400)
  expect((await ask('GET', `/v1/models/${model}`, { headers: anthropic })).body).toHaveProperty('display_name')
  expect((await ask('GET', '/v1/models/no/body', { headers: anthropic })).body).toMatchObject({ type: 'error' })
  expect((await ask('GET', '/v1/models/no/body')).status).toBe(404)
})

test('the health endpoints are as described', async () => {
  for (const path of ['/health', '/ready', '/openapi.json', '/docs/errors.html']) {
    expect((await ask('GET', path, { key: null })).status).toBe(200)
  }
  expect((await ask('GET', '/metrics')).status).toBe(200)
  for (const path of ['/openapi.json', '/docs/errors.html'])
    expect((await ask('GET', path, { headers: { 'if-none-match': '*' } })).status).toBe(304)
})

test('a check of a key is as described', async () => {
  expect((await ask('GET', '/v1/auth/check')).body.permissions).toEqual({
    manage: 'write',
    completions: 'write',
    operate: 'write',
    instance: 'read',
    content: 'write',
  })
  expect((await ask('GET', '/v1/auth/check', { key: null })).status).toBe(401)
  expect((await ask('GET', '/v1/auth/check', { key: 'no-key' })).status).toBe(403)
})

describe('management', () => {
  const self = '/v1/manage/apikey/self'
  const made = async (body: object) => {
    const { status, body: created } = await ask('POST', '/v1/manage/apikey', { body })
    expect(status).toBe(201)
    return { path: `/v1/manage/apikey/${created.api_key_id}`, secret: created.api_key as string }
  }

  test('the stored content of calls is as described', async () => {
    await ask('POST', '/v1/chat/completions', { body: { model, messages } })
    await expect.poll(async () => (await ask('GET', '/v1/manage/calls')).body.calls.length).toBeGreaterThan(0)
    const [{ id }] = (await ask('GET', '/v1/manage/calls')).body.calls
    const { body } = await ask('GET', `/v1/manage/calls/${id}/content`)
    expect(body).toMatchObject({ stored_by: 'keeper', request: { messages: [] }, reply: null, omitted_bytes: 7 })
    expect((await ask('DELETE', '/v1/manage/content?user=ann')).body).toEqual({ calls: 3 })
  })

  test('the lists and sums of all organizations are as described', async () => {
    for (const path of ['', '/org', '/apikey', '/usage?group_by=organization', '/calls'])
      expect((await ask('GET', `/v1/manage/instance${path}`)).status).toBe(200)
  })

  test('the organization is as described', async () => {
    expect((await ask('GET', '/v1/manage/org')).body).toEqual({ name: 'default', balance: expect.any(Number) })
    for (const amount of [25.5, -0.5]) {
      const { status } = await ask('POST', '/v1/manage/org/credit', { body: { amount, note: 'invoice 7' } })
      expect(status).toBe(200)
    }
    const once = { headers: { 'idempotency-key': 'order-7' } }
    const given = [
      await ask('POST', '/v1/manage/org/credit', { body: { amount: 1 }, ...once }),
      await ask('POST', '/v1/manage/org/credit', { body: { amount: 1 }, ...once }),
      await ask('POST', '/v1/manage/org/credit', { body: { amount: 2 }, ...once }),
    ]
    expect(given.map(({ status }) => status)).toEqual([200, 200, 409])
    for (const [path, body] of [
      ['/v1/manage/org/balance', { enforces_balance: false }],
      ['/v1/manage/org/models', { approved_models: ['demo/*', 'vllm/*'] }],
      ['/v1/manage/org/models', { approved_models: null }],
      ['/v1/manage/org/rules', { geolocation: ['eu'], data_retention: false, data_used_for_training: false }],
      ['/v1/manage/org/rules', { geolocation: null, data_retention: null, data_used_for_training: null }],
      ['/v1/manage/org/plugins', { plugins: { gone: null } }],
      ['/v1/manage/org/limits', { requests_per_minute: 600, tokens_per_minute: 0, concurrent_calls: null }],
      ['/v1/manage/org/limits', { requests_per_minute: null }],
    ] as const) {
      const { status, body: after } = await ask('PUT', path, { body })
      expect([status, (await ask('GET', path)).body]).toEqual([200, after])
    }
  })

  test('keys are as described', async () => {
    const { path, secret } = await made({ name: 'plain' })
    expect((await ask('GET', '/v1/auth/check', { key: secret })).status).toBe(200)
    const ofAll = await made({
      ...{ name: 'of all', monthly_limit: 2.5, permissions: { manage: 'read' }, labels: { team: 'search' } },
      ...{ group_id: null, expires_at: '2036-01-31T00:00:00Z' },
    })
    expect((await ask('GET', ofAll.path)).body).toMatchObject({ monthly_limit: 2.5, state: 'active' })
    expect((await ask('GET', self)).body).toMatchObject({ name: 'first key', group: null })
    const { body: page } = await ask('GET', '/v1/manage/apikey?limit=2')
    const named = ['id', 'name', 'monthly_limit', 'monthly_spend', 'permissions', 'labels', 'created_by']
    expect(page.keys.map((key: object) => Object.keys(key))).toEqual([named, named])
    expect([page.keys.length, (await ask('GET', `/v1/manage/apikey?cursor=${page.next_cursor}`)).status]).toEqual([
      2, 200,
    ])
    for (const [what, body] of [
      ['limit', { monthly_limit: 0 }],
      ['expiry', { expires_at: null }],
      ['limits', { requests_per_minute: 60, concurrent_calls: 4 }],
      ['access', { models: ['demo/echo', 'vllm/*'] }],
      ['access', { models: null }],
      ['group', { group_id: null }],
    ] as const) {
      expect((await ask('POST', `${path}/${what}`, { body })).status).toBe(200)
    }
    expect((await ask('POST', `${path}/label`, { body: { labels: {} } })).status).toBe(204)
    const { body: rotated } = await ask('POST', `${path}/rotate`)
    expect(rotated.api_key).not.toBe(secret)
    expect((await ask('GET', '/v1/auth/check', { key: secret })).status).toBe(403)
    expect((await ask('DELETE', path)).status).toBe(204)
    expect((await ask('DELETE', self)).status).toBe(400)
  })

  test('groups are as described', async () => {
    const { status, body } = await ask('POST', '/v1/manage/group', { body: { name: 'research', monthly_limit: 5 } })
    const path = `/v1/manage/group/${body.group_id}`
    expect([status, (await ask('GET', path)).body.monthly_limit]).toEqual([201, 5])
    expect((await ask('POST', `${path}/limit`, { body: { monthly_limit: null } })).body.monthly_limit).toBe(0)
    expect((await ask('GET', '/v1/manage/group')).body.groups).toHaveLength(1)
    expect((await ask('DELETE', path)).status).toBe(204)
    const limited = await ask('POST', '/v1/manage/group', { body: { name: 'limited', monthly_limit: 5 } })
    const at = `/v1/manage/group/${limited.body.group_id}`
    expect((await ask('DELETE', at)).body.error.param).toBe('keys')
    expect((await ask('DELETE', `${at}?keys=keep`)).status).toBe(204)
  })

  test('settled calls are as described', async () => {
    const body = { model, messages, user: 'ann', metadata: { task: 'x' } }
    await ask('POST', '/v1/chat/completions', { body, headers: { 'x-router-explain': 'true' } })
    const { calls } = (await ask('GET', '/v1/manage/calls?limit=1')).body
    expect(calls).toMatchObject([{ asked: model, user: 'ann' }])
    expect((await ask('GET', `/v1/manage/calls/${calls[0].id}`)).body.explanation).toBeDefined()
    expect((await ask('GET', '/v1/manage/latency?group_by=model&model=demo/echo')).body.groups).toHaveLength(1)
    expect((await ask('GET', '/v1/manage/live?events=1')).body).toHaveLength(1)
    await ask('POST', '/v1/chat/completions', { body: { model: 'demo/none', messages } })
    const { refusals } = (await ask('GET', '/v1/manage/refusals?limit=1')).body
    expect(refusals).toMatchObject([{ asked: 'demo/none', outcome: 'refused' }])
  })

  test('providers are as described', async () => {
    const { providers } = (await ask('GET', '/v1/manage/providers')).body
    expect(providers.map(({ slug }: { slug: string }) => slug)).toContain('demo')
    expect((await ask('GET', '/v1/manage/providers/demo')).body.manifest.text).toContain('slug: demo')
    const { body } = await ask('POST', '/v1/manage/providers/demo/try', {
      body: { model: 'echo', request: { messages } },
    })
    expect(body.body).toMatchObject({ model: 'echo', messages })
  })

  test('aliases and policies are as described', async () => {
    const policy = { id: 'careful', targets: [model] }
    expect((await ask('POST', '/v1/manage/policy', { body: policy })).status).toBe(201)
    expect((await ask('POST', '/v1/manage/policy', { body: policy })).status).toBe(400)
    expect((await ask('PUT', '/v1/manage/policy/careful', { body: { targets: [model] } })).status).toBe(200)
    expect((await ask('PUT', '/v1/manage/policy/other', { body: policy })).status).toBe(400)
    expect((await ask('PUT', '/v1/manage/policy/other', { body: { targets: [model], description: 'O' } })).status).toBe(
      201,
    )
    expect((await ask('GET', '/v1/manage/policy')).body.policies).toHaveLength(2)
    expect((await ask('GET', '/v1/manage/managed-policy')).status).toBe(200)
    expect((await ask('GET', '/v1/manage/policy/careful')).body).toEqual({ ...policy, description: '' })
    const explain = '/v1/manage/policy/careful/explain'
    expect((await ask('POST', explain, { body: { messages } })).body).toMatchObject({ policy: 'careful' })
    const wished = { messages, provider: { only: ['nobody'] } }
    expect((await ask('POST', explain, { body: wished })).status).toBe(404)
    const alias = { name: 'fast', target: 'careful' }
    expect((await ask('POST', '/v1/manage/alias', { body: alias })).status).toBe(201)
    expect((await ask('DELETE', '/v1/manage/policy/careful')).status).toBe(400)
    expect((await ask('POST', '/v1/manage/alias', { body: { ...alias, target: model } })).status).toBe(200)
    expect((await ask('GET', '/v1/manage/alias')).body.aliases).toEqual([{ name: 'fast', target: model }])
    expect((await ask('GET', '/v1/manage/alias/fast')).status).toBe(200)
    expect((await ask('DELETE', '/v1/manage/alias/fast')).status).toBe(204)
    const shadow = { name: 'openai/gpt', target: model }
    expect((await ask('POST', '/v1/manage/alias', { body: shadow })).body).toEqual(shadow)
    expect((await ask('DELETE', '/v1/manage/alias/openai/gpt')).status).toBe(204)
    expect((await ask('DELETE', '/v1/manage/policy/careful')).status).toBe(204)
  })

  test('usage is as described', async () => {
    const { path, secret } = await made({ name: 'user', labels: { team: 'search' } })
    const tagged = { key: secret, headers: { 'x-router-tags': 'job=nightly' } }
    await ask('POST', '/v1/chat/completions', { body: { model, messages, user: 'ada' }, ...tagged })
    const groups = ['model', 'provider', 'key', 'user', 'extra.job'].map((group) => `group_by=${group}`).join('&')
    for (const at of [`${path}/usage`, '/v1/manage/org/usage']) {
      const { body: plain } = await ask('GET', at)
      expect(Object.values(plain.usage)).toHaveLength(1)
      const { body: grouped } = await ask('GET', `${at}?resolution=month&${groups}`)
      const [month] = Object.values<{ grouped_data: JsonObject[] }>(grouped.usage)
      expect(month?.grouped_data.map((one) => one.group_by_values)).toContainEqual({
        ...{ model, provider: 'demo', key: path.split('/').at(-1), user: 'ada', 'extra.job': 'nightly' },
      })
      for (const query of ['resolution=year', 'group_by=x', 'start=x', 'start=2026-01-01&end=2026-06-01']) {
        expect((await ask('GET', `${at}?${query}`)).status).toBe(400)
      }
    }
  })

  test('changes are as described', async () => {
    await ask('GET', '/v1/manage/health')
    await ask('GET', '/v1/manage/problems')
    await ask('GET', '/v1/manage/plugins')
    await ask('GET', '/v1/manage/instance/settings')
    for (const path of ['/v1/manage/targets', '/v1/manage/instance/targets']) {
      expect((await ask('GET', `${path}?hours=1`)).body.targets.length).toBeGreaterThan(0)
      expect((await ask('GET', `${path}?hours=x`)).status).toBe(400)
    }
    const { body } = await ask('GET', '/v1/manage/audit?limit=3')
    expect([body.entries.length, typeof body.next_cursor]).toEqual([3, 'string'])
  })

  /** Operations that take a body, with its schema and example. */
  // A request that is only explained or tried is one of a client API.
  const taking = operations
    .filter(({ path, body }) => path.startsWith('/v1/manage') && !/\/(?:explain|try)$/.test(path) && body.requestBody)
    .map((operation) => {
      const { content } = operation.body.requestBody as { content: { 'application/json': Described } }
      return { ...operation, ...content['application/json'] }
    })
  type Described = { schema: Json; example?: JsonObject }

  /** Their paths, for things that are there. */
  async function pathsOf(paths: readonly string[]): Promise<Map<string, string>> {
    const { path: key } = await made({ name: 'changed' })
    const { body: group } = await ask('POST', '/v1/manage/group', { body: { name: `changed ${key}` } })
    await ask('PUT', '/v1/manage/policy/changed', { body: { targets: [model] } })
    const ids = { apikey: key.split('/').at(-1), group: group.group_id, policy: 'changed' }
    return new Map(paths.map((path) => [path, path.replace('{id}', ids[path.split('/')[3] as keyof typeof ids])]))
  }

  test('the examples are accepted', async () => {
    const paths = await pathsOf(taking.map(({ path }) => path))
    for (const { method, path, example } of taking) {
      if (!example) continue
      const { status, body } = await ask(method, paths.get(path) as string, { body: example })
      expect([path, status, body]).toEqual([path, status < 300 ? status : 'a success', body])
    }
    await ask('PUT', '/v1/manage/org/models', { body: { approved_models: null } })
    const rules = { geolocation: null, data_used_for_training: null }
    await ask('PUT', '/v1/manage/org/rules', { body: rules })
    await ask('PUT', '/v1/manage/org/limits', { body: { requests_per_minute: null, tokens_per_minute: null } })
  })

  test('an empty body changes nothing, wherever a body is taken: it is rejected', async () => {
    const paths = await pathsOf(taking.map(({ path }) => path))
    const newest = async () => (await ask('GET', '/v1/manage/audit?limit=1')).body.entries
    const before = await newest()
    for (const { method, path } of taking)
      for (const body of [{}, undefined, []]) {
        const { status } = await ask(method, paths.get(path) as string, { body })
        expect([method, path, body, status]).toEqual([method, path, body, 400])
      }
    expect(await newest()).toEqual(before)
  })

  // Every so many-th of the values is enough for the fast suite.
  testEach([6, 1], { slowIf: (step) => step === 1 })(
    'bodies that the description rejects are rejected, naming the field (step %d)',
    async (step) => {
      const paths = await pathsOf(taking.map(({ path }) => path))
      const wrong: Json[] = [true, -1, 1.5, 1e13, 'x', '', 'x'.repeat(2_000), [], ['x', 1], {}, { strange: 1 }]
      let refused = 0
      for (const { method, path, schema, example = {} } of taking) {
        const accepts = validator(schema, { closed: true })
        const fields = [
          ...Object.keys(
            schemaOf(
              String((schema as JsonObject).$ref)
                .split('/')
                .at(-1) as string,
            ).properties as object,
          ),
          'other',
        ]
        const all = fields.flatMap((name) => wrong.map((one) => [name, one] as const))
        for (const [field, value] of all.filter((_, index) => index % step === 0)) {
          const body = { ...example, [field]: value }
          if (accepts(body)) continue
          const came = await ask(method, paths.get(path) as string, { body })
          expect([path, field, value, came.status]).toEqual([path, field, value, 400])
          expect(`${came.body.error.param} ${came.body.error.message}`).toMatch(new RegExp(`${field}|strange`))
          refused++
        }
      }
      expect(refused).toBeGreaterThan(200 / step)
    },
  )

  test.each(
    operations
      .filter(({ path }) => path.startsWith('/v1/manage'))
      .map((one) => [`${one.method} ${one.path}`, one] as const),
  )('%s refuses as described', async (_, { method, path, body, parameters }) => {
    const at = path.replace(/\{\w+\}/, 'nobody')
    const { secret } = await made({ name: 'without', permissions: { manage: 'none' } })
    expect((await ask(method, at, { key: null })).status).toBe(401)
    expect((await ask(method, at, { key: 'no-key' })).status).toBe(403)
    expect((await ask(method, at, { key: secret })).body.error.code).toBe('forbidden')
    if (body.requestBody) {
      for (const wrong of ['{', [], { nothing: 1 }])
        expect((await ask(method, at, { body: wrong })).status).not.toBe(200)
    } else if (at !== path) expect((await ask(method, at)).status).toBe(404)
    if (parameters.some(({ name }) => name === 'cursor')) {
      for (const query of ['limit=0', 'limit=x', 'cursor=', 'page=2']) {
        expect((await ask(method, `${at}?${query}`)).status).toBe(400)
      }
    }
  })
})

test('every success that is described was seen', () => {
  const described = operations.flatMap(({ body }) => {
    const successes = Object.keys(body.responses as JsonObject).filter((status) => /^[23]/.test(status))
    return successes.map((status) => `${body.operationId} ${status}`)
  })
  expect(described.filter((one) => !seen.has(one))).toEqual([])
})
