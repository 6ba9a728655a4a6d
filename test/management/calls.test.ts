import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../src/store/sqlite/connection.ts'
import { ledgerWriter } from '../../src/store/sqlite/ledger/ledger-writer.ts'
import { schemaOf, validator } from '../helpers/openapi.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { plainRecord } from '../store/plain-record.ts'
import { administration } from './administration.ts'

let router: TestRouter
let manage: ReturnType<typeof administration>
/** The first key, and another one with a label, of the same organization. */
let self: string
let other: { id: string; secret: string }
const stranger = plainRecord({ organization: 'elsewhere', key: 'a stranger' })

beforeAll(async () => {
  router = await testRouter()
  manage = administration(router)
  self = String((await manage.get('/apikey/self')).body.id)
  other = await manage.newKey({ name: '=cmd()', labels: { team: 'a' } })
  const db = connect(`${router.folder}/data/router.sqlite`)
  ledgerWriter(db)([stranger])
  db.close()
})
afterAll(() => router.end())

type Entry = { id: string; [name: string]: unknown }

async function calls(query = '', secret?: string): Promise<Entry[]> {
  const { status, text, body } = await manage.get(`/calls${query}`, secret)
  if (status !== 200) throw new Error(`${status} ${text}`)
  expect(matchesSchema(body), JSON.stringify(matchesSchema.errors)).toBe(true)
  return body.calls as Entry[]
}
const matchesSchema = validator(schemaOf('CallList'))

async function talk(secret: string, body: object = {}, headers: Record<string, string> = {}) {
  const request = {
    model: 'demo/echo',
    messages: [{ role: 'user', content: 'a secret prompt' }],
    max_tokens: 9,
    ...body,
  }
  const response = await router.call('/v1/chat/completions', request, { authorization: `Bearer ${secret}`, ...headers })
  return { response, body: (await response.json()) as { id: string; usage: Record<string, number> } }
}

describe('calls', () => {
  test('are listed as soon as they have been answered, without what was said', async () => {
    const { response, body } = await talk(
      other.secret,
      { user: 'ann', metadata: { task: 'x' } },
      { 'x-request-id': 'my-1' },
    )
    expect(response.status).toBe(200)
    const [entry, ...more] = await calls('?limit=1')
    expect(more).toEqual([])
    expect(entry).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      request_id: 'my-1',
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      key: { id: other.id, name: '=cmd()' },
      operation: 'chat',
      api: 'chat',
      asked: 'demo/echo',
      provider: 'demo',
      model: 'demo/echo',
      streamed: false,
      outcome: 'complete',
      status: 200,
      duration_ms: expect.any(Number),
      input_tokens: body.usage.prompt_tokens,
      cached_tokens: 0,
      output_tokens: body.usage.completion_tokens,
      reasoning_tokens: 0,
      cost: body.usage.cost,
      estimated: false,
      unpriced: false,
      labels: { team: 'a' },
      user: 'ann',
      extra: { task: 'x' },
      attempts: 1,
    })
  })

  test('are found by what is known of them', async () => {
    await talk(other.secret, { user: 'bob', metadata: { task: 'y' } }, { 'x-request-id': 'my-2' })
    const { response } = await talk(other.secret, { user: 'carl' })
    const id = response.headers.get('x-request-id')
    const found = async (query: string) => (await calls(query)).map(({ user }) => user)
    expect(await found('?user=bob')).toEqual(['bob'])
    expect(await found('?id=my-2')).toEqual(['bob'])
    expect(await found(`?id=${id}`)).toEqual(['carl'])
    expect(await found(`?id=${id}&user=bob`)).toEqual([])
    expect(await found(`?id=${id}&end=2020-01-01`)).toEqual([])
    expect(await found(`?id=resp_${id?.replaceAll('-', '').toUpperCase()}`)).toEqual(['carl'])
    expect(await found('?extra.task=y&label.team=a&model=demo/echo&outcome=complete&operation=chat')).toEqual(['bob'])
    expect(await found(`?key=${other.id}&user=bob`)).toEqual(['bob'])
    expect(await found(`?key=${self}&user=bob`)).toEqual([])
    expect(await found('?code=provider_timeout')).toEqual([])
    expect(await found('?asked=demo/echo&provider=demo&user=bob')).toEqual(['bob'])
  })

  test('of other organizations are in no list, and no page begins at them', async () => {
    expect(await calls(`?id=${stranger.id}`)).toEqual([])
    expect(await calls('?key=a%20stranger')).toEqual([])
    expect((await calls()).map(({ id }) => id)).not.toContain(stranger.id)
    expect(await manage.get(`/calls?cursor=${stranger.id}`)).toMatchObject({
      status: 400,
      body: { error: { param: 'cursor' } },
    })
  })

  test('have pages', async () => {
    await talk(other.secret)
    const all = (await calls()).map(({ id }) => id)
    const first = (await manage.get('/calls?limit=1')).body as { calls: Entry[]; next_cursor: string }
    const rest = (await manage.get(`/calls?cursor=${first.next_cursor}`)).body as { calls: Entry[] }
    expect([...first.calls, ...rest.calls].map(({ id }) => id)).toEqual(all)
    expect(rest).not.toHaveProperty('next_cursor')
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['cursor=', 'cursor'],
    ['cursor=nowhere', 'cursor'],
    ['start=yesterday', 'start'],
    ['start=2026-11-02&end=2026-11-01T00:00:00Z', 'end'],
    ['outcome=ok', 'outcome'],
    ['code=nothing', 'code'],
    ['operation=talk', 'operation'],
    ['model=echo', 'model'],
    ['model=demo/echo&provider=openai', 'model'],
    ['key=', 'key'],
    ['key=a&key=b', 'key'],
    ['color=red', 'color'],
    ['label.=x', 'label.'],
    ['extra.a%22b=x', 'extra.a"b'],
    ['extra.a=x&extra.a=y', 'extra.a'],
  ])('are a 400 for %s', async (query, param) => {
    expect(await manage.get(`/calls?${query}`)).toMatchObject({ status: 400, body: { error: { param } } })
  })

  test.each(["x' OR '1'='1", 'x"; DROP TABLE ledger; --', '@key', '\u0000', '%', '*'])(
    'are not found by the SQL %j',
    async (text) => {
      const value = encodeURIComponent(text)
      for (const name of ['key', 'group', 'provider', 'asked', 'user', 'id', 'label.team', 'extra.task'])
        expect(await calls(`?${name}=${value}`)).toEqual([])
      const name = encodeURIComponent(text.replaceAll('"', '').replace('\u0000', ' '))
      expect(await calls(`?label.${name}=a&extra.${name}=x`)).toEqual([])
    },
  )
})
