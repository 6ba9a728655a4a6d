import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { administration } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>

beforeAll(async () => {
  router = await testRouter()
  manage = administration(router)
})
afterAll(() => router.end())

async function call(secret: string, model = 'demo/echo') {
  const body = { model, max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] }
  const response = await router.call('/v1/chat/completions', body, { authorization: `Bearer ${secret}` })
  const { error } = (await response.json()) as { error?: { message: string } }
  return { status: response.status, received: error?.message }
}

describe('changes apply to the next call', () => {
  test('of a key: its access list, its limits, its expiry', async () => {
    const { id, secret } = await manage.newKey()
    expect((await call(secret)).status).toBe(200)
    await manage.post(`/apikey/${id}/access`, { models: [] })
    expect(await call(secret)).toMatchObject({ status: 403, received: expect.stringContaining('access list') })
    await manage.post(`/apikey/${id}/access`, { models: ['demo/*'] })
    expect((await call(secret)).status).toBe(200)
    await manage.post(`/apikey/${id}/limits`, { requests_per_minute: 1 })
    expect((await call(secret)).status).toBe(200)
    expect((await call(secret)).status).toBe(429)
    await manage.post(`/apikey/${id}/limits`, { requests_per_minute: null })
    expect((await call(secret)).status).toBe(200)
    await manage.post(`/apikey/${id}/expiry`, { expires_at: new Date(Date.now() + 1_500).toISOString() })
    await expect.poll(async () => (await call(secret)).status).toBe(403)
  })

  test('of the organization: its models and its limits', async () => {
    const { secret } = await manage.newKey()
    expect((await call(secret)).status).toBe(200)
    await manage.put('/org/models', { approved_models: [] })
    expect(await call(secret)).toMatchObject({ status: 404, received: expect.stringContaining('not approved') })
    await manage.put('/org/models', { approved_models: null })
    await manage.put('/org/limits', { requests_per_minute: 1 })
    expect((await call(secret)).status).toBe(200)
    expect((await call(secret)).status).toBe(429)
    await manage.put('/org/limits', { requests_per_minute: null })
    expect((await call(secret)).status).toBe(200)
  })

  test('of names: an alias, a policy, and a key that may use only them', async () => {
    const { id, secret } = await manage.newKey()
    expect((await call(secret, 'soon')).status).toBe(404)
    await manage.post('/policy', { id: 'soon-policy', targets: ['demo/echo'] })
    await manage.post('/alias', { name: 'soon', target: 'soon-policy' })
    expect((await call(secret, 'soon')).status).toBe(200)
    expect((await call(secret, 'policy/soon-policy')).status).toBe(200)
    await manage.post(`/apikey/${id}/access`, { models: ['policy/soon'] })
    expect((await call(secret, 'soon')).status).toBe(200)
    expect((await call(secret, 'demo/echo')).status).toBe(403)
    await manage.delete('/alias/soon')
    expect((await call(secret, 'soon')).status).toBe(404)
  })

  test('of the balance: credit that is taken back ends calls', async () => {
    const { secret } = await manage.newKey()
    expect((await manage.post('/org/credit', { amount: 5 })).body.balance).toBeLessThanOrEqual(5)
    expect((await call(secret)).status).toBe(200)
    await manage.post('/org/credit', { amount: -6 })
    expect((await call(secret)).status).toBe(402)
    await manage.post('/org/credit', { amount: 6 })
    expect((await call(secret)).status).toBe(200)
  })
})

test('of many changes at once each is made and noted, one after another', async () => {
  const { id } = await manage.newKey()
  const limits = Array.from({ length: 20 }, (_, index) => index + 1)
  const answers = await Promise.all(
    limits.map((monthly_limit) => manage.post(`/apikey/${id}/limit`, { monthly_limit })),
  )
  expect(answers.map(({ status, body }) => [status, body.monthly_limit])).toEqual(limits.map((limit) => [200, limit]))
  type Entry = { subject: string; before: { monthly_limit: number }; after: { monthly_limit: number } }
  const entries = (await manage.get('/audit?limit=20')).body.entries as Entry[]
  const inOrder = entries.reverse()
  inOrder.forEach(({ subject, before }, index) => {
    expect(subject).toBe(id)
    expect(before.monthly_limit).toBe(inOrder[index - 1]?.after.monthly_limit ?? 0)
  })
  expect((await manage.get(`/apikey/${id}`)).body.monthly_limit).toBe(inOrder.at(-1)?.after.monthly_limit)
})

test('of two that delete the only other key that may manage and each other, one stays', async () => {
  const self = String((await manage.get('/apikey/self')).body.id)
  const other = await manage.newKey({ permissions: { manage: 'write', operate: 'write' } })
  const [one, two] = await Promise.all([
    manage.delete(`/apikey/${other.id}`),
    manage.delete(`/apikey/${self}`, other.secret),
  ])
  expect([one.status, two.status].filter((status) => status === 204)).toHaveLength(1)
  const left = one.status === 204 ? undefined : other.secret
  expect((await manage.get('/org', left)).status).toBe(200)
})
