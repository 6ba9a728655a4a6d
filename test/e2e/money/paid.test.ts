import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { CallRecord } from '../../../src/core/call.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider, within } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { newKey, storeIn } from './budget-world.ts'

// What a provider was asked is paid, also when the client does not get the answer.

type Answer = Parameters<typeof loopbackProvider>[0]

let provider: LoopbackProvider
let router: TestRouter
let store: Store

const manifest = (slug: string, dialect: string) => `slug: ${slug}
name: ${slug}
base_url: ${provider.url}/${slug}
auth: { scheme: none }
dialect: ${dialect}
models:
  m1:
    api: chat
    context_window: 10000
    max_output_tokens: 1000
    pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }]
  small:
    api: chat
    context_window: 500
    max_output_tokens: 1000
    pricing: [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }]
`

type World = { provider: LoopbackProvider; router: TestRouter; store: Store; answer(answer: Answer): void }

async function open(settings: object = {}): Promise<World> {
  let answering: Answer = () => {}
  provider = await loopbackProvider((request, response) => answering(request, response))
  const dialects = {
    chat: 'openai-chat',
    second: 'openai-chat',
    messages: 'anthropic-messages',
    gemini: 'gemini',
    responses: 'openai-responses',
  }
  const files = Object.entries(dialects).map(([slug, dialect]) => [`providers/${slug}.yaml`, manifest(slug, dialect)])
  const policies = { both: { targets: ['chat/m1', 'second/m1'] } }
  router = await testRouter({ files: Object.fromEntries(files), settings: { policies, ...settings } })
  store = await storeIn(router.folder)
  return {
    provider,
    router,
    store,
    answer: (next) => {
      answering = next
    },
  }
}

async function close(world: World | undefined): Promise<void> {
  await world?.store.close()
  await world?.router.end()
  await world?.provider.close()
}

let shared: World
beforeAll(async () => {
  shared = await open()
})
afterAll(() => close(shared))

/** The provider answers so from now on; tests see what it receives from now on, and rows by their keys. */
function begin(answer: Answer): void {
  ;({ provider, router, store } = shared)
  shared.answer(answer)
  provider.received.length = 0
}

/** As `begin`, with a router that only this test has. */
async function beginAlone(answer: Answer, settings?: object): Promise<void> {
  const world = await open(settings)
  onTestFinished(() => close(world))
  world.answer(answer)
}

const ask = (model: string, more: JsonObject = {}) => ({
  model,
  max_tokens: 100,
  messages: [{ role: 'user', content: 'x'.repeat(4_000) }],
  ...more,
})

async function call(
  body: JsonObject,
  secret: string,
  signal: AbortSignal | null = null,
): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const response = await fetch(`${router.url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    signal,
  })
  return { status: response.status, text: await response.text() }
}

const rowsOf = async (id: string): Promise<CallRecord[]> => await Array.fromAsync(store.ledger.each({ key: id }))

describe('a client that leaves before any output', () => {
  const leave = async (stream: boolean) => {
    const key = await newKey(store)
    const leaving = new AbortController()
    const gone = call(ask('chat/m1', { stream }), key.secret, leaving.signal).catch(() => {})
    await expect.poll(() => provider.received.length).toBe(1)
    leaving.abort()
    await gone
    await within(5_000, 'leaving the provider', provider.received[0]?.left ?? Promise.reject(new Error('no call')))
    await expect.poll(async () => (await rowsOf(key.id)).length).toBe(1)
    return (await rowsOf(key.id))[0] as CallRecord
  }

  test.each([false, true])('pays its prompt, estimated: streamed %s', async (stream) => {
    begin(() => {})
    const row = await leave(stream)
    expect(row).toMatchObject({ outcome: 'failed', status: 499, error: 'client_gone', usage: { input: 1_004 } })
    expect(row.cost).toMatchObject({ nanoUsd: 1_004_000, estimated: true })
  })

  test('pays it also when the provider has only begun its response', async () => {
    begin((_, response) => beginStream(response))
    expect((await leave(true)).cost.nanoUsd).toBe(1_004_000)
  })

  test('pays nothing where that is configured', async () => {
    await beginAlone(() => {}, { budget: { abandoned: 'nothing' } })
    expect((await leave(false)).cost.nanoUsd).toBe(0)
  })
})

test('a client that leaves before the provider has the request pays nothing', async () => {
  await beginAlone(() => {})
  // Nobody listens there: connections are not refused, but not accepted either, or refused at once.
  router.put('providers/chat.yaml', manifest('chat', 'openai-chat').replace(provider.url, 'http://127.0.0.1:1'))
  const { generation } = router.snapshot()
  await expect.poll(() => router.snapshot().generation).toBeGreaterThan(generation)
  const key = await newKey(store)
  await call(ask('chat/m1'), key.secret)
  expect((await rowsOf(key.id))[0]?.cost.nanoUsd).toBe(0)
})

const usage = { prompt_tokens: 900, completion_tokens: 50, total_tokens: 950 }
const facts = { id: 'c', object: 'chat.completion', created: 1, model: 'm1' }
const good = {
  ...facts,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage,
}
const broken = { ...good, choices: [{ ...good.choices[0], finish_reason: 'network_error' }] }

/** Answers of a successful status that are none, by the provider's slug; 900 tokens in, 50 out. */
const failures: [what: string, slug: string, answer: object][] = [
  ['a finish that reports a failure', 'chat', broken],
  ['an error beside the usage', 'chat', { error: { message: 'Overloaded.' }, usage }],
  ['choices that cannot be read', 'chat', { ...facts, choices: { a: 1 }, usage }],
  [
    'a message that failed',
    'messages',
    {
      type: 'error',
      error: { type: 'api_error', message: 'Broken.' },
      usage: { input_tokens: 900, output_tokens: 50 },
    },
  ],
  [
    'a response that failed',
    'responses',
    {
      id: 'r',
      object: 'response',
      status: 'failed',
      error: { code: 'server_error', message: 'Broken.' },
      output: [],
      usage: { input_tokens: 900, output_tokens: 50 },
    },
  ],
  [
    'a malformed call',
    'gemini',
    {
      candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL' }],
      usageMetadata: { promptTokenCount: 900, candidatesTokenCount: 50, totalTokenCount: 950 },
    },
  ],
]

describe('a reply that the router does not take for one', () => {
  test.each(failures)('is paid by the usage in it: %s', async (_, slug, answer) => {
    begin((__, response) => answerJson(response, answer))
    const key = await newKey(store)
    const { status } = await call(ask(`${slug}/m1`), key.secret)
    expect(status).toBe(502)
    const [row] = await rowsOf(key.id)
    expect(row).toMatchObject({ outcome: 'failed', cost: { nanoUsd: 1_000_000 } })
    expect(row?.cost.estimated).toBeUndefined()
    expect(await store.spend.ofKey(key.id, Date.now())).toBe(1_000_000n)
  })

  test('is paid beside the reply of the next target, in a row of its own', async () => {
    begin(({ path }, response) => answerJson(response, path.startsWith('/chat') ? broken : good))
    const key = await newKey(store, { monthlyLimitNano: 100_000_000n })
    expect((await call(ask('policy/both'), key.secret)).status).toBe(200)
    await expect.poll(async () => (await rowsOf(key.id)).length).toBe(2)
    const rows = (await rowsOf(key.id)).toSorted((one, other) => one.attempts - other.attempts)
    expect(rows).toMatchObject([
      { provider: 'chat', outcome: 'failed', error: 'provider_unreadable', cost: { nanoUsd: 1_000_000 } },
      { provider: 'second', outcome: 'complete', cost: { nanoUsd: 1_000_000 } },
    ])
    expect(await store.spend.ofKey(key.id, Date.now())).toBe(2_000_000n)
  })

  test('leaves no money for the next target where the rest does not cover it', async () => {
    begin(({ path }, response) => answerJson(response, path.startsWith('/chat') ? broken : good))
    // The prompt is held with 5,088 tokens at most, the output with 100: there is no room for two.
    const key = await newKey(store, { monthlyLimitNano: 6_000_000n })
    const refused = await call(ask('policy/both'), key.secret)
    const { error } = JSON.parse(refused.text)
    expect([refused.status, error.code]).toEqual([502, 'provider_unreadable'])
    expect(error.attempts.map(({ code }: { code: string }) => code)).toEqual([
      'provider_unreadable',
      'budget_exhausted',
    ])
    expect(provider.received).toHaveLength(1)
    expect(await store.spend.ofKey(key.id, Date.now())).toBe(1_000_000n)
  })

  test('of a stream that ends in a failure is paid by the usage that the failure tells', async () => {
    const event = (data: JsonObject) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
    const response = { id: 'r', object: 'response', created_at: 1, model: 'm1', output: [] }
    begin((_, answer) => {
      beginStream(answer)
      const failed = {
        ...response,
        status: 'failed',
        error: { code: 'server_error', message: 'Broken.' },
        usage: { input_tokens: 900, output_tokens: 50 },
      }
      answer.end(
        event({ type: 'response.created', response: { ...response, status: 'in_progress' } }) +
          event({ type: 'response.failed', response: failed }),
      )
    })
    const key = await newKey(store)
    await call(ask('responses/m1', { stream: true }), key.secret)
    await expect.poll(async () => (await rowsOf(key.id))[0]?.cost.nanoUsd).toBe(1_000_000)
  })
})

test('a stream of several choices that is cut counts every choice', async () => {
  begin((_, response) => {
    beginStream(response)
    for (const index of [0, 1, 2]) {
      const choices = [{ index, delta: { content: 'word'.repeat(10) }, finish_reason: null }]
      response.write(`data: ${JSON.stringify({ ...facts, object: 'chat.completion.chunk', choices })}\n\n`)
    }
    setImmediate(() => response.destroy())
  })
  const key = await newKey(store)
  await call(ask('chat/m1', { stream: true, n: 3 }), key.secret)
  await expect.poll(async () => (await rowsOf(key.id)).length).toBe(1)
  expect((await rowsOf(key.id))[0]).toMatchObject({
    outcome: 'partial',
    usage: { output: 30 },
    cost: { estimated: true },
  })
})

describe('usage that cannot be', () => {
  const absurd: [what: string, reported: JsonObject, input: number, output: number][] = [
    ['more cached than there is', { prompt_tokens: 100, prompt_tokens_details: { cached_tokens: 400 } }, 100, 50],
    // Some count thoughts beside what is written.
    ['more thought than written', { completion_tokens_details: { reasoning_tokens: 90 } }, 900, 140],
    ['less than nothing', { prompt_tokens: -5 }, 0, 50],
    ['more than the context', { prompt_tokens: 2_000_000 }, 10_000, 50],
  ]
  test.each(absurd)('is bounded and not shown as it came: %s', async (_, reported, input, output) => {
    const counts = { prompt_tokens: 900, completion_tokens: 50, ...reported }
    begin((__, response) => answerJson(response, { ...good, usage: counts }))
    const key = await newKey(store)
    const { usage: shown } = JSON.parse((await call(ask('chat/m1'), key.secret)).text)
    const expected = { prompt_tokens: input === 0 ? 1_004 : input, completion_tokens: output }
    expect(shown).toMatchObject(expected)
    expect(shown.prompt_tokens_details?.cached_tokens ?? 0).toBeLessThanOrEqual(shown.prompt_tokens)
    expect(shown.completion_tokens_details?.reasoning_tokens ?? 0).toBeLessThanOrEqual(shown.completion_tokens)
  })
})

describe('usage that the catalog denies', () => {
  // The prompt has 5,088 tokens at most by its bytes; the catalog says that the model reads and writes 500 in all.
  test.each([
    ['more than the context, and no more than the bytes', { max_tokens: 100 }, [3_000, 50], [3_000, 50]],
    ['more than the context and the bytes', { max_tokens: 100 }, [6_000, 50], [5_088, 50]],
    ['more than was asked for, and no more than the context', { max_tokens: 100 }, [900, 400], [900, 400]],
    ['more than the context, and no more than was asked for', { max_tokens: 1_000 }, [900, 900], [900, 900]],
    ['more than both', { max_tokens: 600 }, [900, 700], [900, 600]],
    ['as much for each choice', { max_tokens: 100, n: 3 }, [900, 1_400], [900, 1_400]],
    ['more for all choices', { max_tokens: 100, n: 3 }, [900, 1_600], [900, 1_500]],
  ] as const)(
    'is believed as far as it can be: %s',
    async (_, more, [prompt_tokens, completion_tokens], [input, output]) => {
      const counts = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
      begin((__, response) => answerJson(response, { ...good, usage: counts }))
      const key = await newKey(store)
      expect((await call(ask('chat/small', more), key.secret)).status).toBe(200)
      const [row] = await rowsOf(key.id)
      expect(row?.usage).toMatchObject({ input, output })
      expect(row?.cost.nanoUsd).toBe(input * 1_000 + output * 2_000)
      expect(row?.cost.estimated).toBe(prompt_tokens === input && completion_tokens === output ? undefined : true)
    },
  )

  test('may be eleven contexts of a reply that shows that tools of the provider ran, and one of any other', async () => {
    const searched = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
    ]
    const text = { type: 'text', text: 'Hi' }
    const reply = { id: 'm', type: 'message', role: 'assistant', model: 'm1', stop_reason: 'end_turn' }
    const inputOf = async (content: object[], input_tokens: number) => {
      begin((_, response) => answerJson(response, { ...reply, content, usage: { input_tokens, output_tokens: 5 } }))
      const key = await newKey(store)
      expect((await call(ask('messages/m1'), key.secret)).status).toBe(200)
      return (await rowsOf(key.id))[0]?.usage.input
    }
    expect(await inputOf([...searched, text], 110_000)).toBe(110_000)
    expect(await inputOf([...searched, text], 110_001)).toBe(110_000)
    expect(await inputOf([text], 110_000)).toBe(10_000)
  })
})
