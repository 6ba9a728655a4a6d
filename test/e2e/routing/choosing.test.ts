import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Measurements } from '../../../src/routing/measurements.ts'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { eventually, limit } from '../../helpers/time.ts'

type Step = (response: ServerResponse, request: Received) => void | Promise<void>

const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
const answers =
  (words: string): Step =>
  (response, { path, body }) => {
    if (path.endsWith('/embeddings')) {
      answerJson(response, { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [1] }], usage })
      return
    }
    const head = {
      id: 'c1',
      object: body.stream ? 'chat.completion.chunk' : 'chat.completion',
      created: 1,
      model: body.model,
    }
    const said = { role: 'assistant', content: words }
    if (!body.stream) {
      answerJson(response, { ...head, choices: [{ index: 0, message: said, finish_reason: 'stop' }], usage })
      return
    }
    beginStream(response)
    const chunk = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`
    response.end(`${chunk(said, null)}${chunk({}, 'stop')}data: [DONE]\n\n`)
  }

const refuses =
  (status: number, code?: string): Step =>
  (response) =>
    answerJson(response, { error: { message: `refused with ${status}`, code } }, status)

/** Says the beginning of a stream, and no more. */
const begins: Step = (response) => {
  beginStream(response)
  const choices = [{ index: 0, delta: { role: 'assistant', content: 'Once' }, finish_reason: null }]
  response.write(`data: ${JSON.stringify({ id: 'c1', choices })}\n\n`)
}

const price = (input: number, threshold = 0) => ({
  prompt_tokens_threshold: threshold,
  input_price: input,
  cached_price: input / 10,
  output_price: 1e-6,
})
const model = (facts: object = {}) => ({ api: 'chat', pricing: [price(1e-6)], ...facts })
const models = {
  m: model(),
  tiers: model({ pricing: [price(1e-6), price(9e-6, 20_000)] }),
  flat: model({ pricing: [price(3e-6)] }),
  free: { api: 'chat' },
  blind: model({ supports_vision: false, supports_tool_calling: false }),
  mute: model({ supports_tool_calling: false, supports_output_json_schema: false }),
  able: model({ supports_vision: true, supports_tool_calling: true, supports_output_json_schema: true }),
  small: model({ context_window: 500 }),
  medium: model({ context_window: 8_000 }),
  large: model({ context_window: 100_000 }),
  vectors: { api: 'embedding', pricing: [price(1e-6)] },
}

const manifest = (slug: string, base_url: string) =>
  JSON.stringify({ slug, name: slug, base_url, auth: { scheme: 'none' }, dialect: 'openai-chat', models })

const policies = {
  both: { targets: ['one/m', 'two/m'], retries: 0 },
  cheapest: { targets: ['one/free', 'one/tiers', 'two/flat'], sort: 'price' },
  warm: { targets: ['one/flat', 'two/tiers'], sort: 'price', sticky: 'cache', retries: 0 },
  fastest: { targets: ['one/m', 'two/m'], sort: 'latency' },
  sessions: { targets: ['one/m', 'two/m'], sticky: 'session', retries: 0 },
  users: { targets: ['one/m', 'two/m'], sticky: 'user', retries: 0 },
  prompts: { targets: ['one/m', 'two/m'], sticky: 'cache', retries: 0 },
  hashed: { targets: ['one/m', 'two/m'], sticky: 'hash' },
  weighted: { targets: ['one/m', { target: 'two/m', weight: 0 }], sort: 'weighted' },
  abilities: { targets: ['one/blind', 'two/able'] },
  refused: { targets: ['one/m', 'two/able'], retries: 0 },
  unable: { targets: ['one/blind', 'two/mute'] },
  rooms: { targets: ['one/small', 'two/large'] },
  larger: { targets: ['one/medium', 'one/small', 'two/large'] },
  vectors: { targets: ['one/vectors', 'two/vectors'], sort: 'throughput', sticky: 'cache' },
}

let providers: { one: LoopbackProvider; two: LoopbackProvider }
let router: TestRouter
let steps: { one: Step[]; two: Step[] }
const measured = vi.spyOn(Measurements.prototype, 'begin')

beforeAll(async () => {
  const serve = (name: 'one' | 'two') =>
    loopbackProvider((request, response) => (steps[name].shift() ?? answers(name))(response, request))
  providers = { one: await serve('one'), two: await serve('two') }
  router = await testRouter({
    files: {
      'providers/one.yaml': manifest('one', providers.one.url),
      'providers/two.yaml': manifest('two', providers.two.url),
    },
    settings: { routing: {}, health: { consecutive_failures: 1_000, min_calls: 1_000 }, policies },
    threads: 1,
  })
})
afterAll(async () => {
  await router?.end()
  await providers?.one.close()
  await providers?.two.close()
})
beforeEach(() => {
  steps = { one: [], two: [] }
})

/** How many calls are under way at the targets of all calls so far. */
const underWay = () =>
  measured.mock.calls.map(([target], call) => (measured.mock.contexts[call] as Measurements).of(target).underWay)

const hello = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10 }

async function ask(name: string, body: object = {}, headers: Record<string, string> = {}) {
  const response = await router.call('/v1/chat/completions', { ...hello, model: name, ...body }, headers)
  const text = await response.text()
  const { error, choices } = text.startsWith('{') ? JSON.parse(text) : {}
  return {
    status: response.status,
    by: response.headers.get('x-router-model'),
    attempts: response.headers.get('x-router-attempts'),
    dropped: response.headers.get('x-router-dropped'),
    words: choices?.[0].message.content,
    error,
  }
}

describe('sort', () => {
  test('price is that of this request, by its tier; a model without a price is the last one', async () => {
    expect(await ask('cheapest')).toMatchObject({ by: 'one/tiers', attempts: '1' })
    const long = [{ role: 'user', content: 'Once upon a time. '.repeat(10_000) }]
    expect(await ask('cheapest', { messages: long })).toMatchObject({ by: 'two/flat' })
  })

  test('a prompt that is in the cache of a target costs less there', async () => {
    const cached = { prompt_cache_key: 'story' }
    expect(await ask('warm', cached)).toMatchObject({ by: 'two/tiers' })
    steps.two = [refuses(500)]
    expect(await ask('warm', cached)).toMatchObject({ by: 'one/flat', attempts: '2' })
    // 0.3 against 1 USD a million.
    expect(await ask('warm', cached)).toMatchObject({ by: 'one/flat', attempts: '1' })
    expect(await ask('warm')).toMatchObject({ by: 'two/tiers' })
  })

  test('what was measured decides which target is first', async () => {
    steps.one = Array.from({ length: 100 }, () => async (response, request) => {
      await pause(limit(100))
      await answers('one')(response, request)
    })
    const by: (string | null)[] = []
    const calls = (target: string) => by.filter((one) => one === target).length
    while (calls('one/m') < 5 || calls('two/m') < 5) by.push((await ask('fastest')).by)
    by.length = 0
    for (let call = 0; call < 10; call++) by.push((await ask('fastest')).by)
    expect(calls('two/m')).toBeGreaterThanOrEqual(7)
    expect(new Set(underWay())).toEqual(new Set([0]))
  })

  test('a target without weight is only for when others fail', async () => {
    for (let call = 0; call < 5; call++) expect((await ask('weighted')).by).toBe('one/m')
    steps.one = [refuses(500), refuses(500)]
    expect((await ask('weighted')).by).toBe('two/m')
  })
})

describe('sticky', () => {
  test.each<[name: string, body: object, headers: Record<string, string>]>([
    ['sessions', { session_id: 'field' }, {}],
    ['sessions', {}, { 'x-claude-code-session-id': 'claude' }],
    ['sessions', {}, { session_id: 'codex' }],
    ['sessions', { user: 'user_0_account_1_session_2-3' }, {}],
    ['users', { user: 'anna' }, {}],
    ['users', { safety_identifier: 'ben' }, {}],
    ['prompts', { prompt_cache_key: 'key' }, {}],
    ['prompts', { messages: [{ role: 'user', content: 'A first message.' }] }, {}],
  ])('%s: %j %j stay where they had to move', async (name, body, headers) => {
    steps.one = [refuses(500)]
    expect(await ask(name, body, headers)).toMatchObject({ by: 'two/m', attempts: '2' })
    expect(await ask(name, body, headers)).toMatchObject({ by: 'two/m', attempts: '1' })
    expect(await ask(name, {}, {})).toMatchObject({ by: 'one/m' })
    expect(await ask('both', body, headers)).toMatchObject({ by: 'one/m' })
  })

  test('a conversation is known by how it begins, however long it becomes', async () => {
    const begun = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Count.' },
    ]
    steps.one = [refuses(500)]
    expect((await ask('prompts', { messages: begun })).by).toBe('two/m')
    const later = [...begun, { role: 'assistant', content: 'One.' }, { role: 'user', content: 'More.' }]
    expect((await ask('prompts', { messages: later })).by).toBe('two/m')
    const other = [{ role: 'system', content: 'Be long.' }, ...begun.slice(1)]
    expect((await ask('prompts', { messages: other })).by).toBe('one/m')
  })

  test('a hash sends each user of a key to the same target, and the users to all', async () => {
    const of = async (user: number) => (await ask('hashed', { user: `user ${user}` })).by
    const first = await Promise.all(Array.from({ length: 20 }, (_, user) => of(user)))
    expect(new Set(first)).toEqual(new Set(['one/m', 'two/m']))
    for (let user = 0; user < 20; user++) expect(await of(user)).toBe(first[user])
  })

  test('a stored response is continued where it was made', async () => {
    const send = async (body: object) => {
      const response = await router.call('/v1/responses', { model: 'both', input: 'Hi', ...body })
      return { by: response.headers.get('x-router-model'), body: (await response.json()) as { id: string } }
    }
    steps.one = [refuses(500)]
    const made = await send({})
    expect(made.by).toBe('two/m')
    const next = await send({ previous_response_id: made.body.id })
    expect(next.by).toBe('two/m')
    expect((await send({})).by).toBe('one/m')
    steps.two = [refuses(500)]
    expect((await send({ previous_response_id: next.body.id })).by).toBe('one/m')
  })
})

describe('abilities', () => {
  const url = 'data:image/png;base64,iVBORw0KGgo='
  const picture = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }]
  const response_format = {
    type: 'json_schema',
    json_schema: { name: 'n', schema: { type: 'object', properties: {} } },
  }

  test.each([{ messages: picture }, { tools }])('a target that cannot take %j is not tried', async (body) => {
    expect(await ask('abilities', body)).toMatchObject({ by: 'two/able', attempts: '1', dropped: null })
    expect(await ask('abilities')).toMatchObject({ by: 'one/blind' })
  })

  test('when none is left, the error says why for each', async () => {
    const { status, error } = await ask('unable', { tools })
    expect(status).toBe(400)
    expect(error).toMatchObject({ param: 'tools' })
    expect(error.message).toBe(
      "No target of 'unable' can take this request: one/blind does not support tools; two/mute does not support tools.",
    )
    const both = await ask('unable', { messages: picture, tools })
    expect(both.error.message).toContain(
      'one/blind does not support images, does not support tools; two/mute does not support tools',
    )
  })

  test('what is only not known to work is tried, and a name with one target is asked all the same', async () => {
    expect(await ask('unable', { response_format })).toMatchObject({ by: 'one/blind' })
    expect(await ask('unable', { messages: picture })).toMatchObject({ by: 'two/mute' })
    expect(await ask('one/blind', { tools })).toMatchObject({ status: 200, dropped: 'tools.function' })
  })

  test('a prompt goes where there is room for it; one that is too large goes on to a larger window only', async () => {
    const long = { messages: [{ role: 'user', content: 'Once upon a time. '.repeat(200) }] }
    expect(await ask('rooms', long)).toMatchObject({ by: 'two/large', attempts: '1' })
    expect(await ask('rooms')).toMatchObject({ by: 'one/small' })
    steps.one = [refuses(400, 'context_length_exceeded')]
    expect(await ask('larger')).toMatchObject({ by: 'two/large', attempts: '2' })
    steps.two = [refuses(400, 'context_length_exceeded')]
    expect(await ask('rooms', long)).toMatchObject({ status: 400, attempts: '1' })
  })

  test('what one target refuses goes to another that declares all that is needed', async () => {
    steps.one = [refuses(400), refuses(400)]
    expect(await ask('refused', { tools })).toMatchObject({ by: 'two/able', attempts: '2' })
    expect(await ask('refused')).toMatchObject({ status: 400, attempts: '1' })
  })
})

describe('calls under way are counted until they end', () => {
  test('streams, whole answers and operations, with and without success', async () => {
    steps.one = [begins, refuses(500), refuses(400)]
    const leaving = new AbortController()
    const left = await fetch(`${router.url}/v1/chat/completions`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...hello, model: 'both', stream: true }),
    })
    await left.body?.getReader().read()
    expect(underWay().at(-1)).toBe(1)
    leaving.abort()
    for (const body of [{}, { stream: true }, {}]) await ask('both', body)
    const vectors = { model: 'vectors', input: ['a'] }
    expect((await router.call('/v1/embeddings', vectors)).status).toBe(200)
    steps = { one: [refuses(500), refuses(500)], two: [refuses(500), refuses(500)] }
    expect((await router.call('/v1/embeddings', vectors)).status).toBe(502)
    await eventually(() => expect(new Set(underWay())).toEqual(new Set([0])))
    expect(measured.mock.calls.length).toBeGreaterThan(5)
  })
})
