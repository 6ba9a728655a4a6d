import type { ServerResponse } from 'node:http'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newKey } from '../e2e/money/budget-world.ts'
import { answerJson, beginStream, type Received, within } from '../helpers/provider.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { type JsonStage, type JsonWorld, jsonStage, jsonWorld, testMoney } from './json-world.ts'

const pricing = [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 2e-6 }]
const entry = { api: 'completion', pricing, context_window: 4_096, max_output_tokens: 4_096 }

const usage = { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 }
const cost = 16e-6
const whole = {
  id: 'cmpl-1',
  object: 'text_completion',
  created: 7,
  model: 'm',
  choices: [{ text: ' go on', index: 0, logprobs: null, finish_reason: 'stop' }],
  usage,
}

type Piece = { index?: number; text?: string; finish_reason?: string | null }

/** A chunk of OpenAI's stream. */
function chunk(choices: Piece[], more: object = {}): string {
  const { id, object, created, model } = whole
  const all = choices.map((choice) => ({ index: 0, text: '', logprobs: null, finish_reason: null, ...choice }))
  return `data: ${JSON.stringify({ id, object, created, model, choices: all, usage: null, ...more })}\n\n`
}

function send(response: ServerResponse, pieces: readonly string[]): void {
  beginStream(response)
  for (const piece of pieces) response.write(piece)
  response.end()
}

/** The data of all events of an answer. */
// biome-ignore lint/suspicious/noExplicitAny: a test knows the events it expects.
async function eventsOf(response: Response): Promise<any[]> {
  const text = await response.text()
  const data = text.split('\n\n').flatMap((block) => /^data: (.*)$/m.exec(block)?.[1] ?? [])
  return data.map((one) => (one === '[DONE]' ? one : JSON.parse(one)))
}

const done = 'data: [DONE]\n\n'
const counted = chunk([], { usage })

describe('POST /v1/completions', () => {
  let world: JsonWorld
  let pieces: readonly string[] = []
  beforeAll(async () => {
    world = await jsonWorld(
      ({ body }, response) => (body.stream ? send(response, pieces) : answerJson(response, whole)),
      { providers: { openai: { models: { m: entry } } } },
    )
  })
  afterAll(() => world?.end())
  const ask = (fields: object) => world.ask('/v1/completions', { model: 'openai/m', ...fields })

  test.each([
    ['a text', 'once'],
    ['an empty text', ''],
    ['texts', ['once', 'twice']],
    ['tokens', [1, 2]],
    ['lists of tokens', [[1, 2], [3]]],
  ])('%s', async (_, prompt) => {
    const fields = { prompt, suffix: 'end', echo: true, best_of: 2, logprobs: 1, max_tokens: 5, stop: ['x'], seed: 3 }
    const response = await ask(fields)
    const { model: __, ...reply } = whole
    expect(await response.json()).toEqual({ ...reply, model: 'openai/m', usage: { ...usage, cost } })
    expect(world.provider.received.at(-1)).toMatchObject({ path: '/completions', body: { model: 'm', ...fields } })
  })

  test.each([
    ['no prompt', {}, 'prompt'],
    ['an empty list', { prompt: [] }, 'prompt'],
    ['a number', { prompt: 1 }, 'prompt'],
    ['an empty list of tokens', { prompt: [[]] }, 'prompt[0]'],
    ['none of them', { prompt: 'a', n: 0 }, 'n'],
    ['fewer than shown', { prompt: 'a', n: 3, best_of: 2 }, 'best_of'],
    ['a length below nothing', { prompt: 'a', max_tokens: -1 }, 'max_tokens'],
    ['a length by another name', { prompt: 'a', max_completion_tokens: 5 }, 'max_completion_tokens'],
    ['a stop that is a number', { prompt: 'a', stop: 1 }, 'stop'],
    ['a stream that is a word', { prompt: 'a', stream: 'yes' }, 'stream'],
    ['another preset', { prompt: 'a', preset: 'x' }, 'preset'],
    ['further models that are none', { prompt: 'a', models: 'x' }, 'models'],
  ])('%s is a 400 before anything is sent', async (_, fields, param) => {
    const before = world.provider.received.length
    const response = await ask(fields)
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }])
    expect(world.provider.received).toHaveLength(before)
  })

  test('streams end when every choice has, with usage and cost where they are asked for', async () => {
    pieces = [
      chunk([{ text: 'a' }, { index: 1, text: 'b' }]),
      chunk([{ index: 1, finish_reason: 'stop' }]),
      chunk([{ text: 'c' }]),
      chunk([{ finish_reason: 'length' }]),
      counted,
      done,
    ]
    const asked = { prompt: 'once', n: 2, stream: true }
    const events = await eventsOf(await ask({ ...asked, stream_options: { include_usage: true } }))
    expect(events.map((event) => event.choices?.map(({ text }: Piece) => text))).toEqual([
      ['a', 'b'],
      [''],
      ['c'],
      [''],
      [],
      undefined,
    ])
    expect(events.at(-1)).toBe('[DONE]')
    expect(events.at(-2)).toEqual({
      ...{ id: 'cmpl-1', object: 'text_completion', created: 7, model: 'openai/m', choices: [] },
      usage: { ...usage, cost },
    })
    expect(events[0]).toMatchObject({ id: 'cmpl-1', object: 'text_completion', model: 'openai/m', usage: null })
    const plain = await eventsOf(await ask(asked))
    expect(plain).toHaveLength(5)
    expect(plain.every((event) => event === '[DONE]' || !('usage' in event))).toBe(true)
    expect(world.provider.received.at(-1)?.body.stream_options).toEqual({ include_usage: true })
    expect((await world.rows()).map(({ cost: one }) => one.nanoUsd)).toContain(cost * 1e9)
  })

  test.each([
    ['before a choice has ended', [chunk([{ text: 'abcd' }]), counted]],
    ['before the other choice has come', [chunk([{ text: 'abcd', finish_reason: 'stop' }])]],
    ['and says that it is done', [chunk([{ text: 'abcd', finish_reason: 'stop' }]), done]],
  ])('a stream that ends %s ends with an error', async (_, sent) => {
    pieces = sent
    const events = await eventsOf(await ask({ prompt: 'abcd', n: 2, stream: true }))
    expect(events.at(-1)).toMatchObject({ error: { code: 'provider_cut' } })
    expect(events).not.toContain('[DONE]')
    const row = (await world.rows()).at(-1)
    expect(row).toMatchObject({ outcome: 'partial', error: 'provider_cut' })
    expect(row?.cost.nanoUsd).toBeGreaterThan(0)
  })

  test('an error in the middle is an event, and the end', async () => {
    pieces = [chunk([{ text: 'a' }]), `data: ${JSON.stringify({ error: { message: 'Out of paper.' } })}\n\n`, done]
    const events = await eventsOf(await ask({ prompt: 'once', stream: true }))
    expect(events.map((event) => event.error?.message)).toEqual([undefined, expect.stringContaining('Out of paper.')])
  })

  test('an error at the beginning is a response', async () => {
    pieces = [`data: ${JSON.stringify({ error: { message: 'Out of paper.' } })}\n\n`]
    expect((await ask({ prompt: 'once', stream: true })).status).toBe(502)
  })

  test('a client that leaves a stream pays for what came', async () => {
    let left: Promise<void> | undefined
    const slow = await jsonWorld(
      (request, response) => {
        left = request.left
        beginStream(response)
        response.write(chunk([{ text: 'a'.repeat(400) }]))
      },
      { providers: { openai: { models: { m: entry } } } },
    )
    const leaving = new AbortController()
    const body = { model: 'openai/m', prompt: 'abcd', stream: true }
    const response = await slow.ask('/v1/completions', body, { signal: leaving.signal })
    await response.body?.getReader().read()
    leaving.abort()
    await within(2_000, 'the provider', left as Promise<void>)
    await expect
      .poll(async () => (await slow.rows()).map(({ error, cost: one }) => [error, one.nanoUsd]))
      .toEqual([
        // One token of the prompt, a hundred of the text.
        ['client_gone', 201_000],
      ])
    await slow.end()
  })
})

describe('money', () => {
  testMoney({
    api: 'completions',
    path: '/v1/completions',
    body: { prompt: 'ab', max_tokens: 3 },
    entry,
    answer: whole,
    nano: 16_000n,
  })

  let reserving: JsonStage
  beforeAll(async () => {
    const models = { m: entry, chatty: { ...entry, api: 'chat' } }
    reserving = await jsonStage({ providers: { openai: { models } } })
  })
  afterAll(() => reserving?.end())

  test.each([
    ['the length of each choice', { max_tokens: 100, n: 4 }, 'm', 400],
    ['the best of several', { max_tokens: 100, n: 2, best_of: 5 }, 'm', 500],
    ['a usual length', {}, 'm', 16],
    ['all that the model can say', {}, 'chatty', 4_096],
    ['all prompts', { prompt: ['ab', 'ab'], max_tokens: 100 }, 'm', 200],
  ])('%s is reserved', async (_, fields, model, tokens) => {
    const world = await reserving.begin((__, response) => answerJson(response, whole))
    const prompts = 'prompt' in fields ? 2 : 1
    const nano = BigInt(prompts * 10_000 + tokens * 2_000)
    // The prompt alone does not fit, however few tokens it has.
    const poor = await newKey(world.store, { monthlyLimitNano: BigInt(tokens * 2_000) })
    const rich = await newKey(world.store, { monthlyLimitNano: nano })
    const call = { model: `openai/${model}`, prompt: 'ab', ...fields }
    expect((await world.ask('/v1/completions', call, poor)).status).toBe(402)
    expect((await world.ask('/v1/completions', call, rich)).status).toBe(200)
  })
})

/** How a provider fills in the middle, whole and in events; what it is sent for the same request. */
const openaiStream = [chunk([{ text: 'b' }]), chunk([{ text: 'c', finish_reason: 'stop' }]), counted, done]
const asked = { model: 'm', prompt: 'a', max_tokens: 9 }
const chatChoice = { index: 0, finish_reason: 'stop' }
const lines = (all: object[]) => all.map((one) => `${JSON.stringify(one)}\n`)
const dialects = [
  ...['openai', 'vllm'].map((slug) => ({
    slug,
    path: '/completions',
    sends: { ...asked, suffix: 'd', stop: 'END' },
    answer: { ...whole, choices: [{ text: 'bc', index: 0, finish_reason: 'stop' }] },
    stream: openaiStream,
  })),
  ...['together', 'fireworks'].map((slug) => ({
    slug,
    path: '/completions',
    sends: { ...asked, stop: 'END' },
    answer: { ...whole, choices: [{ text: 'bc', index: 0, finish_reason: 'stop' }] },
    stream: openaiStream,
  })),
  {
    slug: 'deepseek',
    path: '/beta/completions',
    sends: { ...asked, suffix: 'd', stop: 'END' },
    answer: { ...whole, choices: [{ text: 'bc', index: 0, finish_reason: 'stop' }] },
    stream: openaiStream,
  },
  {
    slug: 'mistral',
    path: '/fim/completions',
    sends: { ...asked, suffix: 'd', stop: 'END' },
    answer: { id: 'f', created: 7, choices: [{ ...chatChoice, message: { content: 'bc' } }], usage },
    stream: [
      ...[{ delta: { content: 'b' } }, { delta: { content: 'c' }, finish_reason: 'stop' }].map(
        (choice, at) =>
          `data: ${JSON.stringify({ id: 'f', choices: [{ index: 0, finish_reason: null, ...choice }], ...(at && { usage }) })}\n\n`,
      ),
      done,
    ],
  },
  {
    slug: 'ollama',
    path: '/api/generate',
    sends: { model: 'm', prompt: 'a', suffix: 'd', stream: false, options: { num_predict: 9, stop: ['END'] } },
    answer: { model: 'm', response: 'bc', done: true, done_reason: 'stop', prompt_eval_count: 10, eval_count: 3 },
    stream: lines([
      { model: 'm', response: 'b', done: false },
      { model: 'm', response: 'c', done: true, done_reason: 'stop', prompt_eval_count: 10, eval_count: 3 },
    ]),
  },
]

let stage: JsonStage
beforeAll(async () => {
  stage = await jsonStage({
    providers: Object.fromEntries(dialects.map(({ slug }) => [slug, { models: { m: entry } }])),
  })
})
afterAll(() => stage?.end())

describe.each(dialects.map((dialect) => [dialect.slug, dialect] as const))('%s', (slug, dialect) => {
  const answer = ({ body }: Received, response: ServerResponse) =>
    body.stream ? send(response, dialect.stream) : answerJson(response, dialect.answer)
  let world: Awaited<ReturnType<JsonStage['begin']>>
  beforeAll(async () => {
    world = await stage.begin(answer)
  })
  const client = () => new OpenAI({ baseURL: `${world.router.url}/v1`, apiKey: world.secret, maxRetries: 0 })
  const body = { model: `${slug}/m`, prompt: 'a', suffix: 'd', max_tokens: 9, stop: 'END' }

  test('whole, by the SDK of OpenAI', async () => {
    const reply = await client().completions.create(body)
    expect(reply).toMatchObject({
      object: 'text_completion',
      model: `${slug}/m`,
      choices: [{ text: 'bc', index: 0, logprobs: null, finish_reason: 'stop' }],
      usage: { ...usage, cost },
    })
    const sent = world.provider.received.at(-1)
    expect([sent?.path, sent?.body]).toEqual([dialect.path, dialect.sends])
    expect((await world.rows()).at(-1)).toMatchObject({ api: 'completions', cost: { nanoUsd: cost * 1e9 } })
  })

  test('in events, by the SDK of OpenAI', async () => {
    const stream = await client().completions.create({ ...body, stream: true, stream_options: { include_usage: true } })
    const chunks = []
    for await (const one of stream) chunks.push(one)
    expect(chunks.map(({ choices }) => choices[0]?.text ?? '').join('')).toBe('bc')
    expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['stop'])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { ...usage, cost } })
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect((await world.rows()).at(-1)).toMatchObject({ outcome: 'complete', cost: { nanoUsd: cost * 1e9 } })
  })

  test('several prompts reach those who take them, and are refused elsewhere', async () => {
    const takes = ['openai', 'vllm', 'fireworks'].includes(slug)
    const response = await world.ask('/v1/completions', { ...body, prompt: [[1, 2]] })
    expect(response.status).toBe(takes ? 200 : 400)
  })
})

describe.skipIf(recordingsMissing)('recorded exchanges', () => {
  const cases = recordings('openai-completions').map((one) => [one.case, one] as const)
  test.each(cases)('%s', async (_, { request, response, model }) => {
    const { sse, body } = response
    const world = await jsonWorld((__, answer) => (sse ? send(answer, [sse]) : answerJson(answer, body)), {
      providers: { openai: { models: { [String(model)]: entry } } },
    })
    const answer = await world.ask('/v1/completions', { ...request?.body, model: `openai/${model}` })
    expect(world.provider.received.at(-1)?.body).toEqual(request?.body)
    const own = { model: `openai/${model}`, usage: expect.objectContaining({ cost: 81e-6 }) }
    if (!sse) expect(await answer.json()).toEqual({ ...body, ...own })
    else {
      const recorded = sse.split('\n\n').flatMap((block) => /^data: (\{.*)$/.exec(block)?.[1] ?? [])
      const expected = recorded.map((one) => JSON.parse(one)).map((one) => ({ ...one, model: own.model }))
      const events = await eventsOf(answer)
      expect(events).toEqual([...expected.slice(0, -1), { ...expected.at(-1), usage: own.usage }, '[DONE]'])
    }
    await world.end()
  })
})
