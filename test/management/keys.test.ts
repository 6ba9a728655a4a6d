import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import { openStore } from '../../src/store/open.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { administration } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>

beforeAll(async () => {
  router = await testRouter()
  manage = administration(router)
})
afterAll(() => router.end())

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const uuidLike = expect.stringMatching(uuid)
const ask = { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }] }
const call = (secret: string) => router.call('/v1/chat/completions', ask, { authorization: `Bearer ${secret}` })
const later = '2099-01-31T00:00:00.000Z'

describe('a new key', () => {
  test('its secret is returned once; it may call and not manage', async () => {
    const { status, body } = await manage.post('/apikey', { name: 'ci' })
    expect(status).toBe(201)
    expect(body).toEqual({ api_key_id: uuidLike, api_key: expect.stringMatching(/^ir-/) })
    const { text, body: record } = await manage.get(`/apikey/${body.api_key_id}`)
    expect(record).toEqual({
      id: body.api_key_id,
      name: 'ci',
      monthly_limit: 0,
      monthly_spend: 0,
      permissions: { manage: 'none', completions: 'write', operate: 'none' },
      labels: {},
      created_by: { id: uuidLike, email: '' },
      expires_at: null,
      state: 'active',
      group: null,
      models: null,
      limits: { requests_per_minute: null, tokens_per_minute: null, concurrent_calls: null },
      plugins: {},
      created_at: expect.stringMatching(/Z$/),
    })
    expect(text).not.toContain(body.api_key)
    expect((await call(String(body.api_key))).status).toBe(200)
    expect((await manage.get('/org', String(body.api_key))).status).toBe(403)
  })

  test('has all that it was given', async () => {
    const { body: group } = await manage.post('/group', { name: 'a team', monthly_limit: 7 })
    const { id } = await manage.newKey({
      monthly_limit: 0.000000001,
      permissions: { manage: 'read', completions: 'none' },
      labels: { team: 'search', 'cost center': '42' },
      group_id: group.group_id,
      expires_at: '2099-01-31T01:00:00+01:00',
    })
    expect((await manage.get(`/apikey/${id}`)).body).toMatchObject({
      monthly_limit: 1e-9,
      permissions: { manage: 'read', completions: 'none' },
      labels: { team: 'search', 'cost center': '42' },
      group: group.group_id,
      expires_at: later,
    })
  })

  test.each<[string, unknown, RegExp]>([
    ['no body', undefined, /'name' is missing/],
    ['a list', [], /body must be a JSON object/],
    ['no JSON', '{"name":', /not valid JSON/],
    ['no name', {}, /'name' is missing/],
    ['an empty name', { name: ' ' }, /'name' must be/],
    ['a name that is a number', { name: 1 }, /'name' must be/],
    ['a name of two lines', { name: 'a\nb' }, /'name' must be a single line/],
    ['a field that is mistyped', { name: 'x', monthly_limits: 1 }, /`monthly_limit`/],
    ['a permission that is mistyped', { name: 'x', permissions: { complettions: 'read' } }, /`completions`/],
    [
      'a level that there is not',
      { name: 'x', permissions: { manage: 'admin' } },
      /'permissions.manage' must be one of/,
    ],
    ['a negative limit', { name: 'x', monthly_limit: -1 }, /'monthly_limit' must be .* at least 0/],
    ['a limit that is a text', { name: 'x', monthly_limit: '5' }, /'monthly_limit' must be a number of USD/],
    ['a limit beyond what is exact', { name: 'x', monthly_limit: 1e7 }, /'monthly_limit' .* at most 9000000/],
    ['a limit of less than a nano-dollar', { name: 'x', monthly_limit: 1e-10 }, /at most nine decimals/],
    ['labels that are numbers', { name: 'x', labels: { a: 1 } }, /'labels.a' must be a string/],
    ['labels that are the secret of a key', { name: 'x', labels: { [newSecret()]: 1 } }, /'labels.\[secret\]'/],
    ['labels that are a list', { name: 'x', labels: ['a'] }, /'labels' must be an object/],
    ['a group that there is not', { name: 'x', group_id: 'g' }, /'g'.*GET \/v1\/manage\/group/],
    ['a time without a zone', { name: 'x', expires_at: '2099-01-31T00:00:00' }, /RFC 3339/],
    ['a day that there is not', { name: 'x', expires_at: '2099-02-30T00:00:00Z' }, /RFC 3339/],
    ['a time that has passed', { name: 'x', expires_at: '2020-01-31T00:00:00Z' }, /has passed/],
    ['a number as time', { name: 'x', expires_at: 4_102_444_800 }, /RFC 3339/],
    ['a permission that is no area', { name: 'x', permissions: { constructor: 'read' } }, /'permissions.constructor'/],
  ])('%s → 400', async (_what, body, message) => {
    const answer = await manage.post('/apikey', body)
    expect(answer.body).toMatchObject({ error: { origin: 'router', code: 'invalid_request' } })
    expect(answer.text).not.toContain('ir-')
    expect((answer.body.error as { message: string }).message).toMatch(message)
    expect(answer.status).toBe(400)
  })
})

describe('the list of keys', () => {
  test('has the fields of the specification and no others', async () => {
    const { id } = await manage.newKey({ name: 'listed' })
    const { status, body } = await manage.get('/apikey')
    const keys = body.keys as Record<string, unknown>[]
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(['keys'])
    expect(keys.find((key) => key.id === id)).toEqual({
      id,
      name: 'listed',
      monthly_limit: 0,
      monthly_spend: 0,
      permissions: { manage: 'none', completions: 'write', operate: 'none' },
      labels: {},
      created_by: { id: uuidLike, email: '' },
    })
  })

  test('comes in pages that have every key once', async () => {
    for (let made = 0; made < 5; made++) await manage.newKey()
    const whole = ((await manage.get('/apikey')).body.keys as { id: string }[]).map(({ id }) => id)
    const seen: string[] = []
    let cursor = ''
    do {
      const { body } = await manage.get(`/apikey?limit=2${cursor && `&cursor=${cursor}`}`)
      const page = body.keys as { id: string }[]
      expect(page.length).toBeLessThanOrEqual(2)
      seen.push(...page.map(({ id }) => id))
      cursor = String(body.next_cursor ?? '')
    } while (cursor !== '')
    expect(seen).toEqual(whole)
  })

  test('a cursor is one that a page gave: it goes on when its key was deleted meanwhile, another one is 400', async () => {
    for (let made = 0; made < 3; made++) await manage.newKey()
    const ids = ((await manage.get('/apikey')).body.keys as { id: string }[]).map(({ id }) => id)
    const [beforeLast = '', last = ''] = ids.slice(-2)
    expect((await manage.delete(`/apikey/${beforeLast}`)).status).toBe(204)
    const after = await manage.get(`/apikey?cursor=${beforeLast}`)
    expect({ status: after.status, body: after.body }).toMatchObject({ status: 200, body: { keys: [{ id: last }] } })
    expect((await manage.get(`/apikey?cursor=${last}`)).body).toEqual({ keys: [] })
    for (const path of [
      `/apikey?cursor=${randomUUID()}`,
      `/audit?cursor=${last}`,
      '/group?cursor=7',
      '/alias?cursor=a%20b',
      '/policy?cursor=a/b',
    ]) {
      const error = { param: 'cursor', message: expect.stringMatching(/'cursor' .*next_cursor/) }
      expect(await manage.get(path), path).toMatchObject({ status: 400, body: { error } })
    }
    // Nothing of these is stored.
    for (const path of [`/group?cursor=${randomUUID()}`, '/alias?cursor=gone', '/policy?cursor=gone']) {
      expect((await manage.get(path)).status, path).toBe(200)
    }
  })

  test.each([
    ['limit=0', /'limit' must be a whole number from 1 to 1000/],
    ['limit=1001', /'limit'/],
    ['limit=many', /'limit'/],
    ['limit=1&limit=2', /'limit' is given 2 times/],
    ['cursor=', /'cursor' is empty/],
    ['cursr=x', /`cursor`/],
  ])('?%s → 400', async (query, message) => {
    const { status, body } = await manage.get(`/apikey?${query}`)
    expect((body.error as { message: string }).message).toMatch(message)
    expect(status).toBe(400)
  })
})

describe('a key that changes', () => {
  test('its limit, its expiry, its labels', async () => {
    const { id } = await manage.newKey()
    const limited = await manage.post(`/apikey/${id}/limit`, { monthly_limit: 12.5 })
    expect({ status: limited.status, limit: limited.body.monthly_limit }).toEqual({ status: 200, limit: 12.5 })
    expect((await manage.post(`/apikey/${id}/limit`, { monthly_limit: 0 })).body.monthly_limit).toBe(0)
    const dated = await manage.post(`/apikey/${id}/expiry`, { expires_at: later })
    expect({ status: dated.status, at: dated.body.expires_at }).toEqual({ status: 200, at: later })
    expect((await manage.post(`/apikey/${id}/expiry`, { expires_at: null })).body.expires_at).toBeNull()
    const labelled = await manage.post(`/apikey/${id}/label`, { labels: { a: 'b' } })
    expect({ status: labelled.status, text: labelled.text }).toEqual({ status: 204, text: '' })
    expect((await manage.get(`/apikey/${id}`)).body).toMatchObject({ labels: { a: 'b' }, monthly_limit: 0 })
  })

  test('its limits per minute, its access list, its group', async () => {
    const { id } = await manage.newKey()
    const limits = { requests_per_minute: 10, tokens_per_minute: null, concurrent_calls: 2 }
    expect((await manage.post(`/apikey/${id}/limits`, limits)).body.limits).toEqual(limits)
    const named = await manage.post(`/apikey/${id}/limits`, { tokens_per_minute: 500 })
    expect(named.body.limits).toEqual({ ...limits, tokens_per_minute: 500 })
    const removed = await manage.post(`/apikey/${id}/limits`, { requests_per_minute: null, concurrent_calls: 0 })
    expect(removed.body.limits).toEqual({
      requests_per_minute: null,
      tokens_per_minute: 500,
      concurrent_calls: null,
    })
    const models = ['demo/echo', 'demo/*']
    expect((await manage.post(`/apikey/${id}/access`, { models })).body.models).toEqual(models)
    expect((await manage.post(`/apikey/${id}/access`, { models: null })).body.models).toBeNull()
    const { body: group } = await manage.post('/group', { name: 'for a change' })
    expect((await manage.post(`/apikey/${id}/group`, { group_id: group.group_id })).body.group).toBe(group.group_id)
    expect((await manage.post(`/apikey/${id}/group`, { group_id: null })).body.group).toBeNull()
  })

  test.each<[string, unknown, RegExp]>([
    ['limit', {}, /'monthly_limit' is missing.*0 means unlimited/],
    ['limit', { limit: 5 }, /no field 'limit'.*monthly_limit/],
    ['expiry', {}, /'expires_at' is missing/],
    ['expiry', { expires_at: 'tomorrow' }, /RFC 3339/],
    ['label', { labels: null }, /'labels' is missing/],
    ['limits', {}, /body is empty.*requests_per_minute, tokens_per_minute, concurrent_calls/],
    ['limits', { requests_per_minute: 1.5 }, /'requests_per_minute' must be a whole number/],
    ['limits', { tokens_per_minut: 1 }, /`tokens_per_minute`/],
    ['access', {}, /'models' is missing/],
    ['access', { models: ['demo/ecko'] }, /'models\[0\]'.*`demo\/echo`/],
    ['access', { models: ['dem/*'] }, /`demo\/\*`/],
    ['group', {}, /'group_id' is missing/],
    ['group', { group_id: 'nobody' }, /no group 'nobody'/],
    ['rotate', { now: true }, /no field 'now' here; the body must be empty/],
    ['rotate', [], /must be empty/],
  ])('%s with %j → 400 and nothing changes', async (what, body, message) => {
    const { id } = await manage.newKey({ monthly_limit: 3, labels: { a: 'b' } })
    await manage.post(`/apikey/${id}/limits`, { concurrent_calls: 7 })
    const before = (await manage.get(`/apikey/${id}`)).body
    const answer = await manage.post(`/apikey/${id}/${what}`, body)
    expect((answer.body.error as { message: string }).message).toMatch(message)
    expect(answer.status).toBe(400)
    expect((await manage.get(`/apikey/${id}`)).body).toEqual(before)
  })

  test('rotated: the new secret works at once, the old one no longer', async () => {
    const { id, secret } = await manage.newKey()
    expect((await call(secret)).status).toBe(200)
    const { status, body } = await manage.post(`/apikey/${id}/rotate`)
    expect(status).toBe(200)
    expect(body).toMatchObject({ id, state: 'active', api_key: expect.stringMatching(/^ir-/) })
    expect((await call(secret)).status).toBe(403)
    expect((await call(String(body.api_key))).status).toBe(200)
    expect((await manage.get(`/apikey/${id}`)).text).not.toContain(String(body.api_key))
  })

  test('deleted: 204, then it is unknown everywhere, and its secret is rejected', async () => {
    const { id, secret } = await manage.newKey()
    const { status, text } = await manage.delete(`/apikey/${id}`)
    expect({ status, text }).toEqual({ status: 204, text: '' })
    for (const second of [await manage.get(`/apikey/${id}`), await manage.delete(`/apikey/${id}`)]) {
      expect(second.status).toBe(404)
      expect(second.body).toMatchObject({ error: { code: 'not_found', origin: 'router' } })
    }
    expect((await manage.post(`/apikey/${id}/limit`, { monthly_limit: 1 })).status).toBe(404)
    expect((await manage.get('/apikey')).text).not.toContain(id)
    expect((await call(secret)).status).toBe(403)
  })

  test('expired: cannot be revived, nor get another secret; it can be deleted', async () => {
    const { id, secret } = await manage.newKey({ expires_at: new Date(Date.now() + 1_500).toISOString() })
    await expect.poll(async () => (await manage.get(`/apikey/${id}`)).body.state).toBe('expired')
    expect((await call(secret)).status).toBe(403)
    for (const [what, body] of [['expiry', { expires_at: later }], ['expiry', { expires_at: null }], ['rotate']]) {
      const answer = await manage.post(`/apikey/${id}/${what}`, body)
      expect(answer.status).toBe(400)
      expect((answer.body.error as { message: string }).message).toMatch(/expired/)
    }
    expect((await manage.delete(`/apikey/${id}`)).status).toBe(204)
  })
})

describe('self', () => {
  test('is the key of the request', async () => {
    const { id, secret } = await manage.newKey({ permissions: { manage: 'write' } })
    expect((await manage.get('/apikey/self', secret)).body.id).toBe(id)
    expect((await manage.post('/apikey/self/limit', { monthly_limit: 4 }, secret)).body).toMatchObject({
      id,
      monthly_limit: 4,
    })
    expect((await manage.delete('/apikey/self', secret)).status).toBe(204)
    expect((await manage.get('/apikey/self', secret)).status).toBe(403)
  })

  test('the last key that may manage cannot be deleted, not by itself either', async () => {
    const all = (await manage.get('/apikey')).body.keys as { id: string; permissions: { manage: string } }[]
    const self = (await manage.get('/apikey/self')).body.id
    for (const { id } of all.filter(({ id, permissions }) => id !== self && permissions.manage === 'write')) {
      expect((await manage.delete(`/apikey/${id}`)).status).toBe(204)
    }
    await manage.newKey({ permissions: { manage: 'read' } })
    // Another one that may manage has expired.
    const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
    onTestFinished(() => store.close())
    await store.keys.create({
      ...storedSecret(newSecret()),
      organization: (await store.organizations.list())[0]?.id ?? '',
      name: 'expired',
      permissions: { manage: 'write' },
      createdBy: { id: 'test', email: '' },
      expiresAt: Date.now() - 1,
    })
    const refused = await manage.delete('/apikey/self')
    expect(refused.status).toBe(400)
    expect((refused.body.error as { message: string }).message).toMatch(
      /last active key with the permission to manage .*create another one first/,
    )
    expect((await call(testKey)).status).toBe(200)
  })
})
