import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'

type Entry = { id: string; api: string; pricing: { prompt_tokens_threshold: number }[]; [field: string]: unknown }
type List = { object: string; data: Entry[] }

let router: TestRouter

beforeAll(async () => {
  router = await testRouter({ env: { GEMINI_API_KEY: 'set' } })
})

afterAll(() => router.end())

async function list(path: string, headers: Record<string, string> = {}): Promise<List> {
  const response = await fetch(router.url + path, { headers })
  expect(response.status).toBe(200)
  return (await response.json()) as List
}

test('callable models are listed, without a key and with every valid key alike', async () => {
  const open = await list('/v1/models')
  expect(open.object).toBe('list')
  const ids = open.data.map(({ id }) => id)
  expect(ids).toContain('demo/echo')
  expect(ids.some((id) => id.startsWith('google/'))).toBe(true)
  expect(ids.some((id) => id.startsWith('anthropic/'))).toBe(false)
  expect(await list('/v1/models', { authorization: `Bearer ${testKey}` })).toEqual(open)
  expect(await list('/v1/models/chat', { 'x-api-key': testKey })).toEqual(open)
})

test('every entry has the fields of the specification, tiers ascending from 0, prices in USD per token', async () => {
  for (const entry of (await list('/v1/models')).data) {
    expect(entry).toMatchObject({ api: 'chat', object: 'model', owned_by: 'system', created: expect.any(Number) })
    const thresholds = entry.pricing.map(({ prompt_tokens_threshold }) => prompt_tokens_threshold)
    expect(thresholds[0] ?? 0).toBe(0)
    expect(thresholds).toEqual(thresholds.toSorted((a, b) => a - b))
    for (const tier of entry.pricing) {
      for (const name of [
        'input_price',
        'caching_price',
        'caching_5m_price',
        'caching_1h_price',
        'cached_price',
        'output_price',
      ]) {
        const price = tier[name as keyof typeof tier]
        expect(price).toBeGreaterThanOrEqual(0)
        expect(price).toBeLessThan(0.01)
      }
    }
  }
})

test('the list of all modalities has flat prices, the list of managed policies is open', async () => {
  const all = await list('/v1/models/all')
  expect(all.data.find(({ id }) => id === 'demo/echo')).toMatchObject({ input_price: 1e-7, output_price: 4e-7 })
  expect(await list('/v1/models/managed', { authorization: 'Bearer wrong' })).toEqual({ object: 'list', data: [] })
})

test('a bad key is rejected, not treated as no key', async () => {
  for (const path of ['/v1/models', '/v1/models/chat', '/v1/models/all']) {
    const response = await fetch(router.url + path, { headers: { authorization: 'Bearer ir-wrong' } })
    expect([response.status, await response.json()]).toMatchObject([403, { error: { origin: 'router' } }])
  }
})

test('there is a list for each modality', async () => {
  const all = await list('/v1/models/all')
  for (const api of ['chat', 'embedding', 'image', 'transcription', 'speech', 'decision']) {
    const { data } = await list(`/v1/models/${api}`)
    expect(
      data.map(({ id }) => id),
      api,
    ).toEqual(all.data.filter((entry) => entry.api === api).map(({ id }) => id))
  }
})

describe('a list that the client has already', () => {
  const paths = [
    ...['', '/chat', '/all', '/decision', '/embedding', '/image', '/transcription', '/speech', '/managed'],
    ...['/demo/echo', '?limit=2'],
  ].map((path) => `/v1/models${path}`)
  const asked = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(router.url + path, { method, headers: { authorization: `Bearer ${testKey}`, ...headers } })

  test.each([...paths, '/openapi.json'])('%s is not sent again', async (path) => {
    for (const form of [{}, { 'anthropic-version': '2023-06-01' }] as Record<string, string>[]) {
      const first = await asked(path, form)
      const etag = first.headers.get('etag') ?? ''
      expect([first.status, etag]).toEqual([200, expect.stringMatching(/^"[\w-]{20,}"$/)])
      expect(first.headers.get('cache-control')).toBe('private, no-cache')
      for (const known of [etag, `W/${etag}`, `"a", W/${etag} ,"b"`, '*']) {
        for (const method of ['GET', 'HEAD']) {
          const again = await asked(path, { ...form, 'if-none-match': known }, method)
          expect([known, again.status, await again.text()]).toEqual([known, 304, ''])
          expect([again.headers.get('etag'), again.headers.get('cache-control')]).toEqual([etag, 'private, no-cache'])
          expect([again.headers.get('content-length'), again.headers.get('content-type')]).toEqual([null, null])
          expect(again.headers.get('x-request-id')).toBeTruthy()
        }
      }
      for (const other of ['"x"', etag.slice(1, -1), '']) {
        const again = await asked(path, { ...form, 'if-none-match': other })
        expect([other, again.status, await again.text()]).toEqual([other, 200, await (await asked(path, form)).text()])
      }
    }
  })

  test('is another one for a key that sees other models, and each form has its own', async () => {
    const tags = await Promise.all(
      [asked('/v1/models'), asked('/v1/models/all'), asked('/v1/models', { 'anthropic-version': '2023-06-01' })].map(
        async (one) => (await one).headers.get('etag'),
      ),
    )
    expect(new Set(tags).size).toBe(3)
    const made = await router.call('/v1/manage/apikey', { name: 'one model' })
    const { api_key, api_key_id } = (await made.json()) as { api_key: string; api_key_id: string }
    await router.call(`/v1/manage/apikey/${api_key_id}/access`, { models: ['demo/echo'] })
    const known = { 'if-none-match': tags[0] ?? '' }
    const narrow = await asked('/v1/models', { ...known, authorization: `Bearer ${api_key}` })
    expect([narrow.status, ((await narrow.json()) as List).data.map(({ id }) => id)]).toEqual([200, ['demo/echo']])
    expect((await asked('/v1/models', known)).status).toBe(304)
    expect((await asked('/v1/models', { ...known, authorization: 'Bearer ir-wrong' })).status).toBe(403)
  })
})

describe('a model of another kind', () => {
  const kinds = {
    embedding: '/v1/embeddings',
    image: '/v1/images/generations',
    speech: '/v1/audio/speech',
    transcription: '/v1/audio/transcriptions',
    decision: '/v1/decisions',
    rerank: undefined,
  }
  const models = Object.keys(kinds).map((api) => `  ${api}: { api: ${api} }\n`)
  const manifest = `slug: multi
name: Multi
base_url: http://127.0.0.1:9
auth: { scheme: none }
dialect: openai-chat
models:
${models.join('')}  chat: { api: chat }
  draws: { api: image, also: [chat] }
`

  test('is refused by every endpoint for conversations, with its API and its endpoint', async () => {
    const own = await testRouter({ files: { 'providers/multi.yaml': manifest } })
    onTestFinished(() => own.end())
    await own.call('/v1/manage/alias', { name: 'vectors', target: 'multi/embedding' })
    const messages = [{ role: 'user', content: 'Hello' }]
    const calls = (model: string): [path: string, body: object][] => [
      ['/v1/chat/completions', { model, messages }],
      ['/v1/responses', { model, input: 'Hello' }],
      ['/v1/messages', { model, messages, max_tokens: 9 }],
      ['/v1/messages/count_tokens', { model, messages }],
    ]
    const named = [...Object.entries(kinds), ['embedding', kinds.embedding, 'vectors'] as const]
    for (const [api, endpoint, model = `multi/${api}`] of named) {
      for (const [path, body] of calls(model)) {
        const refused = await own.call(path, body)
        expect([path, refused.status]).toEqual([path, 400])
        const { error } = (await refused.json()) as { error: { message: string } }
        expect(error).toMatchObject({ code: 'invalid_request', param: 'model' })
        expect(error.message).toContain(`The model 'multi/${api}' has the API \`${api}\``)
        if (endpoint !== undefined) expect(error.message).toContain(`are called at POST ${endpoint}.`)
      }
    }
    // A model of conversations as well is tried, and nobody listens there.
    expect((await own.call('/v1/chat/completions', { model: 'multi/draws', messages })).status).toBe(502)
  })
})

describe('a key', () => {
  const entry = (api: string, geolocation: string) =>
    `{ api: ${api}, geolocation: ${geolocation}, pricing: [{ prompt_tokens_threshold: 0, input_price: 1, output_price: 2 }] }`
  const filesFor = (url: string) => ({
    'config.yaml': `
server: { port: 0 }
policies:
  best: { description: The best, targets: [a/chat-us, a/chat-eu] }
  best@eu: { targets: [a/chat-eu] }
`,
    'providers/a.yaml': `slug: a
name: A
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models:
  chat-us: ${entry('chat', 'us').replace('{', '{ aliases: [chat-us-latest],')}
  chat-eu: ${entry('chat', 'eu')}
  decides: ${entry('decision', 'eu')}
  embeds: ${entry('embedding', 'eu')}
`,
  })
  let provider: LoopbackProvider
  let files: ReturnType<typeof filesFor>
  let own: TestRouter
  let limited: { api_key_id: string; api_key: string }

  const manage = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' }
    const response = await fetch(`${own.manageUrl}/v1/manage${path}`, { method, headers, body: JSON.stringify(body) })
    expect([path, response.status < 300, await response.clone().text()]).toEqual([path, true, expect.anything()])
    return response.json()
  }
  const ids = async (path: string, secret?: string): Promise<string[]> => {
    const headers: Record<string, string> = secret === undefined ? {} : { 'x-api-key': secret }
    const response = await fetch(own.url + path, { headers })
    expect(response.status).toBe(200)
    return ((await response.json()) as List).data.map(({ id }) => id)
  }

  beforeAll(async () => {
    const message = { role: 'assistant', content: 'Hi' }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    provider = await loopbackProvider((_, response) =>
      answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices }),
    )
    files = filesFor(provider.url)
    own = await testRouter({ files })
    await manage('POST', '/alias', { name: 'quick', target: 'a/chat-us' })
    await manage('POST', '/alias', { name: 'judge', target: 'a/decides' })
    await manage('POST', '/policy', { id: 'mine', targets: ['a/chat-eu', 'a/chat-us'] })
    limited = (await manage('POST', '/apikey', { name: 'limited' })) as typeof limited
  })
  afterEach(async () => {
    await manage('POST', `/apikey/${limited.api_key_id}/access`, { models: null })
    await manage('PUT', '/org/models', { approved_models: null })
    await manage('PUT', '/org/rules', { geolocation: null })
  })
  afterAll(async () => {
    await own.end()
    await provider.close()
  })

  test('sees the aliases and policies of its organization among the models, which are not listed without a key', async () => {
    expect(await ids('/v1/models')).toEqual(['a/chat-eu', 'a/chat-us'])
    const chat = ['a/chat-eu', 'a/chat-us', 'best', 'best@eu', 'mine', 'quick']
    expect(await ids('/v1/models', testKey)).toEqual(chat)
    expect(await ids('/v1/models/chat', testKey)).toEqual(chat)
    expect(await ids('/v1/models/all', testKey)).toEqual([...chat, 'a/decides', 'a/embeds', 'judge'].toSorted())
    expect(await ids('/v1/models/embedding', testKey)).toEqual(['a/embeds'])
  })

  test('sees no alias and no policy among decision models', async () => {
    expect(await ids('/v1/models/decision')).toEqual(['a/decides'])
    expect(await ids('/v1/models/decision', testKey)).toEqual(['a/decides'])
  })

  test('sees a single model, alias or policy as it is in the lists', async () => {
    const one = async (id: string, secret?: string) => {
      const response = await fetch(`${own.url}/v1/models/${id}`, { headers: secret ? { 'x-api-key': secret } : {} })
      return { status: response.status, ...((await response.json()) as object) }
    }
    expect(await one('mine', testKey)).toMatchObject({ status: 200, id: 'mine', geolocation: 'global', api: 'chat' })
    expect(await one('best', testKey)).toMatchObject({ geolocation: 'global', description: 'The best' })
    expect(await one('policy/quick', testKey)).toMatchObject({ status: 200, id: 'quick' })
    expect(await one('policy/a/chat-us', testKey)).toMatchObject({ status: 404 })
    expect(await one('mine')).toMatchObject({ status: 404 })
    expect(await one('a/chat-us')).toMatchObject({ status: 200, id: 'a/chat-us' })
    expect(await one('a/nothing')).toMatchObject({ status: 404, error: { param: 'id' } })
  })

  test('sees a single model by each name that it can be called by, if it may call it', async () => {
    const one = async (secret: string) => {
      const response = await fetch(`${own.url}/v1/models/a/chat-us-latest`, { headers: { 'x-api-key': secret } })
      return { status: response.status, ...((await response.json()) as object) }
    }
    expect(await one(testKey)).toMatchObject({ status: 200, id: 'a/chat-us' })
    await manage('POST', `/apikey/${limited.api_key_id}/access`, { models: ['a/chat-eu'] })
    expect(await one(limited.api_key)).toMatchObject({ status: 404 })
    await manage('POST', `/apikey/${limited.api_key_id}/access`, { models: null })
    await manage('POST', '/alias', { name: 'a/chat-us-latest', target: 'a/chat-eu' })
    expect(await one(testKey)).toMatchObject({ id: 'a/chat-us-latest', geolocation: 'eu' })
    await fetch(`${own.manageUrl}/v1/manage/alias/a/chat-us-latest`, {
      method: 'DELETE',
      headers: { 'x-api-key': testKey },
    })
  })

  test('sees an alias in place of the model that it replaces', async () => {
    await manage('POST', '/alias', { name: 'a/chat-us', target: 'a/chat-eu' })
    const { data } = (await (await fetch(`${own.url}/v1/models`, { headers: { 'x-api-key': testKey } })).json()) as List
    expect(data.filter(({ id }) => id === 'a/chat-us')).toMatchObject([{ geolocation: 'eu' }])
    await fetch(`${own.manageUrl}/v1/manage/alias/a/chat-us`, {
      method: 'DELETE',
      headers: { 'x-api-key': testKey },
    })
  })

  test('with an access list sees the names on it', async () => {
    await manage('POST', `/apikey/${limited.api_key_id}/access`, { models: ['quick', 'a/chat-eu'] })
    const seen = ['a/chat-eu', 'best', 'best@eu', 'mine', 'quick']
    expect(await ids('/v1/models', limited.api_key)).toEqual(seen)
    expect(await ids('/v1/models/all', limited.api_key)).toEqual(seen)
    expect(await ids('/v1/models/decision', limited.api_key)).toEqual([])
    await manage('POST', `/apikey/${limited.api_key_id}/access`, { models: null })
    expect(await ids('/v1/models', limited.api_key)).toContain('a/chat-us')
  })

  test('sees the models that its organization has approved, at once; all other callers see all, managed policies as well', async () => {
    await manage('PUT', '/org/models', { approved_models: ['a/chat-us'] })
    expect(await ids('/v1/models', testKey)).toEqual(['a/chat-us', 'best', 'mine', 'quick'])
    expect(await ids('/v1/models')).toEqual(['a/chat-eu', 'a/chat-us'])
    expect(await ids('/v1/models/managed', testKey)).toEqual(['best', 'best@eu'])
    expect(await ids('/v1/models/managed', 'wrong')).toEqual(['best', 'best@eu'])
    await manage('PUT', '/org/models', { approved_models: null })
    expect(await ids('/v1/models', testKey)).toContain('a/chat-eu')
  })

  test('sees the models that the data rules of its organization allow', async () => {
    await manage('PUT', '/org/rules', { geolocation: ['eu'] })
    expect(await ids('/v1/models', testKey)).toEqual(['a/chat-eu', 'best', 'best@eu', 'mine'])
  })

  test('in the form of the Messages API sees the same', async () => {
    const headers = { 'x-api-key': testKey, 'anthropic-version': '2023-06-01' }
    const response = await fetch(`${own.url}/v1/models`, { headers })
    const { data } = (await response.json()) as List
    expect(data.map(({ id }) => id).toSorted()).toEqual(await ids('/v1/models', testKey))
  })

  test('that may not call the model hears 403, and 404 where it is not approved', async () => {
    const call = async (model: string) => {
      const headers = { 'x-api-key': limited.api_key, 'content-type': 'application/json' }
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] })
      provider.received.length = 0
      const response = await fetch(`${own.url}/v1/chat/completions`, { method: 'POST', headers, body })
      const asked = provider.received.map(({ body }) => body.model)
      return [response.status, await response.json(), asked]
    }
    expect(await call('quick')).toMatchObject([200, { model: 'a/chat-us' }, ['chat-us']])
    await manage('POST', `/apikey/${limited.api_key_id}/access`, { models: ['a/chat-eu'] })
    expect(await call('quick')).toMatchObject([403, { error: { code: 'forbidden', param: 'model' } }, []])
    expect(await call('policy/best@eu')).toMatchObject([200, { model: 'a/chat-eu' }, ['chat-eu']])
    await manage('PUT', '/org/models', { approved_models: ['a/chat-eu'] })
    expect(await call('quick')).toMatchObject([404, { error: { code: 'model_not_found' } }, []])
    expect(await call('policy/best@eu')).toMatchObject([200, { model: 'a/chat-eu' }, ['chat-eu']])
  })

  test('that is revoked, has expired or was never one sees nothing: 403', async () => {
    const other = (await manage('POST', '/apikey', { name: 'other' })) as typeof limited
    const headers = { authorization: `Bearer ${testKey}` }
    await fetch(`${own.manageUrl}/v1/manage/apikey/${other.api_key_id}`, { method: 'DELETE', headers })
    for (const name of [
      '',
      '/chat',
      '/all',
      '/decision',
      '/embedding',
      '/image',
      '/transcription',
      '/speech',
      '/a/chat-eu',
    ]) {
      for (const secret of [other.api_key, 'ir-nobody']) {
        const response = await fetch(`${own.url}/v1/models${name}`, { headers: { 'x-api-key': secret } })
        expect([name, response.status]).toEqual([name, 403])
      }
    }
  })

  test('sees a managed policy as soon as the configuration has it', async () => {
    expect(await ids('/v1/models/managed')).toEqual(['best', 'best@eu'])
    own.put('config.yaml', files['config.yaml'].replace('  best@eu:', '  newest: { targets: [a/chat-eu] }\n  best@eu:'))
    await expect.poll(() => ids('/v1/models/managed')).toContain('newest')
    expect(await ids('/v1/models', testKey)).toContain('newest')
  })
})
