import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defaultCreationLimits } from '../../src/core/creation-limits.ts'
import { RouterError } from '../../src/core/errors.ts'
import { ChangeCounts } from '../../src/management/creation-limits.ts'
import { simulatorOnly, type TestRouter, testRouter } from '../helpers/router.ts'
import { administration, type ManageReply } from './administration.ts'

const limits = {
  keys: 3,
  groups: 2,
  aliases: 2,
  policies: 2,
  targets: 2,
  labels: 2,
  label_length: 5,
  models: 2,
  changes_per_hour: 1_000,
}

let router: TestRouter
let manage: ReturnType<typeof administration>

beforeAll(async () => {
  router = await testRouter({ files: simulatorOnly, settings: { manage: { limits } } })
  manage = administration(router)
})
afterAll(() => router.end())

const messageOf = ({ body }: ManageReply) => (body.error as { message: string } | undefined)?.message
const models = ['demo/echo', 'demo/judge', 'demo/vectors']

describe('what an organization can create', () => {
  test.each([
    // The first key exists.
    ['keys', 2, (name: string) => manage.post('/apikey', { name })],
    ['groups', 2, (name: string) => manage.post('/group', { name })],
    ['aliases', 2, (name: string) => manage.post('/alias', { name, target: 'demo/echo' })],
    ['policies', 2, (name: string) => manage.put(`/policy/${name}`, { targets: ['demo/echo'] })],
  ] as const)(
    '%s: as many as its limit; the next is a 400 that names the limit and its setting',
    async (kind, count, create) => {
      for (let at = 0; at < count; at++) expect((await create(`n${at}`)).status).toBe(201)
      const refused = await create('more')
      expect(refused.status).toBe(400)
      expect(messageOf(refused)).toContain(`manage.limits.${kind} of this server is ${limits[kind]}`)
    },
  )

  test('one that exists can be changed at the limit, and one that is deleted makes room', async () => {
    expect((await manage.post('/alias', { name: 'n0', target: 'demo/judge' })).status).toBe(200)
    expect((await manage.put('/policy/n0', { targets: ['demo/judge'] })).status).toBe(200)
    expect((await manage.delete('/alias/n0')).status).toBe(204)
    expect((await manage.post('/alias', { name: 'again', target: 'demo/echo' })).status).toBe(201)
  })

  test.each([
    ['targets', () => manage.put('/policy/n0', { targets: models })],
    ['labels', () => manage.post('/apikey/self/label', { labels: { a: 'x', b: 'x', c: 'x' } })],
    ['label_length', () => manage.post('/apikey/self/label', { labels: { a: 'longer' } })],
    ['models', () => manage.post('/apikey/self/access', { models })],
    ['models', () => manage.put('/org/models', { approved_models: models })],
  ] as const)('too many %s in one record are a 400 that names the setting', async (kind, change) => {
    const refused = await change()
    expect([refused.status, messageOf(refused)]).toEqual([400, expect.stringContaining(`manage.limits.${kind}`)])
  })
})

test('changes beyond those of an hour are 429 until the next one, for that organization alone', () => {
  const counts = new ChangeCounts()
  const few = { ...defaultCreationLimits, changesPerHour: 2 }
  const at = Date.parse('2026-11-30T10:59:00Z')
  counts.count('a', few, at)
  counts.count('a', few, at)
  const refused = () => counts.count('a', few, at)
  expect(refused).toThrow(RouterError)
  expect(refused).toThrow(expect.objectContaining({ code: 'rate_limited', retryAfterMs: 60_000 }))
  expect(refused).toThrow(/manage\.limits\.changes_per_hour/)
  counts.count('b', few, at)
  counts.count('a', few, at + 60_000)
})

test('a page of large records ends early, and the pages together have them all', async () => {
  const own = await testRouter({ files: simulatorOnly })
  try {
    const { post, get } = administration(own)
    const labels = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`l${at}`, 'x'.repeat(1_000)]))
    for (let at = 0; at < 100; at++) expect((await post('/apikey', { name: `k${at}`, labels })).status).toBe(201)
    const names: string[] = []
    const sizes: number[] = []
    for (let cursor: unknown; names.length === 0 || cursor !== undefined; ) {
      const page = await get(`/apikey${cursor === undefined ? '' : `?cursor=${cursor}`}`)
      names.push(...(page.body.keys as { name: string }[]).map(({ name }) => name))
      sizes.push(page.text.length)
      cursor = page.body.next_cursor
    }
    expect(new Set(names).size).toBe(101)
    expect(names).toHaveLength(101)
    expect(Math.max(...sizes)).toBeLessThan(6_000_000)
  } finally {
    await own.end()
  }
})
