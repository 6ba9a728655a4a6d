import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { answerJson, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'

/** What a body may hold at most, by default. */
const most = { values: 200_000, unknown: 1_000, levels: 200 }

const turns = [{ role: 'user', content: 'Hi' }]
const apis = [
  { api: 'chat', path: '/v1/chat/completions', body: { model: 'demo/echo', messages: turns } },
  { api: 'messages', path: '/v1/messages', body: { model: 'demo/echo', max_tokens: 9, messages: turns } },
  { api: 'count', path: '/v1/messages/count_tokens', body: { model: 'demo/echo', messages: turns } },
  { api: 'responses', path: '/v1/responses', body: { model: 'demo/echo', input: turns, store: false } },
]

let router: TestRouter

beforeAll(async () => {
  router = await testRouter()
})

afterAll(() => router.end())

/** The values of a JSON document. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, member) => sum + valuesIn(member), 1)
}

/** The body with so many values in all. */
function holding(body: object, values: number): object {
  const list = { ...body, x: [] }
  return { ...list, x: Array.from({ length: values - valuesIn(list) }, () => 0) }
}

function nested(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels))
}

describe.each(apis)('a body of $api', ({ path, body }) => {
  test('has at most 200,000 values', async () => {
    expect((await router.call(path, holding(body, most.values))).status).toBe(200)
    const refused = await router.call(path, holding(body, most.values + 1))
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      error: { message: expect.stringMatching(/200000 values.*max_values/) },
    })
  })

  test('has at most 1,000 fields that the API does not have', async () => {
    const unknown = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`field_${at}`, at]))
    expect((await router.call(path, { ...body, ...unknown(most.unknown) })).status).toBe(200)
    const refused = await router.call(path, { ...body, ...unknown(most.unknown + 1) })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({
      error: { message: expect.stringMatching(/1001 fields.*max_unknown_fields of this server is 1000/) },
    })
  })

  test('has at most 10,000 members in one object', async () => {
    const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, 0]))
    expect((await router.call(path, { ...body, x: members(10_000) })).status).toBe(200)
    const refused = await router.call(path, { ...body, x: members(10_001) })
    expect(refused.status).toBe(400)
    expect(await refused.text()).toMatch(/an object of more than 10000 members/)
  })

  test('has at most 200 levels', async () => {
    expect((await router.call(path, { ...body, x: nested(most.levels - 1) })).status).toBe(200)
    expect((await router.call(path, { ...body, x: nested(most.levels) })).status).toBe(400)
  })

  test('is refused as soon as it is too much, compressed as well', async () => {
    const text = JSON.stringify({ ...body, x: 'list' }).replace('"list"', `[${'{},'.repeat(3_000_000)}{}]`)
    for (const [sent, headers] of [
      [text, {}],
      [gzipSync(text), { 'content-encoding': 'gzip' }],
    ] as const) {
      const refused = await fetch(router.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json', ...headers },
        body: sent,
      })
      expect(refused.status).toBe(400)
      expect(await refused.json()).toMatchObject({ error: { message: expect.stringMatching(/max_values/) } })
    }
  })
})

const many = (count: number) => JSON.stringify({ a: Array.from({ length: count }, () => 0) })
const callsOf = (texts: string[]) => ({
  chat: [
    ...turns,
    {
      role: 'assistant',
      tool_calls: texts.map((text, at) => ({
        id: `c${at}`,
        type: 'function',
        function: { name: 'f', arguments: text },
      })),
    },
  ],
  responses: [
    ...turns,
    ...texts.map((text, at) => ({ type: 'function_call', call_id: `c${at}`, name: 'f', arguments: text })),
  ],
})

describe('the JSON in strings of calls', () => {
  test.each([
    // A value for the object, and one for its list.
    ['200,000 values', [many(most.values - 2)], [many(most.values - 1)], /200000 values.*max_values/],
    [
      '200,000 values together',
      [many(99_998), many(99_998)],
      [many(99_998), many(99_999)],
      /200000 values.*max_values/,
    ],
    [
      '200 levels',
      [JSON.stringify({ a: nested(most.levels - 1) })],
      [JSON.stringify({ a: nested(most.levels) })],
      /200 levels/,
    ],
    [
      '200 levels, where nobody could write them',
      [],
      [`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
      /200 levels/,
    ],
    [
      '10,000 members of one object',
      [JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`m${at}`, 0])))],
      [JSON.stringify(Object.fromEntries(Array.from({ length: 10_001 }, (_, at) => [`m${at}`, 0])))],
      /10000 members/,
    ],
  ])('has at most %s', async (_, accepted, tooMuch, message) => {
    const bodies = (texts: string[]) => [
      ['/v1/chat/completions', { model: 'demo/echo', messages: callsOf(texts).chat }, 'messages'] as const,
      ['/v1/responses', { model: 'demo/echo', input: callsOf(texts).responses, store: false }, 'input'] as const,
    ]
    for (const [path, body] of bodies(accepted)) expect((await router.call(path, body)).status).toBe(200)
    for (const [path, body, param] of bodies(tooMuch)) {
      const refused = await router.call(path, body)
      expect(refused.status).toBe(400)
      expect(await refused.json()).toMatchObject({ error: { param, message: expect.stringMatching(message) } })
    }
  })
})

test('a body that is too much for a mapping is a mistake of the client: no provider is asked', slow, async () => {
  const provider = await loopbackProvider((_, response) => answerJson(response, {}))
  const frames = `slug: frames\nname: X\nbase_url: ${provider.url}\nauth: { scheme: none }\ndialect: bedrock-converse\nunknown_models: pass\n`
  const mapped = await testRouter({ files: { 'providers/frames.yaml': frames } })
  onTestFinished(async () => {
    await mapped.end()
    await provider.close()
  })
  for (const { api, path, body } of apis.filter(({ api }) => api !== 'count')) {
    const type = api === 'responses' ? 'input_text' : 'text'
    const content = Array.from({ length: 66_000 }, () => ({ type, text: 'x' }))
    const turns = [{ role: 'user', content }]
    const long = 'input' in body ? { ...body, input: turns } : { ...body, messages: turns }
    const refused = await mapped.call(path, { ...long, model: 'frames/m' })
    expect([api, refused.status]).toEqual([api, 400])
    expect(await refused.text()).toMatch(/too large to be translated for frames: the mapping `request` stopped/)
  }
  expect(provider.received).toEqual([])
})
