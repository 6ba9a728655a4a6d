import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'

type Step = (response: ServerResponse, request: Received) => void | Promise<void>

const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const head = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm1' }
const chunk = (delta: object, finish_reason: string | null = null) =>
  data({ ...head, choices: [{ index: 0, delta, finish_reason }] })
const opening = chunk({ role: 'assistant', content: '' })

/** A whole answer, or a stream, that says these words. */
function says(words: string): Step {
  return (response, { body }) => {
    if (!body.stream) {
      const message = { role: 'assistant', content: words }
      answerJson(response, { ...head, choices: [{ index: 0, message, finish_reason: 'stop' }], usage })
      return
    }
    beginStream(response)
    response.end(
      `${opening}${chunk({ content: words })}${chunk({}, 'stop')}${data({ ...head, choices: [], usage })}data: [DONE]\n\n`,
    )
  }
}

const fails =
  (status: number, headers = {}): Step =>
  (response) =>
    answerJson(response, { error: { message: `failed with ${status}` } }, status, headers)

/** Opens the stream, and then does this. */
const opens =
  (then: (response: ServerResponse) => void): Step =>
  (response) => {
    beginStream(response)
    response.write(opening, () => then(response))
  }

let providers: { one: LoopbackProvider; two: LoopbackProvider }
let router: TestRouter
/** What the providers do, step by step; then they answer. */
let steps: { one: Step[]; two: Step[] } = { one: [], two: [] }

const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
idempotency: Idempotency-Key
models:
  m1: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }] }
  m2: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }] }
`

beforeAll(async () => {
  const serve = (name: 'one' | 'two') =>
    loopbackProvider((request, response) => (steps[name].shift() ?? says(name))(response, request))
  providers = { one: await serve('one'), two: await serve('two') }
  router = await testRouter({
    files: {
      'providers/one.yaml': manifest('one', providers.one.url),
      'providers/two.yaml': manifest('two', providers.two.url),
    },
    settings: {
      routing: {},
      // One that is well again has all calls at once: nothing is left to chance.
      health: { consecutive_failures: 1_000, min_calls: 1_000, ramp_up: '1ms' },
      policies: {
        both: { targets: ['one/m1', 'two/m1'], first_event: '300ms' },
        // Its retries are not used up by other tests.
        pair: { targets: ['one/m2', 'two/m2'] },
      },
    },
  })
})

afterAll(async () => {
  await router?.end()
  await providers?.one.close()
  await providers?.two.close()
})

beforeEach(() => {
  steps = { one: [], two: [] }
  providers.one.received.length = 0
  providers.two.received.length = 0
})

const hello = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10 }

async function ask(model: string, more: object = {}, path = '/v1/chat/completions') {
  const response = await router.call(path, { ...hello, model, ...more })
  const text = await response.text()
  const words = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, word]) => word).join('')
  const asked = [providers.one.received.length, providers.two.received.length]
  return { status: response.status, headers: response.headers, text, words, asked }
}

describe.each([false, true])('streamed: %s', (stream) => {
  test('a failure that may pass is tried again at the same target', async () => {
    steps.one = [fails(500)]
    const answer = await ask('one/m1', { stream })
    expect(answer).toMatchObject({ status: 200, words: 'one', asked: [2, 0] })
    expect(answer.headers.get('x-router-attempts')).toBe('2')
  })

  test('but first at the next target, where there is one', async () => {
    steps.one = [fails(503)]
    expect(await ask('both', { stream })).toMatchObject({ status: 200, words: 'two', asked: [1, 1] })
    steps = { one: [fails(503), fails(503)], two: [fails(503)] }
    expect(await ask('both', { stream })).toMatchObject({ status: 200, words: 'two', asked: [3, 3] })
  })

  test('a target that is busy is left at once', async () => {
    steps.one = [fails(429, { 'retry-after': '1' })]
    expect(await ask('both', { stream })).toMatchObject({ status: 200, words: 'two', asked: [1, 1] })
    // It stays busy for a second, and no call waits for it while another target is open.
    expect(await ask('both', { stream })).toMatchObject({ status: 200, words: 'two', asked: [1, 2] })
    await pause(1_100)
  })

  test('when all fail the first failure is told, with all attempts, and the SDK may try again', async () => {
    steps.one = [fails(500), fails(500), fails(500), fails(500)]
    steps.two = [fails(400), fails(400)]
    const client = new OpenAI({ baseURL: `${router.url}/v1`, apiKey: testKey, maxRetries: 1 })
    const error = await client.chat.completions
      .create({ ...hello, model: 'both', stream } as OpenAI.ChatCompletionCreateParams)
      .then(String, (thrown) => thrown)
    expect(error).toMatchObject({ status: 502, code: 'provider_failed' })
    expect(error.error.attempts.map(({ model, code }: { model: string; code: string }) => [model, code])).toEqual([
      ['one/m1', 'provider_failed'],
      ['two/m1', 'invalid_request'],
      ['one/m1', 'provider_failed'],
    ])
    expect([providers.one.received.length, providers.two.received.length]).toEqual([4, 2])
  })

  test('all attempts of a call have the same idempotency key, and those of another call another one', async () => {
    steps.one = [fails(500)]
    await ask('one/m1', { stream })
    await ask('one/m1', { stream })
    const keys = providers.one.received.map(({ headers }) => headers['idempotency-key'])
    expect(keys[0]).toEqual(expect.any(String))
    expect([keys[1] === keys[0], keys[2] === keys[0]]).toEqual([true, false])
  })

  test('what lets a provider act is sent again only where it cannot have been received', async () => {
    const tools = [{ type: 'code_interpreter', container: { type: 'auto' } }]
    steps.one = [fails(500)]
    const acting = { tools, input: 'Hi', messages: undefined, max_tokens: undefined, max_output_tokens: 20, stream }
    expect(await ask('both', acting, '/v1/responses')).toMatchObject({ status: 502, asked: [1, 0] })
    steps.one = [fails(429)]
    expect(await ask('both', acting, '/v1/responses')).toMatchObject({ status: 200, asked: [2, 1] })
    await pause(1_100)
  })
})

test('the row of a call whose attempts all fail has the target and the code of one of them', async () => {
  steps.one = [fails(500), fails(500)]
  steps.two = [fails(400)]
  const answer = await ask('pair')
  expect([answer.status, answer.headers.get('x-router-model')]).toEqual([502, 'one/m2'])
  const books = new Database(join(router.folder, 'data/router.sqlite'), { readonly: true })
  const rows = books
    .prepare(
      'SELECT attempt_of IS NULL AS is_call, provider, error, failure, attempts, started_ms, duration_ms FROM ledger ORDER BY rowid DESC LIMIT 3',
    )
    .all() as { started_ms: number; duration_ms: number }[]
  books.close()
  expect(rows.map(({ started_ms: _, duration_ms: __, ...row }) => row)).toEqual([
    { is_call: 1, provider: 'one', error: 'provider_failed', failure: 'failed', attempts: 3 },
    { is_call: 0, provider: 'two', error: 'invalid_request', failure: 'refused', attempts: 2 },
    { is_call: 0, provider: 'one', error: 'provider_failed', failure: 'failed', attempts: 1 },
  ])
  // Each began when the one before it had ended; figures are rounded.
  const [call, second, first] = rows
  if (!call || !second || !first) throw new Error('there are three rows')
  expect(second.started_ms).toBeGreaterThanOrEqual(first.started_ms + first.duration_ms - 1)
  expect(call.started_ms).toBeGreaterThanOrEqual(second.started_ms + second.duration_ms - 1)
  expect(call.duration_ms).toBeGreaterThanOrEqual(call.started_ms)
})

test('what takes no calls is shown to who may manage, and attempts are rows of their own, but no requests', async () => {
  const manifest = (await router.call('/v1/manage/health')).json()
  expect(await manifest).toEqual({ degraded: [], troubled: [] })
  const before = await requests()
  steps.one = [fails(401)]
  expect(await ask('both')).toMatchObject({ status: 200, words: 'two' })
  const { degraded, troubled } = (await (await router.call('/v1/manage/health')).json()) as Record<string, object[]>
  expect(troubled).toEqual(degraded)
  expect(degraded).toEqual([
    {
      scope: 'credential',
      name: 'one',
      state: 'open',
      organization: expect.any(String),
      since: expect.any(String),
      until: expect.any(String),
      reason: 'provider_refused',
    },
  ])
  const ready = (await (await fetch(`${router.url}/ready`)).json()) as object
  expect(ready).toMatchObject({ degraded_count: 1, troubled_count: 1 })
  expect(ready).not.toHaveProperty('degraded')
  expect(ready).not.toHaveProperty('troubled')
  expect(await requests()).toBe(before + 1)
  const books = new Database(join(router.folder, 'data/router.sqlite'), { readonly: true })
  const rows = books
    .prepare('SELECT id, attempt_of, provider, error, failure FROM ledger ORDER BY rowid DESC LIMIT 2')
    .all()
  books.close()
  const [call] = rows as { id: string }[]
  expect(rows).toEqual([
    { id: call?.id, attempt_of: null, provider: 'two', error: null, failure: null },
    { id: expect.any(String), attempt_of: call?.id, provider: 'one', error: 'provider_refused', failure: 'credential' },
  ])
  // The only target of a name is tried all the same, and well again after two calls.
  for (const _ of Array(2)) expect(await ask('one/m1')).toMatchObject({ status: 200, words: 'one' })
})

/** The requests of this month, as usage counts them. */
async function requests(): Promise<number> {
  const report = await (await router.call('/v1/manage/org/usage')).text()
  return [...report.matchAll(/"(?:requests|completions_requests|request_count)":(\d+)/g)].reduce(
    (sum, [, one]) => sum + Number(one),
    0,
  )
}

test.each([false, true])('a target that has nothing left is asked again when it has, streamed: %s', async (stream) => {
  const lastOne: Step = (response, request) => {
    response.setHeader('x-ratelimit-remaining-requests', '0')
    response.setHeader('x-ratelimit-reset-requests', '400ms')
    return says('one')(response, request)
  }
  steps.one = [lastOne]
  expect(await ask('both', { stream })).toMatchObject({ words: 'one' })
  expect(await ask('both', { stream })).toMatchObject({ words: 'two', asked: [1, 1] })
  await pause(450)
  expect(await ask('both', { stream })).toMatchObject({ words: 'one' })
})

describe('a stream is the answer from its first content on', () => {
  const failures: [what: string, step: Step][] = [
    ['breaks off', opens((response) => response.destroy())],
    ['ends', opens((response) => response.end())],
    ['reports an error', opens((response) => response.end(data({ error: { message: 'overloaded' } })))],
    ['is no JSON', opens((response) => response.end('data: {"choi\n\n'))],
    [
      'stays silent, but for what keeps it alive',
      opens((response) => {
        const alive = setInterval(() => response.write(`: ping\n\n${opening}`), 20)
        response.on('close', () => clearInterval(alive))
      }),
    ],
  ]

  test.each(failures)('one that %s after its opening is another target’s', async (_, step) => {
    steps.one = [step, step]
    const { status, words, text } = await ask('both', { stream: true })
    expect([status, words]).toEqual([200, 'two'])
    expect(text.match(/\[DONE\]/g)).toHaveLength(1)
    expect(text.match(/"role":"assistant"/g)).toHaveLength(1)
  })

  test('the last target may take longer than the time for the first content', async () => {
    steps.one = [opens(() => {})]
    steps.two = [
      opens(async (response) => {
        await pause(700)
        response.end(`${chunk({ content: 'late' })}${chunk({}, 'stop')}data: [DONE]\n\n`)
      }),
    ]
    expect(await ask('both', { stream: true })).toMatchObject({ status: 200, words: 'late' })
  })
})
