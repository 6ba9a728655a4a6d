import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { plainRecord } from '../store/plain-record.ts'
import { administration, type ManageReply } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>
let self: string

/** Calls of the first key and of another one, in November 2026. */
beforeAll(async () => {
  router = await testRouter()
  manage = administration(router)
  self = String((await manage.get('/apikey/self')).body.id)
  const { id: other } = await manage.newKey({ labels: { team: 'a' } })
  const store = await openStore(`sqlite:${router.folder}/data/router.sqlite`)
  const organization = (await store.keys.find(self))?.organization as string
  const at = (day: number, hour = 12) => Date.UTC(2026, 10, day, hour)
  const writer = store.ledger.openWriter()
  await writer.write([
    plainRecord({ organization, key: self, at: at(1, 0), user: 'ann' }),
    plainRecord({ organization, key: self, at: at(2), model: 'm2', metadata: { task: 'x' } }),
    plainRecord({ organization, key: other, at: at(2), operation: 'embed' as never, usage: { input: 7 } }),
    plainRecord({ organization: 'elsewhere', key: 'a stranger', at: at(2) }),
  ])
  await writer.close()
  await store.close()
})
afterAll(() => router.end())

const november = 'start=2026-11-01&end=2026-11-30'
const none = {
  total_requests: 0,
  completions_requests: 0,
  embedding_requests: 0,
  image_requests: 0,
  speech_requests: 0,
  transcription_requests: 0,
  decision_requests: 0,
  rerank_requests: 0,
  moderation_requests: 0,
  failed_requests: 0,
  partial_requests: 0,
  estimated_requests: 0,
  unpriced_requests: 0,
  spend: 0,
  input_tokens: 0,
  cached_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  total_tokens: 0,
}
const chat = {
  total_requests: 1,
  completions_requests: 1,
  spend: 1e-6,
  input_tokens: 10,
  output_tokens: 5,
  total_tokens: 15,
}

describe('usage', () => {
  test('is that of the organization, by day', async () => {
    expect(await manage.get(`/org/usage?${november}`)).toMatchObject({ status: 200 })
    expect((await manage.get(`/org/usage?${november}`)).body).toEqual({
      usage: {
        '2026-11-01T00:00:00Z': { ...none, ...chat },
        '2026-11-02T00:00:00Z': {
          ...none,
          ...chat,
          total_requests: 2,
          embedding_requests: 1,
          spend: 2e-6,
          input_tokens: 17,
          total_tokens: 22,
        },
      },
    })
  })

  test('is that of a key, by its id or of oneself', async () => {
    const month = { usage: { '2026-11-01T00:00:00Z': expect.objectContaining({ total_requests: 2, spend: 2e-6 }) } }
    for (const id of [self, 'self']) {
      expect((await manage.get(`/apikey/${id}/usage?${november}&resolution=month`)).body).toEqual(month)
    }
    expect(await manage.get('/apikey/nobody/usage')).toMatchObject({ status: 404 })
  })

  test('is grouped by every `group_by` of the query', async () => {
    const { body } = await manage.get(`/org/usage?${november}&resolution=month&group_by=label.team&group_by=extra.task`)
    const { grouped_data, ...total } =
      (body.usage as Record<string, Record<string, unknown>>)['2026-11-01T00:00:00Z'] ?? {}
    expect(total).toMatchObject({ total_requests: 3, spend: 3e-6 })
    expect(grouped_data).toHaveLength(3)
    expect(grouped_data).toEqual(
      expect.arrayContaining([
        { group_by_values: { 'label.team': null, 'extra.task': null }, ...none, ...chat },
        { group_by_values: { 'label.team': null, 'extra.task': 'x' }, ...none, ...chat },
        expect.objectContaining({ group_by_values: { 'label.team': 'a', 'extra.task': null }, input_tokens: 7 }),
      ]),
    )
  })

  test.each([
    ...['model', 'provider', 'key', 'user', 'label'],
    ...['model_requested', 'model_used', 'provider_used', 'api_key_id', 'user_id', 'group_id', 'group_name'],
    ...['is_byok', 'origin_title'],
  ])('is grouped by %s', async (word) => {
    const { status, body } = await manage.get(`/org/usage?${november}&group_by=${word}`)
    expect(status).toBe(200)
    const days = Object.values(body.usage as Record<string, { grouped_data: { group_by_values: object }[] }>)
    for (const { grouped_data } of days) {
      for (const { group_by_values } of grouped_data) expect(Object.keys(group_by_values)).toEqual([word])
    }
  })

  test('takes times with a zone, and ends before the end that is a time', async () => {
    const starts = async (query: string) =>
      Object.keys((await manage.get(`/org/usage?resolution=hour&${query}`)).body.usage as object)
    expect(await starts('start=2026-11-02T13:00:00%2B02:00&end=2026-11-02T13:00:00Z')).toEqual(['2026-11-02T12:00:00Z'])
    // An unencoded plus sign arrives as a space.
    expect(await starts('start=2026-11-02T13:00:00+02:00&end=2026-11-02T13:00:00Z')).toEqual(['2026-11-02T12:00:00Z'])
    expect(await starts('start=2026-11-01T01:00:00Z&end=2026-11-02T12:00:00Z')).toEqual([])
    expect(await starts('start=2026-11-02T12:00:00Z&end=2026-11-02T12:00:01Z')).toEqual(['2026-11-02T12:00:00Z'])
    expect(await starts('start=2026-11-02T12:00:01Z&end=2026-11-02T13:00:00Z')).toEqual([])
    expect(await starts('end=2026-11-01')).toEqual(['2026-11-01T00:00:00Z'])
  })

  test('of a call just made is there: this month until now', async () => {
    const before = await manage.get('/apikey/self/usage')
    expect(before.status).toBe(200)
    const call = { model: 'demo/echo', messages: [{ role: 'user', content: 'Hello' }] }
    expect((await router.call('/v1/chat/completions', call)).status).toBe(200)
    const requests = ({ body }: ManageReply) =>
      Object.values(body.usage as Record<string, { total_requests: number }>).reduce(
        (sum, one) => sum + one.total_requests,
        0,
      )
    expect(requests(await manage.get('/apikey/self/usage'))).toBe(requests(before) + 1)
  })

  test.each([
    ['start=yesterday', 'start', /'start' must be a date such as .*, not 'yesterday'/],
    ['end=2026-02-30', 'end', /'end' must be a date/],
    ['start=1969-12-31', 'start', /'start' must be a date/],
    ['end=', 'end', /'end' must be a date/],
    ['start=2026-11-02T00:00:00Z&end=2026-11-02T00:00:00Z', 'end', /'end' must be later than 'start'/],
    ['start=2026-01-01&end=2026-04-11', 'start', /more than 100 days/],
    ['resolution=week', 'resolution', /'resolution' must be hour, day, month, not 'week'/],
    [
      'group_by=colour',
      'group_by',
      /'group_by' must be model, model_used, model_requested, provider, .*, label\.<name> or extra/,
    ],
    ['group_by=model,key', 'group_by', /not 'model,key'; give it once for each/],
    ['group_by=extra.', 'group_by', /not 'extra.'/],
    [
      'group_by=key&group_by=user&group_by=model&group_by=label&group_by=extra.a&group_by=extra.b',
      'group_by',
      /5 times/,
    ],
    ['since=2026-11-01', 'since', /There is no parameter 'since' here; known: start, end, resolution, group_by/],
    ['start=2026-11-01&start=2026-11-02', 'start', /given 2 times/],
  ])('of %s is refused with 400 that names the parameter', async (query, param, message) => {
    for (const path of ['/org/usage', '/apikey/self/usage']) {
      const { status, body } = await manage.get(`${path}?${query}`)
      expect({ status, ...(body.error as object) }).toMatchObject({
        status: 400,
        param,
        message: expect.stringMatching(message),
      })
    }
  })

  test('of 100 days is given', async () => {
    expect(await manage.get('/org/usage?start=2026-01-01&end=2026-04-10')).toMatchObject({ status: 200 })
  })
})
