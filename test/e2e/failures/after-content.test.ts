import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  type Received,
} from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'

const usage = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const chunk = (delta: object, finish_reason: string | null = null) =>
  data({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm1',
    choices: [{ index: 0, delta, finish_reason }],
  })
const words = ['The ', 'quick ', 'brown ', 'fox ', 'jumps.']
const text = words.join('')
const done = `${chunk({}, 'stop')}${data({ id: 'c1', choices: [], usage })}data: [DONE]\n\n`

type Step = (response: ServerResponse, request: Received) => void | Promise<void>

/** Streams these words, one event each, and then does what follows. */
const streams =
  (said: readonly string[], then: (response: ServerResponse) => void = (response) => response.end(done)): Step =>
  (response) => {
    beginStream(response)
    const all = said.map((content) => chunk({ content })).join('')
    response.write(chunk({ role: 'assistant', content: '' }) + all, () => then(response))
  }
const breaks = (response: ServerResponse) => response.destroy()

let providers: { one: LoopbackProvider; two: LoopbackProvider }
let router: TestRouter
let steps: { one: Step[]; two: Step[] } = { one: [], two: [] }

const prices = 'pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]'
const manifest = (slug: string, url: string, more = '') => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
${more}models:
  m1: { api: chat, ${prices} }
`

beforeAll(async () => {
  const serve = (name: 'one' | 'two') =>
    loopbackProvider((request, response) => (steps[name].shift() ?? streams(words))(response, request))
  providers = { one: await serve('one'), two: await serve('two') }
  router = await testRouter({
    files: {
      'providers/one.yaml': manifest('one', providers.one.url),
      'providers/two.yaml': manifest('two', providers.two.url, 'traits: [{ match: ".*", facts: { prefill: true } }]\n'),
      'providers/late.yaml': manifest('late', providers.two.url),
    },
    keepAliveMs: 200,
    settings: {
      policies: {
        plain: { targets: ['one/m1', 'two/m1'] },
        held: { targets: ['one/m1', 'two/m1'], on_cut: 'hold' },
        going: { targets: ['one/m1', 'late/m1', 'two/m1'], on_cut: 'continue' },
        again: { targets: ['one/m1', 'two/m1'], on_cut: 'restart' },
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

type Client = { path: string; ends: RegExp; texts(events: readonly Event[]): string }
// biome-ignore lint/suspicious/noExplicitAny: events of three APIs.
type Event = any
const clients: { [api: string]: Client } = {
  chat: {
    path: '/v1/chat/completions',
    ends: /^data: \[DONE\]$/gm,
    texts: (events) => events.map(({ choices = [] }) => choices[0]?.delta?.content ?? '').join(''),
  },
  messages: {
    path: '/v1/messages',
    ends: /^event: message_stop$/gm,
    texts: (events) => events.map(({ delta }) => delta?.text ?? '').join(''),
  },
  responses: {
    path: '/v1/responses',
    ends: /^event: response.completed$/gm,
    texts: (events) => events.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join(''),
  },
}

async function ask(model: string, api = 'chat', more: object = {}) {
  const { path, ends, texts } = clients[api] as Client
  const asked = api === 'responses' ? { input: 'Hi', max_output_tokens: 50 } : hello
  const response = await router.call(path, { ...asked, model, stream: true, ...more })
  const body = await response.text()
  const lines = body.split('\n').filter((line) => line.startsWith('data: {'))
  const events: Event[] = lines.map((line) => JSON.parse(line.slice(6)))
  return {
    status: response.status,
    body,
    events,
    text: texts(events),
    endings: body.match(ends)?.length ?? 0,
    failed: events.some(({ error, type }) => Boolean(error) || type === 'response.failed'),
    asked: [providers.one.received.length, providers.two.received.length],
  }
}

const hello = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 50 }

describe.each(Object.keys(clients))('%s', (api) => {
  test('a stream that breaks after content ends with an error', async () => {
    steps.one = [streams(words.slice(0, 2), breaks)]
    expect(await ask('plain', api)).toMatchObject({ text: 'The quick ', endings: 0, failed: true, asked: [1, 0] })
  })

  test('after a finish reason it does not matter how the connection ends', async () => {
    steps.one = [streams(words, (response) => response.write(chunk({}, 'stop'), () => response.destroy()))]
    expect(await ask('plain', api)).toMatchObject({ text, endings: 1, failed: false })
    const [last = ''] = words.slice(-1)
    for (const policy of ['plain', 'going', 'again', 'held']) {
      const together = (response: ServerResponse) =>
        response.write(chunk({ content: last }, 'stop'), () => response.destroy())
      steps.one = [streams(words.slice(0, -1), together)]
      expect(await ask(policy, api)).toMatchObject({ text, endings: 1, failed: false })
    }
    const twice = `${chunk({}, 'stop')}${done}${done}`
    steps.one = [streams(words, (response) => response.end(twice))]
    expect(await ask('plain', api)).toMatchObject({ text, endings: 1, failed: false })
  })

  test('an event in a text that is no JSON is passed over once', async () => {
    const torn = 'data: {"choices": [{"del\n\n'
    const rest = words.slice(2).map((content) => chunk({ content }))
    steps.one = [streams(words.slice(0, 2), (response) => response.end(torn + rest.join('') + done))]
    expect(await ask('plain', api)).toMatchObject({ text, endings: 1, failed: false })
    steps.one = [streams(words.slice(0, 2), (response) => response.end(torn + rest[0] + torn + done))]
    expect(await ask('plain', api)).toMatchObject({ text: 'The quick brown ', endings: 0, failed: true })
  })

  test('a whole answer in place of a stream is streamed', async () => {
    const message = { role: 'assistant', content: text }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    steps.one = [(response) => answerJson(response, { id: 'c1', created: 1, model: 'm1', choices, usage })]
    expect(await ask('plain', api)).toMatchObject({ text, endings: 1, failed: false, asked: [1, 0] })
  })

  test('events that are labelled as JSON are events', async () => {
    steps.one = [
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(words.map((content) => chunk({ content })).join('') + done)
      },
    ]
    expect(await ask('plain', api)).toMatchObject({ text, endings: 1, failed: false, asked: [1, 0] })
  })

  test('hold: nothing is shown until the answer is whole, so that another target can give it', async () => {
    steps.one = [streams(words.slice(0, 3), breaks)]
    expect(await ask('held', api)).toMatchObject({ status: 200, text, endings: 1, failed: false, asked: [1, 1] })
    steps.one = [streams(words.slice(0, 3), breaks)]
    steps.two = [streams(words.slice(0, 3), (response) => response.end())]
    expect(await ask('held', api)).toMatchObject({ text: '', endings: 0 })
  })

  test('hold: meanwhile the stream is kept alive, and a failure is an event', async () => {
    const late = (then: Step) => async (response: ServerResponse, request: Received) => {
      await pause(700)
      await then(response, request)
    }
    steps.one = [late(streams(words))]
    const answer = await ask('held', api)
    expect(answer).toMatchObject({ status: 200, text, endings: 1, failed: false })
    expect(answer.body.match(/^(: |event: ping)/gm)?.length).toBeGreaterThan(1)
    steps.one = [late(streams(words.slice(0, 1), breaks))]
    steps.two = [streams(words.slice(0, 1), breaks)]
    expect(await ask('held', api)).toMatchObject({ status: 200, text: '', endings: 0, failed: true })
  })

  test('continue: the next target that can goes on with the text', async () => {
    steps.one = [streams(words.slice(0, 3), breaks)]
    steps.two = [streams([' fox ', 'jumps.'])]
    const answer = await ask('going', api)
    expect(answer).toMatchObject({ status: 200, text, endings: 1, failed: false, asked: [1, 1] })
    expect(answer.body).toContain(': two/m1 continues')
    expect(answer.body).toContain('"router":{"attempts":2}')
    const [request] = providers.two.received
    expect(request?.body.messages.at(-1)).toEqual({ role: 'assistant', content: 'The quick brown' })
    const books = new Database(join(router.folder, 'data/router.sqlite'), { readonly: true })
    const rows = books.prepare('SELECT provider, outcome FROM ledger ORDER BY rowid DESC LIMIT 2').all()
    books.close()
    expect(rows).toEqual([
      { provider: 'two', outcome: 'complete' },
      { provider: 'one', outcome: 'partial' },
    ])
  })

  test('continue: what cannot be gone on with ends with an error', async () => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
    steps.one = [
      streams(['The '], (response) => response.write(chunk({ tool_calls: [call] }), () => response.destroy())),
    ]
    expect(await ask('going', api)).toMatchObject({ endings: 0, failed: true, asked: [1, 0] })
    steps.one = [streams(['The '], breaks)]
    steps.two = [(response) => answerJson(response, { error: { message: 'no prefill' } }, 400)]
    expect(await ask('going', api)).toMatchObject({ text: 'The ', endings: 0, failed: true })
  })

  test('restart: an answer that begins again is shown from where the other one broke off', async () => {
    steps.one = [streams(words.slice(0, 3), breaks)]
    steps.two = [streams(['The qu', 'ick bro', 'wn fox ', 'jumps.'])]
    expect(await ask('again', api)).toMatchObject({ text, endings: 1, failed: false, asked: [1, 1] })
    steps.one = [streams(words.slice(0, 3), breaks)]
    steps.two = [streams(['The quack ', 'brown fox jumps.'])]
    expect(await ask('again', api)).toMatchObject({ text: 'The quick brown ', endings: 0, failed: true })
  })
})

test('when all of several choices have their finish reason it does not matter how the connection ends', async () => {
  const of = (index: number, content: string, finish_reason: string | null = null) =>
    data({ id: 'c1', created: 1, model: 'm1', choices: [{ index, delta: { content }, finish_reason }] })
  const said = `${of(1, 'b')}${of(0, 'a')}${of(1, '', 'stop')}`
  const streaming =
    (text: string): Step =>
    (response) => {
      beginStream(response)
      response.write(text, () => response.destroy())
    }
  steps.one = [streaming(said + of(0, '', 'stop'))]
  expect(await ask('plain', 'chat', { n: 2 })).toMatchObject({ text: 'ba', endings: 1, failed: false })
  steps.one = [streaming(said)]
  expect(await ask('plain', 'chat', { n: 2 })).toMatchObject({ text: 'ba', endings: 0, failed: true })
})
