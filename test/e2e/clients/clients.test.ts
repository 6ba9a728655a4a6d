import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  answerJson,
  beginStream,
  type LoopbackProvider,
  loopbackProvider,
  pause,
  within,
} from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter, usualThreads } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'

const manifest = (url: string) => `slug: near
name: Near
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
unknown_models: pass
timeouts: { between_events: 300ms }
models:
  m1:
    api: chat
    pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }]
`
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const large = 'x'.repeat(20_000_000)
const counts = { near: { prompt_tokens: 1e300, completion_tokens: 2 } }

let provider: LoopbackProvider
let router: TestRouter
/** How many chunks the last endless stream had. */
let endlessChunks = 0

beforeAll(async () => {
  provider = await loopbackProvider(async ({ body }, response) => {
    const prompt = body.messages.at(-1).content as string
    if (prompt === 'endless') {
      beginStream(response)
      for (endlessChunks = 0; !response.destroyed; endlessChunks++) {
        if (!response.write(chunk({ content: 'x'.repeat(10_000) }))) await pause(1)
      }
    } else if (prompt === 'much') {
      beginStream(response)
      for (let index = 0; index < 2_000; index++) response.write(chunk({ content: 'x'.repeat(10_000) }))
      response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`)
    } else if (body.stream) {
      beginStream(response)
      response.end(`${chunk({ content: 'hello' })}${chunk({}, 'stop')}data: [DONE]\n\n`)
    } else {
      const message = { role: 'assistant', content: prompt === 'large' ? large : 'hello' }
      const usage = prompt === 'counts' ? counts.near : { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      answerJson(response, { id: 'c1', object: 'chat.completion', created: 1, model: body.model, choices, usage })
    }
  })
  router = await near(300)
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

const near = (patienceMs: number) =>
  testRouter({
    files: { 'providers/near.yaml': manifest(provider.url) },
    settings: { server: { host: '127.0.0.1', port: 0, threads: usualThreads, client_timeout: `${patienceMs}ms` } },
  })

const asking = (content: string, more: object = {}) => ({
  model: 'near/m1',
  messages: [{ role: 'user', content }],
  ...more,
})
const path = '/v1/chat/completions'

type Row = { outcome: string; status: number; cost: number; requested: string; estimated: number }

function rows({ folder }: TestRouter): Row[] {
  const db = new Database(join(folder, 'data/router.sqlite'), { readonly: true })
  try {
    return db
      .prepare('SELECT outcome, status, cost_nano AS cost, requested, estimated FROM ledger ORDER BY rowid')
      .all() as Row[]
  } finally {
    db.close()
  }
}

/** A client that does on its socket what no HTTP library would. */
function client({ url }: TestRouter): Socket & { whole: Promise<string> } {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  onTestFinished(() => void socket.destroy())
  let received = ''
  const whole = new Promise<string>((resolve) => {
    socket.on('data', (text) => {
      received += text
    })
    socket.on('close', () => resolve(received))
  })
  return Object.assign(socket, { whole })
}

const head = (more: string) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`
const whole = (body: object) => {
  const text = JSON.stringify(body)
  return `${head(`content-length: ${text.length}`)}${text}`
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await pause(20)
}

describe('names that clients choose', () => {
  test.each([
    ['letters of the world', 'модель ☃', 'near/%D0%BC%D0%BE%D0%B4%D0%B5%D0%BB%D1%8C %E2%98%83'],
    ['line breaks', 'm\r\nx-evil: 1', 'near/m%0D%0Ax-evil: 1'],
  ])('%s in a model travel in a header', async (_, model, expected) => {
    for (const stream of [false, true]) {
      const response = await router.call(path, asking('x', { model: `near/${model}`, stream }))
      expect(await response.text()).toContain('hello')
      expect(response.status).toBe(200)
      expect(response.headers.get('x-router-model')).toBe(expected)
      expect(response.headers.get('x-evil')).toBeNull()
      expect(rows(router).at(-1)).toMatchObject({ outcome: 'complete' })
    }
  })

  test.each([
    ['without end', 'm'.repeat(100_000)],
    ['that is cut in the middle of a character', 'm\ud800'],
  ])('a name %s is no model', async (_, model) => {
    const response = await router.call(path, asking('x', { model: `near/${model}` }))
    expect(response.status).toBe(404)
    expect((await response.text()).length).toBeLessThan(500)
  })
})

describe('bodies that no reader could follow', () => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)

  test.each([
    ['an unknown field', `"foo": ${deep}`],
    ['a tool', `"tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": ${deep}}}}]`],
    ['metadata', `"metadata": {"a": ${deep}}`],
  ])('%s that is nested without end is refused', async (_, field) => {
    const response = await router.call(path, JSON.stringify(asking('x')).replace('{', `{${field},`))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { message: expect.stringMatching(/nested deeper than 200/) } })
  })

  test('a body that is not gzip is refused', async () => {
    const response = await router.call(path, '{}', { 'content-encoding': 'gzip' })
    expect(response.status).toBe(400)
    expect(await response.text()).toMatch(/cannot be decompressed: incorrect header check/)
  })

  test('an upload without end is cut off', slow, async () => {
    const patient = await near(60_000)
    onTestFinished(() => patient.end())
    const socket = client(patient)
    socket.write(head('transfer-encoding: chunked'))
    const piece = `100000\r\n${' '.repeat(1_048_576)}\r\n`
    const send = () => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', send)
    send()
    // The refusal may be lost together with data in flight.
    expect(await within(25_000, 'the end', socket.whole)).toMatch(/^$|^HTTP\/1.1 413 /)
  })
})

describe('a client that stalls', () => {
  test('in the middle of its body is refused', async () => {
    const socket = client(router)
    socket.write(`${head('content-length: 1000')}{"model"`)
    const text = await within(5_000, 'the refusal', socket.whole)
    expect(text).toMatch(/^HTTP\/1.1 400 /)
    expect(text).toMatch(/The upload stalled/)
  })

  test('again and again, but never for long, is heard', async () => {
    const socket = client(router)
    const text = JSON.stringify(asking('x'))
    socket.write(head(`content-length: ${text.length}\r\nconnection: close`))
    for (const piece of text.match(/.{1,12}/gs) ?? []) {
      await pause(100)
      socket.write(piece)
    }
    expect(await within(5_000, 'the answer', socket.whole)).toMatch(/^HTTP\/1.1 200 /)
  })

  test('and reads nothing is disconnected: the provider is stopped, the sent part is paid', async () => {
    const before = rows(router).length
    const socket = client(router)
    socket.pause().write(whole(asking('endless', { stream: true })))
    await within(
      5_000,
      'the row',
      until(() => rows(router).length > before),
    )
    const row = rows(router).at(-1)
    expect(row).toMatchObject({ outcome: 'partial', status: 499, estimated: 1 })
    await within(5_000, 'leaving', provider.received.at(-1)?.left ?? Promise.reject(new Error('no call')))
    // A chunk is 2,500 tokens, 2,000 nano-USD each, beside the six tokens of the prompt for 1,000 each.
    const chunks = ((row?.cost ?? 0) - 6_000) / 5_000_000
    expect(chunks).toBeGreaterThanOrEqual(1)
    expect(Number.isInteger(chunks)).toBe(true)
    expect(chunks).toBeLessThanOrEqual(endlessChunks)
  })

  test('for a while does not make the provider a silent one', async () => {
    const patient = await near(5_000)
    onTestFinished(() => patient.end())
    const socket = client(patient)
    socket.pause().write(whole(asking('much', { stream: true })))
    await pause(1_000)
    socket.resume()
    socket.on('data', (text) => `${text}`.includes('[DONE]') && socket.end())
    expect(await within(5_000, 'the stream', socket.whole)).toContain('[DONE]')
  })
})

describe('a router that is stopping', () => {
  test('does not wait for the rest of a body beyond its deadline', async () => {
    const stopped = await near(60_000)
    const socket = client(stopped)
    socket.write(head('content-length: 1000\r\nexpect: 100-continue'))
    // The router reads the body.
    await within(5_000, 'being asked for the body', once(socket, 'data'))
    socket.write('{"model"')
    await within(5_000, 'the stop', stopped.stop(200))
    expect(await socket.whole).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 503 /)
  })

  test('does not wait for a client that reads nothing beyond its deadline', async () => {
    const stopped = await near(60_000)
    const socket = client(stopped)
    socket.pause().write(whole(asking('endless', { stream: true })))
    await pause(500)
    await within(6_000, 'the stop', stopped.stop(200))
    expect(rows(stopped)).toMatchObject([{ outcome: 'partial', status: 503 }])
  })

  test('lets a slow client read its answer to the end', async () => {
    const stopped = await near(60_000)
    const socket = client(stopped)
    socket.pause().write(whole(asking('large')))
    await within(
      5_000,
      'the row',
      until(() => rows(stopped).length === 1),
    )
    const stop = stopped.stop(20_000)
    await pause(300)
    socket.resume()
    const text = await within(10_000, 'the answer', socket.whole)
    await within(5_000, 'the stop', stop)
    expect(text.length).toBeGreaterThan(large.length)
  })
})

test('a count that no request can have is not paid', async () => {
  const response = await router.call(path, asking('counts'))
  const { usage } = (await response.json()) as { usage: { cost: number } }
  const row = rows(router).at(-1)
  expect(row).toMatchObject({ outcome: 'complete', estimated: 1 })
  expect(row?.cost).toBeLessThan(1_000_000)
  expect(usage.cost).toBe((row?.cost ?? 0) / 1e9)
})
