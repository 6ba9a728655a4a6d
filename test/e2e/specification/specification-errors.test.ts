import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openapi } from '../../helpers/openapi.ts'
import { testKey } from '../../helpers/router.ts'
import type { Body } from '../clients/sdk-wire.ts'
import { models, specificationWorld, type World } from './specification-world.ts'

// The contract of credentials, errors and management, statement by statement.

const bodyLimit = 200_000

let world: World
beforeAll(async () => {
  const server = { host: '127.0.0.1', port: 0, body_limit: `${bodyLimit}b` }
  world = await specificationWorld({ settings: { server, manage: { port: 0 } } })
})
afterAll(() => world.end())

const paths = ['/v1/chat/completions', '/v1/responses', '/v1/messages'] as const
const callOf = (path: string, model = models.ordinary as string) => {
  const messages = [{ role: 'user', content: 'Hi' }]
  if (path.endsWith('responses')) return { model, input: 'Hi', max_output_tokens: 50 }
  return { model, messages, max_tokens: 50 }
}
const idsOfLists = [
  ['17.8', '/v1/models'],
  ['17.9', '/v1/models/chat'],
  ['17.10', '/v1/models/all'],
  ['17.11', '/v1/models/decision'],
] as const
const lists = idsOfLists.map(([, path]) => path)

/** Calls an endpoint with exactly these headers. */
async function bare(path: string, headers: object, body?: unknown): Promise<{ status: number; body: Body }> {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const all = { 'content-type': 'application/json', ...headers }
  const { url, manageUrl } = world.router
  const answer = await fetch((path.startsWith('/v1/manage') ? manageUrl : url) + path, { headers: all, ...sent })
  return { status: answer.status, body: await answer.json() }
}

async function manage(method: string, path: string, body?: object): Promise<Body> {
  const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const answer = await fetch(`${world.router.manageUrl}/v1/manage${path}`, { method, headers, ...sent })
  expect([path, answer.status < 300]).toEqual([path, true])
  return answer.status === 204 ? undefined : await answer.json()
}
const newKey = (more: object = {}) => manage('POST', '/apikey', { name: 'one', ...more })
const by = (secret: string) => ({ authorization: `Bearer ${secret}` })

/** A key that was revoked, one that has expired, and one that never was. */
async function badKeys(): Promise<string[]> {
  const [revoked, expired] = [await newKey(), await newKey()]
  await manage('DELETE', `/apikey/${revoked.api_key_id}`)
  const expires_at = new Date(Date.now() + 60).toISOString()
  await manage('POST', `/apikey/${expired.api_key_id}/expiry`, { expires_at })
  await expect.poll(async () => (await bare('/v1/auth/check', by(expired.api_key))).status).toBe(403)
  return [revoked.api_key, expired.api_key, 'ir-nobody']
}

describe('Authentication', () => {
  test.each([
    ['17.1', paths[0]],
    ['17.2', '/v1/manage/org'],
    ['17.2', '/v1/manage/apikey'],
  ])('%s: %s requires Authorization: Bearer <API_KEY>', async (_, path) => {
    const body = path.startsWith('/v1/manage') ? undefined : callOf(path, 'nothing/x')
    expect((await bare(path, {}, body)).status).toBe(401)
    expect((await bare(path, { authorization: '' }, body)).status).toBe(401)
    expect((await bare(path, { authorization: 'Bearer' }, body)).status).toBe(401)
    expect((await bare(path, by(testKey), body)).status).toBe(body ? 404 : 200)
  })
  test.each([
    ['17.18', paths[0]],
    ['17.7, 9.2', paths[1]],
    ['17.18', paths[2]],
  ])('%s: %s takes x-api-key as well', async (_, path) => {
    expect((await bare(path, { 'x-api-key': testKey }, callOf(path, 'nothing/x'))).status).toBe(404)
    expect((await bare(path, { 'x-api-key': '' }, callOf(path, 'nothing/x'))).status).toBe(401)
  })
  test.each(idsOfLists)('%s, 17.20: %s takes both headers alike, or none', async (_, path) => {
    const one = await bare(path, by(testKey))
    expect(one.status).toBe(200)
    expect(await bare(path, { 'X-Api-Key': testKey })).toEqual(one)
    expect((await bare(path, {})).status).toBe(200)
    expect((await bare(path, { 'x-api-key': '' })).status).toBe(200)
  })
  test('17.12, 15.6, 15.7: /v1/models/managed needs none, and looks at none', async () => {
    expect((await bare('/v1/models/managed', {})).status).toBe(200)
    expect((await bare('/v1/models/managed', by('ir-nobody'))).status).toBe(200)
  })
  test('17.13: no credentials, all public models', async () => {
    const { data } = (await bare('/v1/models', {})).body
    expect(data.map(({ id }: Body) => id)).toEqual(expect.arrayContaining(Object.values(models)))
  })
  test("17.14, 1.22: a valid key, only models approved for the organization and allowed by the key's access list", async () => {
    const key = await newKey()
    await manage('PUT', '/org/models', { approved_models: [models.ordinary, models.google] })
    await manage('POST', `/apikey/${key.api_key_id}/access`, { models: [models.ordinary, models.anthropic] })
    for (const path of lists.filter((one) => !one.endsWith('decision'))) {
      const { data } = (await bare(path, by(key.api_key))).body
      expect([path, data.map(({ id }: Body) => id)]).toEqual([path, [models.ordinary]])
    }
    await manage('PUT', '/org/models', { approved_models: null })
  })
  test('17.15, 17.16, 17.17, 19.4: an invalid, expired or revoked key is rejected with 403, not treated as anonymous', async () => {
    for (const secret of await badKeys()) {
      for (const path of lists) expect([path, (await bare(path, by(secret))).status]).toEqual([path, 403])
      for (const path of paths) expect([path, (await bare(path, by(secret), callOf(path))).status]).toEqual([path, 403])
    }
  })
})

describe('Errors', () => {
  const expectError = (answer: { status: number; body: Body }, status: number) =>
    expect(answer).toMatchObject({
      status,
      body: { error: { origin: 'router', message: expect.stringMatching(/./) } },
    })

  describe.each(paths)('%s', (path) => {
    const ask = (body: object, more = {}) => world.ask(path, body, more)
    const asks = async (secret: string, model?: string) => await bare(path, by(secret), callOf(path, model))

    test('19.1, 7.1, 7.2: 400 for a malformed payload or invalid parameters', async () => {
      const answer = await world.router.call(path, '{"model":')
      expectError({ status: answer.status, body: await answer.json() }, 400)
      expectError(await ask({ ...callOf(path), temperature: 'warm' }), 400)
    })
    test('19.2: 401 for a missing or empty Authorization header', async () => {
      expectError(await bare(path, {}, callOf(path)), 401)
      expectError(await bare(path, { authorization: '' }, callOf(path)), 401)
    })
    test('19.3: 402 when the balance of the organization is exhausted', async () => {
      await manage('PUT', '/org/balance', { enforces_balance: true })
      expectError(await ask(callOf(path)), 402)
      await manage('PUT', '/org/balance', { enforces_balance: false })
    })
    test('19.3, 17.19: 402 when the monthly_limit of a key is exhausted', async () => {
      expectError(await asks((await newKey({ monthly_limit: 1e-9 })).api_key), 402)
    })
    test('19.4: 403 for an invalid token, or a model not in the access list', async () => {
      expectError(await asks('ir-nobody'), 403)
      const key = await newKey()
      await manage('POST', `/apikey/${key.api_key_id}/access`, { models: [models.google] })
      expectError(await asks(key.api_key), 403)
    })
    test('19.5: 404 when the provider or model is not supported, or not approved for the organization', async () => {
      for (const model of ['nothing/x', 'openai/no-such-model', 'mistral/mistral-medium-latest']) {
        expectError(await asks(testKey, model), 404)
      }
      await manage('PUT', '/org/models', { approved_models: [models.google] })
      expectError(await asks(testKey), 404)
      await manage('PUT', '/org/models', { approved_models: null })
    })
    test('19.8: 413 when the payload is too large', async () => {
      expectError(await ask({ ...callOf(path), user: 'x'.repeat(bodyLimit) }), 413)
    })
    test('19.6, 20.6: 429 when the rate limit is exceeded, with Retry-After', async () => {
      const key = await newKey()
      await manage('POST', `/apikey/${key.api_key_id}/limits`, { requests_per_minute: 1 })
      await ask(callOf(path), { headers: by(key.api_key) })
      const answer = await ask(callOf(path), { headers: by(key.api_key) })
      expectError(answer, 429)
      expect(answer.headers.get('x-ratelimit-limit-requests')).toBe('1')
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    })
    test('19.6: 429 of a provider comes with its Retry-After', async () => {
      const answer = await ask(callOf(path), { step: { refuse: 429, retryAfter: '7' } })
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7'])
    })
    test('19.7: 502 when the upstream provider returned an invalid response', async () => {
      for (const refuse of [500, 401]) expect((await ask(callOf(path), { step: { refuse } })).status).toBe(502)
    })
  })

  test('7.3: an error of /v1/messages has the form of that API around it', async () => {
    const { body } = await bare(paths[2], {}, callOf(paths[2]))
    const error = { type: 'authentication_error', origin: 'router', message: expect.stringMatching(/./), param: null }
    expect(body).toMatchObject({ type: 'error', error, request_id: expect.stringMatching(/./) })
  })
  test.each(paths)('19.10: 500 for an internal error of %s, without its details', async (path) => {
    const broken = vi.spyOn(world.router.snapshot().providers, 'get').mockImplementation(() => {
      throw new TypeError('what only the log has')
    })
    const answer = await world.ask(path, callOf(path))
    broken.mockRestore()
    expectError(answer, 500)
    expect(answer.text).not.toContain('only the log')
    expect((await world.ask(path, callOf(path))).status).toBe(200)
  })
  test('19.11, 19.13: the statuses of each endpoint are described, 500 for an internal error among them', () => {
    const statuses = (path: string, method: string) => Object.keys((openapi.paths as Body)[path][method].responses)
    const all = ['400', '401', '402', '403', '404', '429', '500', '502']
    for (const path of paths) expect(statuses(path, 'post')).toEqual(expect.arrayContaining(all))
    for (const path of lists) expect(statuses(path, 'get')).toEqual(expect.arrayContaining(['200', '403']))
  })
  test.each(lists)('19.14: %s answers 200 or 403, and 400 only to a wrong page of the Messages form', async (path) => {
    const headers = { 'x-api-key': testKey, 'anthropic-version': '2023-06-01' }
    expect((await bare(path, { 'x-api-key': testKey })).status).toBe(200)
    expect((await bare(`${path}?limit=0`, by('ir-nobody'))).status).toBe(403)
    expect((await bare(`${path}?limit=0`, by(testKey))).status).toBe(200)
    if (path === '/v1/models') expect((await bare(`${path}?limit=0`, headers)).status).toBe(400)
  })
  test('20.7, 20.8: all paths of the API are prefixed /v1, and the version of the interface is 1.0.0', () => {
    expect((openapi.info as Body).version).toBe('1.0.0')
    const others = Object.keys(openapi.paths as Body).filter((path) => !path.startsWith('/v1/'))
    expect(others.toSorted()).toEqual(['/docs/errors.html', '/health', '/metrics', '/openapi.json', '/ready'])
  })
})

describe('Management', () => {
  test('16.3: {manage_url} may be another address than {base_url}', async () => {
    const { url, manageUrl } = world.router
    const status = async (base: string, path: string) => (await fetch(base + path, { headers: by(testKey) })).status
    expect(manageUrl).not.toBe(url)
    expect([await status(manageUrl, '/v1/manage/org'), await status(url, '/v1/manage/org')]).toEqual([200, 404])
    // Calls are POST.
    const calls = '/v1/chat/completions'
    expect([await status(manageUrl, calls), await status(url, calls)]).toEqual([404, 405])
  })
  test('16.1, 1.23, 7.4, 7.5: GET /v1/manage/org returns {name, balance}', async () => {
    expect(await manage('GET', '/org')).toEqual({ name: expect.any(String), balance: expect.any(Number) })
  })

  const fields: [statement: string, expected: object][] = [
    ['7.6: id is a UUID', { id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) }],
    ['7.7: name is a string', { name: 'recorded' }],
    ['7.8: monthly_limit is a number', { monthly_limit: 5 }],
    ['7.9: monthly_spend is a number', { monthly_spend: 0 }],
    [
      '7.10, 7.11: permissions are {manage, completions}, strings, none among them',
      { permissions: { manage: 'none', completions: 'write' } },
    ],
    ['7.12: labels is an object', { labels: { team: 'a' } }],
    ['7.13: created_by is {id, email}', { created_by: { id: expect.any(String), email: expect.any(String) } }],
  ]
  test.each(fields)('16.2, 1.24: GET /v1/manage/apikey returns {keys}, %s', async (_, expected) => {
    const { api_key_id } = await newKey({ name: 'recorded', monthly_limit: 5, labels: { team: 'a' } })
    const { keys } = await manage('GET', '/apikey')
    expect(await keys.find(({ id }: Body) => id === api_key_id)).toMatchObject(expected)
    for (const key of keys) {
      const members = ['created_by', 'id', 'labels', 'monthly_limit', 'monthly_spend', 'name', 'permissions']
      expect(Object.keys(key).toSorted()).toEqual(members)
    }
  })
  test('7.9, 17.19: monthly_spend is what the calls of a key cost', async () => {
    const { api_key_id, api_key } = await newKey()
    const { body } = await world.ask(paths[0], callOf(paths[0]), { headers: by(api_key) })
    const { keys } = await manage('GET', '/apikey')
    const { monthly_spend } = await keys.find(({ id }: Body) => id === api_key_id)
    expect(monthly_spend).toBeCloseTo(body.usage.cost, 9)
    expect(monthly_spend).toBeGreaterThan(0)
  })
})
