import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { simulatorOnly, type TestRouter, testRouter } from '../helpers/router.ts'
import { administration } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>

beforeAll(async () => {
  router = await testRouter({
    files: { ...simulatorOnly, 'plugins/watch.ts': 'export default { setup: () => ({}) }' },
    settings: { plugins: [{ name: 'watch' }] },
  })
  manage = administration(router)
})
afterAll(() => router.end())

const keys = async () => ((await manage.get('/apikey')).body.keys as unknown[]).length
const log = async () => (await manage.get('/audit')).body.entries as { action: string; after: object }[]
const messages = [{ role: 'user', content: 'Hello' }]
const status = async (secret: string, model: string) =>
  (await router.call('/v1/chat/completions', { model, messages }, { authorization: `Bearer ${secret}` })).status

describe('a new key', () => {
  test('has its access list, limits and plugins from the beginning, with one entry in the log of changes', async () => {
    await manage.post('/alias', { name: 'best', target: 'demo/echo' })
    const { body: group } = await manage.post('/group', { name: 'all at once' })
    const before = await log()
    const { id, secret } = await manage.newKey({
      name: 'restricted',
      monthly_limit: 5,
      labels: { team: 'a' },
      group_id: group.group_id,
      expires_at: '2099-01-31T00:00:00Z',
      models: ['best', 'demo/vectors'],
      limits: { requests_per_minute: 2, concurrent_calls: 0 },
      plugins: { watch: true },
    })
    const record = {
      name: 'restricted',
      monthly_limit: 5,
      labels: { team: 'a' },
      group: group.group_id,
      expires_at: '2099-01-31T00:00:00.000Z',
      models: ['best', 'demo/vectors'],
      limits: { requests_per_minute: 2, tokens_per_minute: null, concurrent_calls: null },
      plugins: { watch: true },
    }
    expect((await manage.get(`/apikey/${id}`)).body).toMatchObject(record)
    const after = await log()
    expect(after.length - before.length).toBe(1)
    expect(after[0]).toMatchObject({ action: 'apikey.create', after: record })
    expect(await status(secret, 'demo/echo')).toBe(403)
    expect([await status(secret, 'best'), await status(secret, 'best'), await status(secret, 'best')]).toEqual([
      200, 200, 429,
    ])
  })

  test.each<[string, object, string]>([
    ['an unknown model', { models: ['demo/ecoh'] }, 'models[0]'],
    ['a limit that is a text', { limits: { requests_per_minute: 'many' } }, 'limits.requests_per_minute'],
    ['a limit that is mistyped', { limits: { request_per_minute: 1 } }, 'limits.request_per_minute'],
    ['an unknown plugin', { plugins: { nobody: true } }, 'plugins.nobody'],
    ['a plugin that is neither on nor off', { plugins: { watch: 'on' } }, 'plugins.watch'],
    ['a group that there is not', { group_id: 'nobody' }, 'group_id'],
    ['labels that are numbers', { labels: { a: 1 } }, 'labels.a'],
    ['a time that has passed', { expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
  ])('with %s is not made at all', async (_what, wrong, param) => {
    const [before, entries] = [await keys(), (await log()).length]
    const good = { name: 'x', monthly_limit: 1, models: ['demo/echo'], limits: { requests_per_minute: 1 } }
    const refused = await manage.post('/apikey', { ...good, ...wrong })
    expect([refused.status, refused.body]).toMatchObject([400, { error: { code: 'invalid_request', param } }])
    expect([await keys(), (await log()).length]).toEqual([before, entries])
  })

  test('with plugins needs operate: write, as a change of them does', async () => {
    const { secret } = await manage.newKey({ permissions: { manage: 'write', completions: 'write' } })
    const refused = await manage.post('/apikey', { name: 'x', plugins: { watch: false } }, secret)
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('needs operate: write')])
    expect((await manage.post('/apikey', { name: 'x', models: ['demo/echo'] }, secret)).status).toBe(201)
  })

  test('may have an empty access list, or none', async () => {
    for (const models of [[], null]) {
      const { id } = await manage.newKey({ models })
      expect((await manage.get(`/apikey/${id}`)).body.models).toEqual(models)
    }
  })
})
