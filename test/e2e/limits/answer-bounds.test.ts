import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deepest } from '../../../src/core/json.ts'
import { awsFrame } from '../../helpers/aws-frames.ts'
import { type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

const bounds = { body_limit: 20_000, event_limit: 8_000, max_values: 300 }

const manifest = (slug: string, dialect: string, url: string, more = '') => `slug: ${slug}
name: Test
base_url: ${url}
auth: { scheme: none }
dialect: ${dialect}
${more}models:
  m:
    api: chat
    context_window: 128000
    max_output_tokens: 4096
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]
`

const turns = [{ role: 'user', content: 'Hi' }]
const apis = {
  chat: { path: '/v1/chat/completions', body: { messages: turns } },
  messages: { path: '/v1/messages', body: { max_tokens: 9, messages: turns } },
  responses: { path: '/v1/responses', body: { input: turns, store: false } },
}

/** What the provider answers: a JSON text, or bytes of a stream, with a status. */
let answer: { status?: number; type?: string; bytes: string | Buffer }
let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider((_, response) => {
    const { status = 200, type = 'application/json', bytes } = answer
    response.on('error', () => {})
    response.writeHead(status, { 'content-type': type }).end(bytes)
  })
  const { url } = provider
  router = await testRouter({
    settings: { answers: bounds },
    files: {
      'providers/sse.yaml': manifest('sse', 'openai-chat', url),
      'providers/lines.yaml': manifest('lines', 'ollama', url),
      'providers/frames.yaml': manifest('frames', 'bedrock-converse', url),
      'providers/items.yaml': manifest(
        'items',
        'gemini',
        url,
        'endpoints: { chat: { stream: { format: json-array } } }\n',
      ),
    },
  })
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

async function ask(api: keyof typeof apis, model: string, sent: typeof answer, stream = false) {
  answer = sent
  const { path, body } = apis[api]
  const response = await router.call(path, { model: `${model}/m`, ...body, stream })
  return { status: response.status, text: await response.text() }
}

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
const reply = (content: string, more: object = {}) => ({
  id: 'a',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
  usage,
  ...more,
})

function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, member) => sum + valuesIn(member), 1)
}

/** An object with more members in a list, so that it has so many values in all. */
function holding(object: object, values: number): string {
  const room = values - valuesIn({ ...object, x: [] })
  return JSON.stringify({ ...object, x: Array.from({ length: room }, () => 0) })
}

/** An object of so many characters. */
function sized(made: (text: string) => object, length: number): string {
  return JSON.stringify(made('x'.repeat(length - JSON.stringify(made('')).length)))
}

/** Without its last brackets, since a deep value cannot be written by JSON.stringify. */
function nesting(object: object, levels: number): string {
  return `${JSON.stringify(object).slice(0, -1)},"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
}

describe.each(Object.keys(apis) as (keyof typeof apis)[])('a whole answer to a call of %s', (api) => {
  test.each([
    ['bytes', (most: number) => sized(reply, most), bounds.body_limit, /20000 bytes.*answers\.body_limit/],
    ['values', (most: number) => holding(reply('Hi'), most), bounds.max_values, /300 values.*answers\.max_values/],
    ['levels', (most: number) => nesting(reply('Hi'), most), deepest, /deeper than 200 levels/],
  ])('is bounded in %s', async (_, text, most, message) => {
    expect(await ask(api, 'sse', { bytes: text(most) })).toMatchObject({ status: 200 })
    const refused = await ask(api, 'sse', { bytes: text(most + 1) })
    expect(refused).toMatchObject({ status: 502, text: expect.stringMatching(message) })
  })

  test('that no reader could follow is an answer of the provider, not a fault of the router', async () => {
    for (const levels of [5_000, 100_000]) {
      for (const text of [nesting(reply('Hi'), levels), '['.repeat(levels)]) {
        expect(await ask(api, 'sse', { bytes: text.slice(0, 19_999) })).toMatchObject({ status: 502 })
        expect(await ask(api, 'sse', { status: 500, bytes: text })).toMatchObject({ status: 502 })
        expect(await ask(api, 'sse', { bytes: text }, true)).toMatchObject({ status: 502 })
      }
    }
  })

  test.each([
    [
      'values',
      (most: number) => JSON.stringify({ a: Array.from({ length: most - 2 }, () => 0) }),
      bounds.max_values,
      /300 values/,
    ],
    [
      'levels',
      (most: number) => `{"a":${'['.repeat(most - 1)}${']'.repeat(most - 1)}}`,
      deepest,
      /deeper than 200 levels/,
    ],
    [
      'levels that nobody could write',
      (most: number) => `{"a":${'['.repeat(most)}${']'.repeat(most)}}`,
      5_000,
      /deeper/,
    ],
  ])('is bounded in %s of the JSON in its calls', async (name, text, most, message) => {
    const called = (args: string) => {
      const tool_calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }]
      const message = { role: 'assistant', content: null, tool_calls }
      return JSON.stringify(reply('', { choices: [{ index: 0, finish_reason: 'tool_calls', message }] }))
    }
    if (most < 5_000) expect(await ask(api, 'sse', { bytes: called(text(most)) })).toMatchObject({ status: 200 })
    const refused = await ask(api, 'sse', { bytes: called(text(most + 1)) })
    expect([name, refused.status, refused.text]).toEqual([name, 502, expect.stringMatching(message)])
  })

  test('an error without end is read as far as it matters', async () => {
    const error = { error: { message: 'x'.repeat(1_000_000), code: 'invalid_api_key' } }
    const refused = await ask(api, 'sse', { status: 429, bytes: JSON.stringify(error) })
    expect(refused.status).toBe(429)
    expect(refused.text.length).toBeLessThan(5_000)
  })
})

/** How each format writes an event: with a text, with more values, and the last one. */
const wires = {
  sse: {
    text: (content: string) => ({
      id: 'a',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { content } }],
    }),
    end: { id: 'a', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage },
    write: (events: string[]) => events.map((event) => `data: ${event}\n\n`).join(''),
  },
  lines: {
    text: (content: string) => ({ model: 'm', message: { role: 'assistant', content }, done: false }),
    end: { model: 'm', done: true, done_reason: 'stop', prompt_eval_count: 1, eval_count: 1 },
    write: (events: string[]) => events.map((event) => `${event}\n`).join(''),
  },
  frames: {
    text: (text: string) => ({ contentBlockIndex: 0, delta: { text } }),
    end: { stopReason: 'end_turn' },
    write: (events: string[]) =>
      Buffer.concat(events.map((event) => awsFrame({ ':message-type': 'event', ':event-type': nameOf(event) }, event))),
  },
  items: {
    text: (text: string) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] } }] }),
    end: { candidates: [{ content: { role: 'model', parts: [{ text: '.' }] }, finishReason: 'STOP' }] },
    write: (events: string[]) => `[${events.join(',')}]`,
  },
} as const

const nameOf = (event: string) => (event.includes('stopReason') ? 'messageStop' : 'contentBlockDelta')

/** What the headers and checksums of a frame take. */
const around = {
  sse: 0,
  lines: 0,
  items: 0,
  frames: awsFrame({ ':message-type': 'event', ':event-type': 'contentBlockDelta' }, '').length,
}

const type = 'text/event-stream'

describe.each(Object.entries(wires))('a stream of %s', (wire, { text, end, write }) => {
  const streamed = async (api: keyof typeof apis, ...events: string[]) =>
    await ask(api, wire, { type, bytes: write([JSON.stringify(text('Hi')), ...events, JSON.stringify(end)]) }, true)

  test.each(Object.keys(apis) as (keyof typeof apis)[])('to %s is bounded by event and in all', async (api) => {
    const longest = bounds.event_limit - around[wire as keyof typeof around]
    const cases = [
      {
        event: (most: number) => [sized(text, most)],
        most: longest,
        message: /8000 characters or bytes, the answers\.event_limit/,
      },
      {
        event: (most: number) => [holding(text('Hi'), most)],
        most: bounds.max_values,
        message: /300 values.*answers\.max_values/,
      },
      { event: (most: number) => [nesting(text('Hi'), most)], most: deepest, message: /deeper than 200 levels/ },
      // Each reply has one part, which counts 200, and two characters before.
      {
        event: (most: number) =>
          Array.from({ length: 10 }, (_, at) => JSON.stringify(text('x'.repeat(at < 9 ? 1_900 : most - 9 * 1_900)))),
        most: bounds.body_limit - 200 - 2 - (wire === 'items' ? 1 : 0),
        message: /20000 characters, the answers\.body_limit/,
      },
    ]
    for (const { event, most, message } of cases) {
      const whole = await streamed(api, ...event(most))
      expect(whole.status).toBe(200)
      expect([message.source, message.test(whole.text)]).toEqual([message.source, false])
      const broken = await streamed(api, ...event(most + 1))
      expect([broken.status, message.source, message.test(broken.text)]).toEqual([200, message.source, true])
    }
  })
})

test('what a stream sends before any content is bounded, whatever it is', async () => {
  const events = (count: number, more: (index: number) => object) =>
    Array.from({ length: count }, (_, index) => `data: ${JSON.stringify({ id: 'a', model: 'm', ...more(index) })}\n\n`)
  const content = `data: ${JSON.stringify({ id: 'a', model: 'm', choices: [{ index: 0, delta: { content: 'Hi' } }] })}\n\n`
  const streamed = async (...bytes: string[]) =>
    await ask('chat', 'sse', { type, bytes: [...bytes, content, 'data: [DONE]\n\n'].join('') }, true)
  // A frame counts for more than its text: many small ones take as much memory as a large one.
  for (const [many, of] of [
    [100, (index: number) => ({ choices: [], index })],
    [100, (index: number) => ({ choices: [{ index: 0, delta: { role: 'assistant' } }], index })],
    [5, () => ({ choices: [], padding: 'x'.repeat(5_000) })],
  ] as const) {
    const broken = await streamed(...events(many, of))
    expect([broken.status, /the answers\.body_limit/.test(broken.text)]).toEqual([502, true])
    expect(await streamed(...events(3, of))).toMatchObject({ status: 200, text: expect.stringContaining('"Hi"') })
  }
})
