import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newSecret, storedSecret } from '../../src/access/secrets.ts'
import * as key from '../../src/cli/key.ts'
import type { Permissions } from '../../src/store/keys.ts'
import { openStore } from '../../src/store/open.ts'
import { printed } from '../cli/administration.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { administration } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>
let url: string
/** Another organization, and a key that may do all in it. */
let other: { id: string; admin: string; adminKey: string }

const all: Permissions = { manage: 'write', completions: 'write', operate: 'write' }

beforeAll(async () => {
  router = await testRouter()
  manage = administration(router)
  url = `sqlite:${router.folder}/data/router.sqlite`
  const store = await openStore(url)
  const { id } = await store.organizations.create('other')
  await store.organizations.credit(id, 5_000_000_000n)
  const admin = newSecret()
  const createdBy = { id: 'test', email: '' }
  const made = await store.keys.create({
    ...storedSecret(admin),
    organization: id,
    name: 'admin',
    permissions: all,
    createdBy,
  })
  await store.close()
  other = { id, admin, adminKey: made.id }
  await call(testKey, 'one')
  await call(admin, 'two')
})
afterAll(() => router.end())

const call = async (secret: string, content: string) => {
  const body = { model: 'demo/echo', messages: [{ role: 'user', content }], user: content }
  const response = await router.call('/v1/chat/completions', body, { authorization: `Bearer ${secret}` })
  expect(response.status).toBe(200)
  await response.text()
}

describe('a key with instance: read', () => {
  test('is the one of the first start', async () => {
    expect((await manage.get('/apikey/self')).body.permissions).toEqual({ ...all, instance: 'read' })
  })

  test('sees the sums over all organizations, and each of them', async () => {
    expect((await manage.get('/instance')).body).toEqual({
      organizations: 2,
      keys: expect.any(Number),
      credit: 5,
      spend: expect.any(Number),
      monthly_spend: expect.any(Number),
    })
    const first = await manage.get('/instance/org?limit=1')
    expect(first.body).toMatchObject({ organizations: [{ name: 'default', keys: expect.any(Number) }] })
    const second = await manage.get(`/instance/org?limit=1&cursor=${first.body.next_cursor}`)
    expect(second.body).toEqual({
      organizations: [
        {
          id: other.id,
          name: 'other',
          keys: 1,
          credit: 5,
          spend: expect.any(Number),
          monthly_spend: expect.any(Number),
          balance: expect.any(Number),
          created_at: expect.any(String),
        },
      ],
    })
  })

  test('sees the keys of all organizations, without anything of their secrets', async () => {
    const { body, text } = await manage.get('/instance/apikey')
    const listed = body.keys as { id: string; organization: string }[]
    expect(listed).toContainEqual(
      expect.objectContaining({ id: other.adminKey, organization: other.id, state: 'active' }),
    )
    expect(new Set(listed.map(({ organization }) => organization)).size).toBe(2)
    expect(text).not.toMatch(/ir-|hash|prefix/)
    const ofOne = (await manage.get(`/instance/apikey?organization=${other.id}`)).body.keys
    expect(ofOne).toMatchObject([{ id: other.adminKey }])
  })

  test('sees the usage of all organizations in one report, by organization and by key', async () => {
    const { body } = await manage.get(
      '/instance/usage?resolution=month&group_by=organization&group_by=organization_name',
    )
    const [month] = Object.values(body.usage as Record<string, { total_requests: number; grouped_data: unknown[] }>)
    expect(month?.total_requests).toBe(2)
    expect(month?.grouped_data).toContainEqual(
      expect.objectContaining({
        group_by_values: { organization: other.id, organization_name: 'other' },
        total_requests: 1,
      }),
    )
    const byKey = await manage.get('/instance/usage?resolution=month&group_by=key&group_by=user')
    expect(byKey.text).toContain(other.adminKey)
    const sums = await manage.get('/instance/usage?resolution=day&group_by=key&start=2020-01-01&end=2020-02-01')
    expect(sums.body).toEqual({ usage: {} })
    const ofOne = await manage.get(`/instance/usage?resolution=month&organization=${other.id}`)
    expect(Object.values(ofOne.body.usage as object)).toMatchObject([{ total_requests: 1 }])
  })

  test('sees the calls of all organizations, the last one first, in pages and by filters', async () => {
    const { body } = await manage.get('/instance/calls?limit=1')
    expect(body.calls).toMatchObject([{ organization: other.id, user: 'two' }])
    const rest = (await manage.get(`/instance/calls?cursor=${body.next_cursor}`)).body
    expect(rest.calls).toMatchObject([{ user: 'one' }])
    expect(rest).not.toHaveProperty('next_cursor')
    expect((await manage.get('/instance/calls?user=one')).body.calls).toMatchObject([{ user: 'one' }])
    expect((await manage.get('/instance/calls?end=2020-01-01')).body.calls).toEqual([])
    expect((await manage.get('/instance/calls?start=2020-01-01')).body.calls).toHaveLength(2)
    expect((await manage.get(`/instance/calls?organization=${other.id}`)).body.calls).toMatchObject([{ user: 'two' }])
    const headers = { authorization: `Bearer ${testKey}`, accept: 'text/csv' }
    const table = async (query = '') =>
      (await (await fetch(`${router.manageUrl}/v1/manage/instance/calls${query}`, { headers })).text())
        .trim()
        .split('\r\n')
    const [columns = '', ...rows] = await table()
    expect([columns.split(',').slice(0, 2), rows.length]).toEqual([['organization', 'id'], 2])
    expect((await table(`?organization=${other.id}`)).slice(1)).toEqual([expect.stringMatching(`^${other.id},`)])
  })

  test.each([
    ['/instance/calls?organization=nobody', 'organization'],
    ['/instance/usage?organization=a&organization=b', 'organization'],
    ['/instance/apikey?cursor=nobody', 'cursor'],
    ['/instance/org?limit=0', 'limit'],
    ['/instance?x=1', 'x'],
  ])('%s → 400', async (path, param) => {
    expect(await manage.get(path)).toMatchObject({ status: 400, body: { error: { param } } })
  })

  test('changes nothing by it: every other method is refused', async () => {
    for (const path of ['/instance', '/instance/org', '/instance/apikey', '/instance/calls'])
      for (const method of ['POST', 'PUT', 'DELETE']) expect((await manage.ask(method, path, {})).status).toBe(405)
    expect((await manage.delete(`/apikey/${other.adminKey}`)).status).toBe(404)
  })

  test('may read the metrics and the problems of the router', async () => {
    const secret = (await granted('reader')).api_key
    const headers = { authorization: `Bearer ${secret}` }
    expect((await fetch(`${router.url}/metrics`, { headers })).status).toBe(200)
    expect(await (await fetch(`${router.url}/ready`, { headers })).json()).toHaveProperty('problems')
  })
})

/** Makes a key with instance: read on the command line. */
async function granted(name: string, ...options: string[]): Promise<{ id: string; api_key: string }> {
  const args = ['create', name, '--org', 'default', '--instance', 'read', '--json', ...options]
  const { code, stdout, stderr } = await printed((out) => key.run(args, out, () => url))
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

describe('instance: read is out of reach for keys with all permissions in an organization', () => {
  const refused = async (answer: Promise<{ status: number; text: string }>, says: string) =>
    expect(await answer).toMatchObject({ status: 403, text: expect.stringContaining(says) })

  test('no key grants it to a new one, not even one that has it', async () => {
    const body = { name: 'x', permissions: { instance: 'read' } }
    for (const secret of [other.admin, testKey])
      await refused(manage.post('/apikey', body, secret), 'The command line on the machine of the router does')
    expect((await manage.post('/apikey', { name: 'x', permissions: { instance: 'write' } })).status).toBe(400)
    const { id } = await manage.newKey({ permissions: { ...all, instance: 'none' } })
    expect((await manage.get(`/apikey/${id}`)).body.permissions).toEqual(all)
  })

  test('nor may it change, rotate or delete one that has it, or the limit or the group of one', async () => {
    const { id } = await granted('in a group')
    const { body: group } = await manage.post('/group', { name: 'of instance', monthly_limit: 3 })
    expect((await manage.post(`/apikey/${id}/group`, { group_id: group.group_id })).status).toBe(200)
    const { secret: admin } = await manage.newKey({ permissions: all })
    const changes = [
      manage.post(`/apikey/${id}/rotate`, undefined, admin),
      manage.post(`/apikey/${id}/limit`, { monthly_limit: 1 }, admin),
      manage.post(`/apikey/${id}/access`, { models: [] }, admin),
      manage.post(`/apikey/${id}/plugins`, { plugins: { x: null } }, admin),
      manage.post(`/apikey/${id}/expiry`, { expires_at: null }, admin),
      manage.delete(`/apikey/${id}`, admin),
      manage.post(`/group/${group.group_id}/limit`, { monthly_limit: 1 }, admin),
      manage.delete(`/group/${group.group_id}?keys=revoke`, admin),
    ]
    for (const change of changes) await refused(change, 'instance: read')
  })

  test('no path of it is open to them, in either organization', async () => {
    const { secret: admin } = await manage.newKey({ permissions: all })
    for (const secret of [admin, other.admin])
      for (const path of ['', '/org', '/apikey', '/usage', '/calls'])
        await refused(manage.get(`/instance${path}`, secret), 'needs instance: read')
    const calls = await manage.get('/calls?organization=default', other.admin)
    expect(calls.status).toBe(400)
    const usage = await manage.get('/org/usage?resolution=month&group_by=organization', other.admin)
    expect(JSON.stringify(usage.body)).toContain(other.id)
    expect(Object.values(usage.body.usage as object)).toMatchObject([{ total_requests: 1 }])
  })

  test('the command line takes it back, and the log of changes has both', async () => {
    const { id, api_key } = await granted('for a while')
    expect((await manage.get('/instance', api_key)).status).toBe(200)
    const { code } = await printed((out) => key.run(['edit', id, '--instance', 'none'], out, () => url))
    expect(code).toBe(0)
    await expect.poll(async () => (await manage.get('/instance', api_key)).status, { timeout: 10_000 }).toBe(403)
    const { entries } = (await manage.get('/audit?limit=2')).body as { entries: object[] }
    expect(entries).toMatchObject([
      { actor: 'cli', action: 'apikey.instance', before: { permissions: { instance: 'read' } } },
      { actor: 'cli', action: 'apikey.create', after: { permissions: { instance: 'read' } } },
    ])
  })
})
