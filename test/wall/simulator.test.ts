import { Agent, request } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { pause } from '../helpers/provider.ts'
import { eventually } from '../helpers/time.ts'
import { apis } from './cells.ts'
import { call, type Seen } from './clients/client.ts'
import { outcomeOf } from './judge.ts'
import { wholeText } from './simulator/answer.ts'
import { faults } from './simulator/faults.ts'
import { type Simulator, startSimulator } from './simulator/server.ts'

const time = 0.01
let simulator: Simulator

beforeAll(async () => {
  simulator = await startSimulator({ time })
})
beforeEach(() => simulator.journal.reset())
afterAll(() => simulator.close())

const modes = [true, false] as const
const grid = apis.flatMap((api) => modes.map((stream) => ({ api, stream, name: api.name })))

const ask = (model: string, { api, stream } = grid[0] as (typeof grid)[number], caller = 'me'): Promise<Seen> =>
  call({ url: simulator.url, key: 'none', limitMs: 5_000 }, api, { model, stream, text: `Count. (case:${caller})` })

const outcome = (seen: Seen, stream = true) => outcomeOf({ mode: stream ? 'streamed' : 'whole' }, seen)

describe.each(grid)('$name, streamed: $stream', (cell) => {
  test('a healthy model says sixty words, and counts them', async () => {
    const seen = await ask('ok', cell)
    expect(seen).toMatchObject({ status: 200, text: wholeText, usage: { input: 25, output: 60 }, wrong: [] })
    expect(outcome(seen, cell.stream)).toEqual({ of: 'complete', problems: [] })
  })

  test('errors have the status and the words of the format', async () => {
    const seen = await ask('429-always-retry-after-2', cell)
    expect(seen).toMatchObject({ status: 429, wrong: [], error: { message: expect.stringMatching('Rate limit') } })
    expect(seen.headers.get('retry-after')).toBe('0.02')
    expect(await ask('503-always', cell)).toMatchObject({ status: 503, endings: ['error'], wrong: [] })
  })

  test('what fails for a while is healthy then, for each caller by itself', async () => {
    const statuses = async (model: string, caller: string) => [
      (await ask(model, cell, caller)).status,
      (await ask(model, cell, caller)).status,
      (await ask(model, cell, caller)).status,
    ]
    expect(await statuses('500-once', 'one')).toEqual([500, 200, 200])
    expect(await statuses('500-once', 'other')).toEqual([500, 200, 200])
    expect(await statuses('500-once~suffix', 'one')).toEqual([500, 200, 200])
    expect(await statuses('503-2-times', 'one')).toEqual([503, 503, 200])
  })

  test('a connection that is reset has no response', async () => {
    expect(await ask('reset-before-headers', cell)).toMatchObject({ status: 0, text: '' })
  })

  test('waits last as long as the factor says', async () => {
    const seen = await ask('first-token-after-20s', cell)
    expect(seen.text).toBe(wholeText)
    expect(seen.ms).toBeGreaterThan(195)
    expect((await ask('silent-12s', cell)).ms).toBeGreaterThan(115)
  })

  test('a response that has a status of success may have an error', async () => {
    const seen = await ask('error-first', cell)
    expect(seen).toMatchObject({ status: 200, text: '' })
    if (cell.stream) expect(seen).toMatchObject({ endings: ['error'], error: { message: 'Overloaded' } })
  })
})

describe.each(apis)('a stream of $name', (api) => {
  const stream = (model: string) => ask(model, { api, stream: true, name: api.name })

  test('breaks after so many tokens', async () => {
    const { text, endings, wrong } = await stream('cut-after-40')
    expect([text.split(' ').at(-1), endings]).toEqual(['w40', []])
    expect(wrong).toEqual([expect.stringMatching('broke off')])
    expect(await stream('ends-after-3')).toMatchObject({ text: 'w1 w2 w3', endings: [], wrong: [] })
    expect(await stream('cut-after-0')).toMatchObject({ status: 200, text: '' })
  })

  test('has a damaged event', async () => {
    const { text, wrong } = await stream('bad-json-at-10')
    expect(text.split(' ')).toHaveLength(59)
    expect(wrong[0]).toMatch(/not JSON|of the type undefined/)
  })

  test('has an error after some text', async () => {
    expect(await stream('error-after-2')).toMatchObject({ text: 'w1 w2', endings: ['error'] })
  })

  test('lacks its terminator, or finishes twice', async () => {
    const unterminated = await stream('no-done')
    expect(unterminated.text).toBe(wholeText)
    expect(unterminated.endings[0]).toBe('finish')
    const twice = await stream('double-finish')
    expect(twice.endings.filter((ending) => ending === 'finish')).toHaveLength(2)
  })

  test('is another document', async () => {
    const types = async (model: string) => (await stream(model)).headers.get('content-type')
    expect(await types('json-for-stream')).toBe('application/json')
    expect(await types('events-as-json')).toBe('application/json')
    expect(await types('events-as-text')).toBe('text/plain')
  })
})

test('every model that is listed behaves in some way', async () => {
  const { models } = (await (await fetch(`${simulator.url}/wall`)).json()) as { models: { name: string }[] }
  expect(models.map(({ name }) => name)).toEqual(faults.map(({ name }) => name))
  const named = models.map(({ name }) =>
    name
      .replace(/\[.*\]/, '')
      .replace('<status>', '500')
      .replace(/<\w+>/g, '1'),
  )
  const quick = named.filter((name) => !/^silent-after|and-open$/.test(name))
  const statuses = await Promise.all(quick.map(async (name) => (await ask(name, grid[0], name)).status))
  expect(quick.filter((_, index) => statuses[index] === 404)).toEqual([])
  expect((await ask('nonsense')).status).toBe(404)
})

test('goes on from a text of the assistant, unless it refuses to', async () => {
  const messages = [
    { role: 'user', content: 'Count.' },
    { role: 'assistant', content: 'w1 w2' },
  ]
  const post = async (model: string) => {
    const body = JSON.stringify({ model, messages, max_tokens: 3 })
    const response = await fetch(`${simulator.url}/v1/messages`, { method: 'POST', body })
    // biome-ignore lint/suspicious/noExplicitAny: a reply of the simulator.
    return { status: response.status, body: (await response.json()) as any }
  }
  const { body } = await post('ok')
  expect(body).toMatchObject({ content: [{ text: ' w3 w4 w5' }], stop_reason: 'max_tokens' })
  expect(body.usage).toMatchObject({ input_tokens: 27, output_tokens: 3 })
  expect((await post('refuses-prefill')).status).toBe(400)
})

test('a model is down for a while after its first request, or when it is told so', async () => {
  expect((await ask('down-for-10s')).status).toBe(0)
  await pause(110)
  expect((await ask('down-for-10s')).status).toBe(200)
  const down = (model: string, seconds: number) =>
    fetch(`${simulator.url}/wall/down`, { method: 'POST', body: JSON.stringify({ model, seconds }) })
  expect((await ask('ok~victim')).status).toBe(200)
  expect((await down('ok~victim', 100)).status).toBe(200)
  expect((await ask('ok~victim')).status).toBe(0)
  expect((await ask('ok~other')).status).toBe(200)
  await down('ok~victim', 0)
  expect((await ask('ok~victim')).status).toBe(200)
  expect((await fetch(`${simulator.url}/wall/down`, { method: 'POST', body: '{}' })).status).toBe(400)
})

test('a kept connection is reset when it is used again, a fresh one is not', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const post = () =>
    new Promise<number | string | undefined>((resolve) => {
      const sent = request(`${simulator.url}/v1/messages`, { method: 'POST', agent }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode))
      })
      sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
      sent.end(JSON.stringify({ model: 'reset-idle-connections', messages: [] }))
    })
  expect([await post(), await post(), await post()]).toEqual([200, 'ECONNRESET', 200])
  agent.destroy()
})

test('requests are remembered by model, by name and by caller, with who ended them, until they are forgotten', async () => {
  await ask('ok~a', grid[0], 'one')
  await ask('ok~b', grid[1], 'two')
  await ask('cut-after-40', grid[0], 'one')
  const leaving = new AbortController()
  const body = JSON.stringify({ model: 'silent-after-20', stream: true, messages: [] })
  const left = await fetch(`${simulator.url}/v1/messages`, { method: 'POST', body, signal: leaving.signal })
  await left.body?.getReader().read()
  leaving.abort()
  const listed = async (query = '') => {
    const response = await fetch(`${simulator.url}/wall/requests${query}`)
    // biome-ignore lint/suspicious/noExplicitAny: entries as JSON.
    return (await response.json()) as { count: number; requests: any[] }
  }
  await eventually(async () => {
    const { requests } = await listed()
    expect(requests.map(({ target, endedBy }) => [target, endedBy])).toEqual([
      ['ok~a', 'simulator'],
      ['ok~b', 'simulator'],
      ['cut-after-40', 'simulator'],
      ['silent-after-20', 'gateway'],
    ])
  })
  expect((await listed('?model=ok')).count).toBe(2)
  expect((await listed('?target=ok~a')).requests).toMatchObject([
    { stream: true, caller: 'one', body: { model: 'ok~a' } },
  ])
  expect((await listed('?caller=one')).count).toBe(2)
  await fetch(`${simulator.url}/wall/requests`, { method: 'DELETE' })
  expect((await listed()).count).toBe(0)
})

test('listens at several addresses, and counts for all of them', async () => {
  const other = await simulator.listen()
  expect(other).not.toBe(simulator.url)
  const url = `${other}/v1/chat/completions`
  expect((await fetch(url, { method: 'POST', body: JSON.stringify({ model: 'ok', messages: [] }) })).status).toBe(200)
  expect(simulator.journal.entries({ model: 'ok' })).toHaveLength(1)
})
