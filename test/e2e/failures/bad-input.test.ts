import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'

let router: TestRouter

beforeAll(async () => {
  router = await testRouter()
})

afterAll(() => router.end())

const good = { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }] }

async function refused(body: unknown, headers: Record<string, string> = {}) {
  const response = await router.call('/v1/chat/completions', body, headers)
  // biome-ignore lint/suspicious/noExplicitAny: an error body is checked field by field.
  return { status: response.status, ...((await response.json()) as any) }
}

test.each([
  ['invalid JSON', '{"model": ', 400, /JSON/],
  ['no JSON object', '[1]', 400, /object/],
  ['no model', { messages: good.messages }, 400, /model/],
  ['a model of the wrong type', { ...good, model: 7 }, 400, /model/],
  ['no messages', { model: good.model }, 400, /messages/],
  ['empty messages', { ...good, messages: [] }, 400, /messages/],
  ['messages of the wrong type', { ...good, messages: 'Hello' }, 400, /messages/],
  ['an unknown role', { ...good, messages: [{ role: 'wizard', content: 'x' }] }, 400, /messages\[0\]\.role/],
  ['a temperature out of range', { ...good, temperature: 3 }, 400, /temperature/],
  ['a temperature of the wrong type', { ...good, temperature: 'hot' }, 400, /temperature/],
  ['a bare model name', { ...good, model: 'echo' }, 404, /<provider>\/<model>/],
  ['an unknown provider', { ...good, model: 'nobody/x' }, 404, /nobody/],
  ['an unknown model', { ...good, model: 'demo/nothing' }, 404, /nothing/],
  ['a provider without its secret', { ...good, model: 'openai/gpt-4o-mini' }, 404, /OPENAI_API_KEY/],
])('%s → %s', async (_, body, status, message) => {
  const answer = await refused(body)
  expect(answer.status).toBe(status)
  expect(answer.error).toMatchObject({ origin: 'router', message: expect.stringMatching(message) })
})

test('a body of 60 MB → 413', async () => {
  const answer = await refused(
    `{"model":"demo/echo","messages":[{"role":"user","content":"${'x'.repeat(60_000_000)}"}]}`,
  )
  expect(answer).toMatchObject({
    status: 413,
    error: { origin: 'router', message: expect.stringMatching(/body_limit/) },
  })
})

test.each([
  ['no key', {}, 401],
  ['an empty key', { authorization: 'Bearer ' }, 401],
  ['a key of another scheme', { authorization: 'Basic abc' }, 403],
  ['an unknown key', { authorization: 'Bearer ir-unknown' }, 403],
  ['an unknown x-api-key', { 'x-api-key': 'ir-unknown' }, 403],
])('%s → %s', async (_, headers, status) => {
  for (const [path, body] of [
    ['/v1/chat/completions', JSON.stringify(good)],
    ['/v1/models', undefined],
  ] as const) {
    const response = await fetch(router.url + path, { method: body ? 'POST' : 'GET', headers, ...(body && { body }) })
    const expected = status === 401 && !body ? 200 : status
    expect(`${path} ${response.status}`).toBe(`${path} ${expected}`)
    if (expected === 200) continue
    expect(await response.json()).toMatchObject({ error: { origin: 'router', message: expect.any(String) } })
  }
})

test('x-api-key opens as well as a bearer token', async () => {
  const response = await fetch(`${router.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-api-key': testKey, 'content-type': 'application/json' },
    body: JSON.stringify(good),
  })
  expect(response.status).toBe(200)
})

test('an unknown path and an unsupported method are reported in JSON', async () => {
  const lost = await fetch(`${router.url}/v1/nothing`)
  expect([lost.status, await lost.json()]).toMatchObject([404, { error: { origin: 'router' } }])
  const wrong = await fetch(`${router.url}/v1/chat/completions`)
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
})
