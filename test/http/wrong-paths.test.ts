import { request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callRoutes } from '../../src/http/endpoints.ts'
import { alone, type TestRouter, testKey, testRouter } from '../helpers/router.ts'

let router: TestRouter

beforeAll(async () => {
  router = await testRouter({ providers: alone({}) })
})
afterAll(() => router.end())

const errorIn = async (response: Response) => ((await response.json()) as { error: { message: string } }).error

/** Sends a WebSocket handshake, which `fetch` cannot. */
function handshake(path: string): Promise<{ status: number; upgrade: string; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof handshake>>>()
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    authorization: `Bearer ${testKey}`,
  }
  const sent = httpRequest(router.url + path, { headers }, async (response) => {
    let body = ''
    for await (const chunk of response) body += chunk
    resolve({ status: response.statusCode ?? 0, upgrade: response.headers.upgrade ?? '', body })
  })
  sent.on('error', reject)
  sent.end()
  return promise
}

test('a WebSocket handshake at a path of calls gets a 426, so that clients go on with HTTP at once', async () => {
  for (const { path } of callRoutes) {
    const { status, upgrade, body } = await handshake(path)
    expect([path, status, upgrade]).toEqual([path, 426, 'HTTP/1.1'])
    expect(JSON.parse(body).error).toMatchObject({ code: 'upgrade_required', type: 'invalid_request_error' })
  }
  expect((await fetch(`${router.url}/v1/responses`)).status).toBe(405)
})

describe('a path that does not exist', () => {
  test.each([
    ['/v1/models/gemini-3.5-flash:generateContent', "does not speak Gemini's API"],
    ['/v1beta/models/gemini-3.5-flash:streamGenerateContent', "does not speak Gemini's API"],
    ['/v2/chat', "does not speak Cohere's API"],
    ['/api/chat', "does not speak Ollama's API"],
    ['/openai/deployments/d/chat/completions', 'does not speak Azure'],
    ['/chat/completions', 'Add /v1 to the base URL of the client: it is /v1/chat/completions.'],
    ['/messages', 'Add /v1 to the base URL of the client: it is /v1/messages.'],
    ['/v1/v1/messages', 'Shorten the base URL of the client: it is /v1/messages.'],
    ['/openai/v1/responses', 'Shorten the base URL of the client: it is /v1/responses.'],
    ['/anthropic/v1/messages', 'Shorten the base URL of the client: it is /v1/messages.'],
    ['/api/v1/chat/completions', 'Shorten the base URL of the client: it is /v1/chat/completions.'],
    ['/v1/openai/chat/completions', 'Shorten the base URL of the client: it is /v1/chat/completions.'],
    ['/v1/chat/completions/chat/completions', 'Shorten the base URL of the client: it is /v1/chat/completions.'],
    ['/v1/messages/v1/messages/count_tokens', 'Shorten the base URL of the client: it is /v1/messages/count_tokens.'],
    ['/v1/v1/models/openai/gpt-5', 'Shorten the base URL of the client: it is /v1/models/openai/gpt-5.'],
    ['//v1/chat/completions', 'it is /v1/chat/completions.'],
    ['/v1/chat/completion', 'Did you mean /v1/chat/completions?'],
    ['/v1/Chat/Completions', 'Did you mean /v1/chat/completions?'],
    ['/chat/completion', 'Did you mean /v1/chat/completions?'],
    ['/v1/message', 'Did you mean /v1/messages?'],
    ['/v1/response', 'Did you mean /v1/responses?'],
    ['/v1/', 'The endpoints for chat are /v1/chat/completions, /v1/responses and /v1/messages.'],
  ])('%s is a 404 that says what may be meant', async (path, hint) => {
    const response = await router.call(path, {})
    expect([response.status, (await errorIn(response)).message]).toEqual([404, expect.stringContaining(hint)])
  })

  test('without /v1, with it twice, or behind another prefix is explained at every endpoint of calls', async () => {
    for (const { path } of callRoutes) {
      const below = path.slice('/v1'.length)
      for (const [wrong, hint] of [
        [below, `Add /v1 to the base URL of the client: it is ${path}.`],
        [`/v1${path}`, `Shorten the base URL of the client: it is ${path}.`],
        [`/openai${path}`, `Shorten the base URL of the client: it is ${path}.`],
      ] as const) {
        const { message } = await errorIn(await router.call(wrong, {}))
        expect(message).toBe(`There is no POST ${wrong} here. ${hint}`)
      }
    }
  })

  test('costs little and is cut in the message, however long it is', async () => {
    const long = await errorIn(await router.call(`/${'v1/chat/'.repeat(900)}completions`, {}))
    expect(long.message.length).toBeLessThan(300)
  })

  test('has no hint where nothing is known', async () => {
    expect((await errorIn(await router.call('/v1/nothing', {}))).message).toBe('There is no POST /v1/nothing here.')
  })

  test.each([
    ['GET', '/v1/files', 404],
    ['DELETE', '/v1/models', 405],
  ])('%s %s has the errors of Messages for their clients', async (method, path, status) => {
    const headers = { 'anthropic-version': '2023-06-01' }
    const response = await fetch(router.url + path, { method, headers })
    const body = (await response.json()) as { type: string; request_id: string }
    expect([response.status, body.type, body.request_id]).toEqual([status, 'error', response.headers.get('request-id')])
    const other = await fetch(router.url + path, { method })
    expect([other.headers.get('request-id'), 'type' in ((await other.json()) as object)]).toEqual([null, false])
  })
})

test.each(['utf8', 'UTF8', 'utf-8', '"utf8"'])('a body in %s is read', async (charset) => {
  const headers = { 'content-type': `application/json; charset=${charset}` }
  const body = { model: 'demo/echo', messages: [{ role: 'user', content: 'é' }] }
  expect((await router.call('/v1/chat/completions', body, headers)).status).toBe(200)
})

test('a request without a model names one of its own kind', async () => {
  const missing = await errorIn(await router.call('/v1/moderations', { input: 'x' }))
  expect(missing.message).toContain('such as openai/omni-moderation-latest')
})
