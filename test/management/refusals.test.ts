import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RefusedCall } from '../../src/core/refused-call.ts'
import { limitPerSecond, maxRefused, RefusedCalls } from '../../src/observe/refused-calls.ts'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { simulatorOnly, type TestRouter, testRouter } from '../helpers/router.ts'
import { describeEach } from '../helpers/slow.ts'
import { eventually } from '../helpers/time.ts'
import { administration } from './administration.ts'

const matchesSchema = validator(schemaOf('RefusalList'), { closed: true })
const messages = [{ role: 'user', content: 'my secret words' }]
const chat = { model: 'demo/echo', messages, max_tokens: 9 }

type Refusal = { id: string; request_id: string; key: { id: string; name?: string }; [name: string]: unknown }

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('calls that were refused (%i threads)', (threads) => {
  let router: TestRouter
  let manage: ReturnType<typeof administration>

  beforeAll(async () => {
    router = await testRouter({ threads, files: simulatorOnly })
    manage = administration(router)
  })
  afterAll(async () => {
    await router.end()
  })

  const refusals = async (query = ''): Promise<Refusal[]> => {
    const { body } = await manage.get(`/refusals${query}`)
    expect(matchesSchema(body), JSON.stringify(matchesSchema.errors)).toBe(true)
    return body.refusals as Refusal[]
  }
  const call = (secret: string, body: object, path = '/v1/chat/completions') =>
    router.call(path, body, { authorization: `Bearer ${secret}`, connection: 'close' })

  test('are listed with their reason: a limit that was lowered', async () => {
    const { id, secret } = await manage.newKey({ name: 'the app' })
    expect((await call(secret, chat)).status).toBe(200)
    await manage.post(`/apikey/${id}/limit`, { monthly_limit: 0.000000001 })
    const refused = await call(secret, chat)
    expect(refused.status).toBe(402)
    const { error } = (await refused.json()) as { error: { message: string } }
    await eventually(async () =>
      expect(await refusals(`?key=${id}`)).toMatchObject([
        {
          id: refused.headers.get('x-request-id'),
          key: { id, name: 'the app' },
          asked: 'demo/echo',
          api: 'chat',
          operation: 'chat',
          streamed: false,
          outcome: 'refused',
          code: 'budget_exhausted',
          message: error.message,
          status: 402,
        },
      ]),
    )
    const { body } = await manage.get(`/calls?key=${id}`)
    expect(body.calls).toHaveLength(1)
  })

  test('of every API and operation, the latest first', async () => {
    const { id, secret } = await manage.newKey()
    expect((await manage.post(`/apikey/${id}/access`, { models: ['demo/thinker'] })).status).toBe(200)
    const asked: [path: string, body: object][] = [
      ['/v1/chat/completions', chat],
      ['/v1/messages', chat],
      ['/v1/responses', { model: 'demo/echo', input: 'my secret words' }],
      ['/v1/embeddings', { model: 'demo/echo', input: 'my secret words' }],
    ]
    for (const [path, body] of asked) expect((await call(secret, body, path)).status).toBeGreaterThan(399)
    await eventually(async () => expect(await refusals(`?key=${id}`)).toHaveLength(4))
    const found = await refusals(`?key=${id}`)
    expect(new Set(found.map(({ api }) => api))).toEqual(new Set(['chat', 'messages', 'responses', 'embeddings']))
    const times = found.map(({ at }) => String(at))
    expect(times).toEqual(times.toSorted().reverse())
    // Their messages could repeat what was asked.
    expect(JSON.stringify(found)).not.toContain('secret words')
    expect(await refusals(`?key=${id}&limit=2`)).toEqual(found.slice(0, 2))
    expect(await refusals(`?key=${id}&code=${found[0]?.code}`)).not.toEqual([])
    expect(await refusals(`?key=${id}&code=rate_limited`)).toEqual([])
    expect(await refusals('?group=none')).toEqual([])
  })

  test('are not those that a provider was asked for', async () => {
    const { id, secret } = await manage.newKey()
    const failing = { ...chat, model: 'demo/trouble', messages: [{ role: 'user', content: 'fail 503' }] }
    expect((await call(secret, failing)).status).toBe(502)
    expect((await manage.get(`/calls?key=${id}`)).body.calls).toMatchObject([{ outcome: 'failed' }])
    const last = await call(secret, { ...chat, model: 'demo/none' })
    expect(last.ok).toBe(false)
    await eventually(async () =>
      expect((await refusals(`?key=${id}`)).map((one) => one.id)).toEqual([last.headers.get('x-request-id')]),
    )
  })

  test.each(['?limit=0', '?key=', '?code=strange', '?since=1'])('is a 400 for %s', async (query) => {
    expect(await manage.get(`/refusals${query}`)).toMatchObject({ status: 400 })
  })
})

const refused = (facts: Partial<RefusedCall> = {}): RefusedCall => ({
  ...{ id: 'x', at: 1, organization: 'org-1', key: 'k', api: 'chat', operation: 'chat', requested: 'a/b' },
  ...{ stream: false, status: 402, error: 'budget_exhausted' },
  ...facts,
})

test('only the latest are remembered, and each organization sees its own', () => {
  const calls = new RefusedCalls()
  for (let at = 0; at < 5 * maxRefused; at++) calls.add(refused({ at }))
  calls.add(refused({ organization: 'org-2', id: 'theirs' }))
  const found = calls.of('org-1')
  expect(found).toHaveLength(maxRefused)
  expect([found[0]?.at, found.at(-1)?.at]).toEqual([5 * maxRefused - 1, 4 * maxRefused])
  expect(calls.of('org-2').map(({ id }) => id)).toEqual(['theirs'])
  expect(calls.of('org-3')).toEqual([])
  for (let index = 0; index < 1_000; index++) calls.add(refused({ organization: `other ${index}` }))
  expect(calls.of('org-1')).toEqual([])
  expect(calls.of('other 999')).toHaveLength(1)
})

test('they are listed by their times, in whatever order the threads have told of them', () => {
  const calls = new RefusedCalls()
  for (const at of [2, 1, 3]) calls.add(refused({ at }))
  expect(calls.of('org-1').map(({ at }) => at)).toEqual([3, 2, 1])
})

test('of a flood only so many a second are passed on, and those of other organizations as well', () => {
  let now = 5_000
  const passed: (string | number)[] = []
  const pass = limitPerSecond(
    3,
    ({ organization, at }: { organization: string; at: number }) => void passed.push(organization, at),
    () => now,
  )
  for (let at = 0; at < 10; at++) pass({ organization: 'flood', at })
  pass({ organization: 'other', at: 10 })
  expect(passed.splice(0)).toEqual(['flood', 0, 'flood', 1, 'flood', 2, 'other', 10])
  for (const at of [20, 30, 40]) {
    now += 500
    pass({ organization: 'flood', at })
    pass({ organization: 'flood', at: at + 1 })
    now += 500
    pass({ organization: 'flood', at: at + 2 })
  }
  expect(passed.filter((value) => typeof value === 'number')).toEqual([22, 30, 31, 32, 40, 41, 42])
})
