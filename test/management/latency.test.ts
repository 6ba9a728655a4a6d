import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../src/store/sqlite/connection.ts'
import { ledgerWriter } from '../../src/store/sqlite/ledger/ledger-writer.ts'
import { simulatorOnly, type TestRouter, testRouter } from '../helpers/router.ts'
import { plainRecord } from '../store/plain-record.ts'
import { administration } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>

beforeAll(async () => {
  router = await testRouter({ files: simulatorOnly })
  manage = administration(router)
  const self = String((await manage.get('/apikey/self')).body.id)
  const db = connect(`${router.folder}/data/router.sqlite`)
  const organization = db.prepare<[], string>('SELECT id FROM organizations').pluck().get() as string
  const record = (changes: object) => plainRecord({ organization, key: self, at: Date.now() - 60_000, ...changes })
  const write = ledgerWriter(db)
  // 1 to 100 ms to the first event, then ten tokens in a second.
  write(
    Array.from({ length: 100 }, (_, index) => {
      const firstEventMs = 1 + ((index * 37) % 100)
      const usage = { input: 1, output: 5, reasoning: 6 }
      const model = index % 5 === 0 ? 'm0' : 'm1'
      return record({ stream: true, firstEventMs, durationMs: firstEventMs + 1_000, usage, model })
    }),
  )
  const slow = { durationMs: 9_000 }
  write([
    record({ ...slow, outcome: 'failed', error: 'provider_timeout' }),
    record({ ...slow, attemptOf: 'another' }),
    record({ ...slow, organization: 'elsewhere' }),
    record({ ...slow, at: Date.now() - 2 * 86_400_000, provider: 'other', usage: { input: 1 } }),
  ])
  // More than are looked at.
  write(Array.from({ length: 20_001 }, (_, index) => record({ at: Date.UTC(2020, 0, 1) + index, durationMs: 7 })))
  db.close()
})
afterAll(() => router.end())

describe('how long calls took', () => {
  test('is told of complete calls of the last day, by quantiles', async () => {
    expect((await manage.get('/latency')).body).toEqual({
      calls: 100,
      complete: true,
      first_event_ms: { p50: 50, p95: 95 },
      duration_ms: { p50: 1_050, p95: 1_095 },
      tokens_per_second: { p50: 10, p95: 10 },
    })
  })

  test('is told by groups, and of a range, of what passes the filters', async () => {
    const { groups } = (await manage.get('/latency?group_by=model')).body as { groups: object[] }
    // The first events of every fifth call came after 1, 6, 11 … 96 ms; the group with the most calls is the first.
    const [many, few] = [
      { calls: 80, first_event_ms: { p50: 50, p95: 95 }, duration_ms: { p50: 1_050, p95: 1_095 } },
      { calls: 20, first_event_ms: { p50: 46, p95: 91 }, duration_ms: { p50: 1_046, p95: 1_091 } },
    ]
    expect(groups).toMatchObject([
      { value: 'maker/m1', ...many },
      { value: 'maker/m0', ...few },
    ])
    expect((await manage.get('/latency?model=maker/m0')).body).toMatchObject(few)
    const start = new Date(Date.now() - 3 * 86_400_000).toISOString()
    expect((await manage.get(`/latency?provider=other&start=${start}`)).body).toEqual({
      calls: 1,
      complete: true,
      first_event_ms: { p50: null, p95: null },
      duration_ms: { p50: 9_000, p95: 9_000 },
      tokens_per_second: { p50: null, p95: null },
    })
    expect((await manage.get('/latency?key=nobody')).body).toMatchObject({ calls: 0, complete: true })
  })

  test('is told of the newest where they are many', async () => {
    const { calls, complete, duration_ms } = (await manage.get('/latency?start=2020-01-01&end=2020-01-01')).body
    expect(complete).toBe(false)
    expect(calls).toBeLessThanOrEqual(20_000)
    expect(duration_ms).toEqual({ p50: 7, p95: 7 })
  })

  test.each([
    ['group_by=color', 'group_by'],
    ['group_by=model&group_by=key', 'group_by'],
    ['outcome=failed', 'outcome'],
    ['code=provider_timeout', 'code'],
    ['limit=1', 'limit'],
    ['start=x', 'start'],
  ])('is a 400 for %s', async (query, param) => {
    expect(await manage.get(`/latency?${query}`)).toMatchObject({ status: 400, body: { error: { param } } })
  })
})
