import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callRoutes } from '../../src/http/endpoints.ts'
import { openStore } from '../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { testEach } from '../helpers/slow.ts'

const page = 'https://app.example.com'
const model = 'vllm/m'
const messages = [{ role: 'user', content: 'Hello' }]

/** A good body for each path of a call. */
const bodies: { readonly [path: string]: object } = {
  '/v1/chat/completions': { model, messages },
  '/v1/responses': { model, input: 'Hello' },
  '/v1/messages': { model, messages, max_tokens: 100 },
  '/v1/messages/count_tokens': { model, messages },
}

let provider: LoopbackProvider
let router: TestRouter
let shared: TestRouter
/** What the provider answers. */
let answer: Parameters<typeof loopbackProvider>[0]

beforeAll(async () => {
  provider = await loopbackProvider((received, response) => answer(received, response))
  const providers = { vllm: { base_url: provider.url, unknown_models: 'pass' } }
  router = await testRouter({ providers })
  shared = await testRouter({ settings: { server: { host: '127.0.0.1', port: 0, cors: [page] } } })
})
afterAll(async () => {
  await router.end()
  await shared.end()
  await provider.close()
})

type Came = { status: number; headers: IncomingHttpHeaders; text: string }

/** Sends exactly these headers: `fetch` adds and joins some. */
async function send(
  method: string,
  path: string,
  { headers = {}, body, to = router }: { headers?: Record<string, string | string[]>; body?: string; to?: TestRouter },
): Promise<Came> {
  const { promise, resolve, reject } = Promise.withResolvers<Came>()
  const named = { host: new URL(to.url).host, ...headers }
  const doubled = Object.entries(named).flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one]))
  const sent = httpRequest(to.url + path, { method, headers: doubled }, async (response) => {
    let text = ''
    for await (const chunk of response) text += chunk
    resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
  })
  sent.on('error', reject)
  sent.end(body)
  return await promise
}

const bearer = { authorization: `Bearer ${testKey}` }
const json = { ...bearer, 'content-type': 'application/json' }
const errorOf = ({ text }: Came) => JSON.parse(text).error

function answerOk(): void {
  answer = (_, response) =>
    answerJson(response, { choices: [{ message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }] })
}

/** The paths that take a body, with their variables filled in. */
function takingBodies(): { method: string; path: string }[] {
  const taking = router.endpoints.filter(({ method }) => method !== 'GET' && method !== 'DELETE')
  return taking.map(({ method, path }) => ({ method, path: path.replaceAll(/[:*]\w+/g, 'self') }))
}

/** The paths that take forms, alone or beside JSON. */
const forms: ReadonlyMap<string, 'alone' | 'too'> = new Map([
  ['/v1/audio/transcriptions', 'alone'],
  ['/v1/images/edits', 'too'],
])

describe('the content type of a body', () => {
  test.each([
    undefined,
    'text/plain',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    'text/json',
  ])('%s is refused on every path that takes a body, with the one to send', async (type) => {
    for (const { method, path } of takingBodies()) {
      const refused = await send(method, path, {
        headers: { ...bearer, ...(type !== undefined && { 'content-type': type }) },
        body: JSON.stringify(bodies[path] ?? { name: 'x' }),
      })
      // These have no body to read.
      if (/\/(rotate|cancel)$/.test(path)) continue
      const takesForms = forms.get(path)
      if (takesForms && type?.startsWith('multipart/form-data')) {
        expect([path, refused.status], refused.text).toEqual([path, 400])
        continue
      }
      expect([path, refused.status, errorOf(refused).param], refused.text).toEqual([path, 415, 'content-type'])
      const wanted = takesForms === 'alone' ? 'Content-Type multipart/form-data' : 'Content-Type: application/json'
      expect(errorOf(refused).message).toContain(wanted)
      expect(errorOf(refused).message).toContain(type ?? 'has no Content-Type')
    }
  })

  test.each([
    'application/json',
    'APPLICATION/JSON; charset=utf-8',
    'application/vnd.api+json',
    'application/json;x=y',
  ])('%s is JSON', async (type) => {
    answerOk()
    for (const [path, body] of Object.entries(bodies)) {
      const headers = { ...bearer, 'content-type': type }
      const { status, text } = await send('POST', path, { headers, body: JSON.stringify(body) })
      expect([path, status], text).toEqual([path, 200])
    }
  })

  test('matters only where there is a body', async () => {
    const { status, text } = await send('POST', '/v1/chat/completions', {
      headers: { ...bearer, 'content-length': '0' },
    })
    expect([status, JSON.parse(text).error.code]).toEqual([400, 'invalid_request'])
  })
})

describe('two headers of one name', () => {
  test.each([
    ['authorization', `Bearer ${testKey}`, 'Bearer other'],
    ['authorization', 'Bearer other', `Bearer ${testKey}`],
    ['x-api-key', testKey, testKey],
    ['host', 'a', 'b'],
    ['content-type', 'application/json', 'text/plain'],
    ['x-router-strict', 'true', 'true'],
    ['anthropic-version', '2023-06-01', '2024-01-01'],
  ])('%s → 400 that names it', async (name, one, other) => {
    for (const path of ['/v1/models', '/health', '/v1/manage/org', '/v1/nothing']) {
      const refused = await send('GET', path, { headers: { [name]: [one, other] } })
      expect([refused.status, errorOf(refused).param]).toEqual([400, name])
      expect(errorOf(refused).message).toBe(`There are two ${name} headers: send one.`)
    }
    for (const { path } of callRoutes) {
      const headers = { ...json, [name]: [one, other] }
      expect((await send('POST', path, { headers, body: JSON.stringify(bodies[path]) })).status).toBe(400)
    }
  })
})

describe('x-router-strict', () => {
  const lossy = { model, messages, tools: [{ type: 'web_search' }] }
  const asking = (strict: string, path = '/v1/chat/completions') =>
    send('POST', path, { headers: { ...json, 'x-router-strict': strict }, body: JSON.stringify(lossy) })

  test.each([
    ['true', 400],
    ['TRUE', 400],
    ['1', 400],
    ['false', 200],
    ['0', 200],
  ])('%s: a call that loses a field is %i', async (strict, status) => {
    answerOk()
    const came = await asking(strict)
    expect([came.status, came.text.includes('tools.web_search')]).toEqual([status, status === 400])
  })

  test.each(['yes', 'on', '', '2', 'true, true'])('"%s" → 400 that names it', async (strict) => {
    for (const path of [...callRoutes.map((route) => route.path), '/v1/embeddings']) {
      const refused = await asking(strict, path)
      expect([path, refused.status, errorOf(refused).param]).toEqual([path, 400, 'x-router-strict'])
    }
  })
})

describe('HEAD', () => {
  // Every so many-th endpoint is enough for the fast suite.
  testEach([6, 1], { slowIf: (step) => step === 1 })(
    'is answered as GET is, without the body (step %d)',
    async (step) => {
      const read = router.endpoints.filter(({ method }) => method === 'GET')
      for (const { path } of read.filter((_, index) => index % step === 0)) {
        const filled = path.replaceAll(/[:*]\w+/g, 'self').replace(/\/live$/, '/live?events=1')
        const [head, get] = [
          await send('HEAD', filled, { headers: bearer }),
          await send('GET', filled, { headers: bearer }),
        ]
        // What is measured is another time longer or shorter.
        const lengthOf = ({ headers }: Came) => path === '/metrics' || headers['content-length']
        const facts = (came: Came) => [came.status, came.headers['content-type'], lengthOf(came)]
        expect([filled, ...facts(head), head.text]).toEqual([filled, ...facts(get), ''])
      }
    },
  )

  test('is no method where GET is none', async () => {
    for (const { path } of callRoutes) {
      const refused = await send('HEAD', path, { headers: bearer })
      expect([refused.status, refused.headers.allow]).toEqual([405, 'POST'])
    }
  })
})

describe('OPTIONS', () => {
  const preflight = {
    origin: page,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'x-a, b',
  }

  test('is refused everywhere, and no page reads a response, while no origin is listed', async () => {
    for (const { path } of router.endpoints) {
      const filled = path.replaceAll(/[:*]\w+/g, 'self')
      const refused = await send('OPTIONS', filled, { headers: preflight })
      expect([filled, refused.status]).toEqual([filled, 405])
      expect(Object.keys(refused.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
    const { headers } = await send('GET', '/v1/models', { headers: { origin: page } })
    expect([headers['access-control-allow-origin'], headers.vary]).toEqual([undefined, undefined])
  })

  test('lets the pages of listed origins call every path', async () => {
    for (const [path, found] of Map.groupBy(shared.endpoints, (endpoint) => endpoint.path)) {
      const filled = path.replaceAll(/[:*]\w+/g, 'self')
      const { status, headers, text } = await send('OPTIONS', filled, { headers: preflight, to: shared })
      expect([filled, status, text]).toEqual([filled, 204, ''])
      expect(headers).toMatchObject({
        'access-control-allow-origin': page,
        'access-control-allow-headers': 'x-a, b',
        vary: 'Origin, Access-Control-Request-Headers',
      })
      const methods = found.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
      expect([headers.allow, headers['access-control-allow-methods']]).toEqual([methods, methods])
    }
  })

  test('and to read every response, errors as well', async () => {
    for (const [path, status] of [
      ['/v1/models', 200],
      ['/v1/manage/org', 401],
      ['/v1/nothing', 404],
      ['/v1/chat/completions', 405],
    ] as const) {
      const came = await send('GET', path, { headers: { origin: page }, to: shared })
      expect([came.status, came.headers['access-control-allow-origin'], came.headers.vary]).toEqual([
        status,
        page,
        'Origin',
      ])
      expect(came.headers['access-control-expose-headers']).toContain('x-router-model')
    }
  })

  test('is refused to others; one without an origin is told the methods', async () => {
    for (const origin of ['https://evil.example', 'null', 'http://app.example.com', `${page}:8443`]) {
      const refused = await send('OPTIONS', '/v1/models', { headers: { ...preflight, origin }, to: shared })
      expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([405, undefined])
      const read = await send('GET', '/v1/models', { headers: { origin }, to: shared })
      expect([read.status, read.headers['access-control-allow-origin']]).toEqual([200, undefined])
      // A cache that keeps this answer must not give it to a page of a listed origin.
      expect(read.headers.vary).toBe('Origin')
    }
    const unstated = await send('GET', '/v1/models', { to: shared })
    expect([unstated.headers['access-control-allow-origin'], unstated.headers.vary]).toEqual([undefined, 'Origin'])
    const plain = await send('OPTIONS', '/v1/models', { to: shared })
    expect([plain.status, plain.headers.allow]).toEqual([204, 'GET, HEAD'])
  })
})

describe('the request id of a client', () => {
  test('is in the reply, the row and, on Messages, in request-id', async () => {
    answerOk()
    for (const [path, body] of Object.entries(bodies).slice(0, 3)) {
      const id = `trace-1${path}`
      const { headers, status } = await send('POST', path, {
        headers: { ...json, 'x-request-id': id },
        body: JSON.stringify(body),
      })
      expect([status, headers['x-request-id']]).toEqual([200, id])
      expect(headers['request-id']).toBe(path === '/v1/messages' ? id : undefined)
      const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
      expect((await Array.fromAsync(store.ledger.each({}))).at(-1)?.requestId).toBe(id)
      await store.close()
    }
    const counted = await send('POST', '/v1/messages/count_tokens', {
      headers: json,
      body: JSON.stringify(bodies['/v1/messages/count_tokens']),
    })
    expect(counted.headers['request-id']).toBe(counted.headers['x-request-id'])
    const listed = await send('GET', '/v1/models', {
      headers: { 'anthropic-version': '2023-06-01', 'x-request-id': 'a' },
    })
    expect(listed.headers['request-id']).toBe('a')
  })

  test('is in errors of Messages, whole and streamed, and in their header', async () => {
    const headers = { ...json, 'x-request-id': 'mine' }
    answer = (_, response) => answerJson(response, { error: { message: 'No.' } }, 400)
    const whole = await send('POST', '/v1/messages', { headers, body: JSON.stringify(bodies['/v1/messages']) })
    expect([whole.headers['request-id'], JSON.parse(whole.text).request_id]).toEqual(['mine', 'mine'])
    answer = (_, response) => {
      beginStream(response)
      response.end('data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n')
    }
    const streamed = { ...bodies['/v1/messages'], stream: true }
    const broken = await send('POST', '/v1/messages', { headers, body: JSON.stringify(streamed) })
    expect(broken.text).toMatch(/event: error\ndata: .*"param":null.*"request_id":"mine"/)
  })
})

describe('an error', () => {
  test('has a `param` in every API, null when no field is to blame', async () => {
    answer = (_, response) => answerJson(response, { error: { message: 'Broken.' } }, 500)
    for (const [path, body] of Object.entries(bodies).slice(0, 3)) {
      const failed = await send('POST', path, { headers: json, body: JSON.stringify(body) })
      expect([path, failed.status, errorOf(failed).param]).toEqual([path, 502, null])
      const wrong = await send('POST', path, { headers: json, body: JSON.stringify({ ...body, model: 7 }) })
      expect(errorOf(wrong).param).toBe('model')
    }
    for (const path of ['/v1/nothing', '/v1/manage/org']) {
      expect(errorOf(await send('GET', path, {}))).toHaveProperty('param', null)
    }
  })

  test('has it in a stream of Chat as well', async () => {
    answer = (_, response) => {
      beginStream(response)
      response.end('data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n')
    }
    const body = JSON.stringify({ ...bodies['/v1/chat/completions'], stream: true })
    const { text } = await send('POST', '/v1/chat/completions', { headers: json, body })
    expect(JSON.parse(text.trim().split('\ndata: ').at(-1) ?? '').error).toMatchObject({
      code: 'provider_cut',
      param: null,
    })
  })

  test.each([
    [503, { message: 'Try later.' }],
    [529, { message: 'Try later.' }],
    [503, { message: 'Try later.', type: 'server_error' }],
    [500, { message: 'Try later.', type: 'overloaded' }],
  ])(
    'of an overloaded provider (%i %j) is 529 on Messages, 502 elsewhere, with the time to wait',
    async (status, error) => {
      answer = (_, response) => answerJson(response, { error }, status, { 'retry-after': '7' })
      for (const [path, body] of Object.entries(bodies).slice(0, 3)) {
        const failed = await send('POST', path, { headers: json, body: JSON.stringify(body) })
        const isMessages = path === '/v1/messages'
        expect([path, failed.status, failed.headers['retry-after'], errorOf(failed).type]).toEqual([
          path,
          isMessages ? 529 : 502,
          '7',
          isMessages ? 'overloaded_error' : 'api_error',
        ])
      }
    },
  )
})
