import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { CallRecord } from '../../../src/core/call.ts'
import type { JsonObject } from '../../../src/core/json.ts'
import { noLimits } from '../../../src/store/keys.ts'
import { pause, within } from '../../helpers/provider.ts'
import { eventually, limit } from '../../helpers/time.ts'
import { newKey } from './budget-world.ts'
import {
  billOf,
  endpoints,
  type Format,
  formats,
  type HiddenWorld,
  openHiddenWorld,
  promptTokens,
  requestIn,
  words,
  writeText,
  writeUsage,
  writeWhole,
} from './hidden-usage-world.ts'

// A model that thinks bills far more than its client sees: what a call costs must not depend on when its client leaves.

const thought = 20_000
const names = Object.keys(formats) as Format[]
const pairs = names.flatMap((api) => names.map((slug) => [api, slug] as const))
const searches = (api: Format, slug = api) => (slug === 'responses' && api === 'responses' ? 1 : 0)
const tools = (api: Format, slug = api): JsonObject =>
  searches(api, slug) > 0 ? { tools: [{ type: 'web_search' }] } : {}

let world: HiddenWorld
beforeAll(async () => {
  world = await openHiddenWorld({
    policies: {
      restart: { targets: ['chat/m1', 'second/m1'], on_cut: 'restart' },
      hold: { targets: ['chat/m1'], on_cut: 'hold' },
      short: { targets: ['chat/m1'], total: '600ms' },
    },
  })
})
afterAll(() => world?.close())

/** A world that only this test has. */
async function own(settings: object): Promise<HiddenWorld> {
  const opened = await openHiddenWorld(settings)
  onTestFinished(() => opened.close())
  return opened
}

/** Providers send their text at once, and the usage when the test says so. */
function untilReleased({ answer }: HiddenWorld, hidden = thought) {
  const released = Promise.withResolvers<void>()
  answer(async (received, response) => {
    const isStream = received.body.stream === true
    if (isStream) writeText(received, response)
    await released.promise
    if (isStream) writeUsage(received, response, hidden)
    else writeWhole(received, response, hidden)
  })
  return released.resolve
}

/** Reads the events of an answer up to the words that a client sees last. */
async function readWords(response: Response): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
  const text = new TextDecoder()
  for (let read = ''; !read.includes(words); ) {
    const { done, value } = await within(10_000, 'the text', reader.read())
    if (done) throw new Error(`an answer without its text: ${read}`)
    read += text.decode(value, { stream: true })
  }
  return reader
}

/** Makes a streamed call, and leaves when its text has come. */
async function leaveAfterText(
  { post }: HiddenWorld,
  path: string,
  body: JsonObject,
  { secret }: { secret: string },
): Promise<void> {
  const leaving = new AbortController()
  const reader = await readWords(await post(path, body, secret, { signal: leaving.signal }))
  leaving.abort()
  await reader.read().catch(() => {})
}

const remainingOf = ({ provider }: HiddenWorld) => provider.received[0]?.left ?? Promise.reject(new Error('no request'))

describe('a client that leaves after the text pays what the provider bills', () => {
  test.each(pairs)('%s client, %s provider: it closes', async (api, slug) => {
    const key = await newKey(world.store)
    const release = untilReleased(world)
    await leaveAfterText(world, endpoints[api], requestIn(api, `${slug}/m1`, tools(api, slug)), key)
    await pause(50)
    release()
    const [row] = await world.rows(key.id)
    expect(row?.cost).toMatchObject({ nanoUsd: billOf(thought, searches(api, slug)) })
    expect(row?.cost.estimated).toBeUndefined()
    expect(row?.durationMs).toBeLessThan(limit(9_000))
  })

  test.each(pairs)('%s client, %s provider: its x-router-timeout passes', async (api, slug) => {
    const key = await newKey(world.store)
    const release = untilReleased(world)
    const headers = { 'x-router-timeout': '600ms' }
    const body = requestIn(api, `${slug}/m1`, tools(api, slug))
    const text = await (await world.post(endpoints[api], body, key.secret, { headers })).text()
    expect(text).toContain(words)
    expect(text).toContain('did not finish within')
    expect(await world.rowsOf(key.id)).toEqual([])
    release()
    const [row] = await world.rows(key.id)
    expect(row).toMatchObject({ outcome: 'partial', status: 502, error: 'provider_timeout' })
    expect(row?.cost).toMatchObject({ nanoUsd: billOf(thought, searches(api, slug)) })
    expect(row?.cost.estimated).toBeUndefined()
  })

  test('the time that a policy gives the call passes', async () => {
    const key = await newKey(world.store)
    const release = untilReleased(world)
    await (await world.post(endpoints.chat, requestIn('chat', 'policy/short'), key.secret)).text()
    release()
    expect((await world.rows(key.id))[0]?.cost.nanoUsd).toBe(billOf(thought))
  })

  test('also where a client that leaves before the first byte pays nothing', async () => {
    const alone = await own({ budget: { abandoned: 'nothing' } })
    const key = await newKey(alone.store)
    const release = untilReleased(alone)
    await leaveAfterText(alone, endpoints.chat, requestIn('chat', 'chat/m1'), key)
    await pause(50)
    release()
    expect((await alone.rows(key.id))[0]?.cost.nanoUsd).toBe(billOf(thought))
  })
})

describe('a client that leaves before the first byte pays what the provider bills', () => {
  const operations: [what: string, path: string, body: JsonObject][] = [
    ['a whole reply', endpoints.chat, requestIn('chat', 'chat/m1', { stream: false })],
    ['a whole message', endpoints.messages, requestIn('messages', 'messages/m1', { stream: false })],
    ['a stream that is held back', endpoints.chat, requestIn('chat', 'policy/hold')],
    ['a compacted conversation', '/v1/responses/compact', { model: 'responses/m1', input: 'Think about it.' }],
    [
      'a decision by a chat model',
      '/v1/decisions',
      {
        model: 'chat/m1',
        input: 'My payouts fail.',
        questions: [{ type: 'predicate', name: 'urgent', instructions: 'Is it urgent?' }],
      },
    ],
  ]

  test.each(operations)('%s: it closes', async (_, path, body) => {
    const key = await newKey(world.store)
    const release = untilReleased(world)
    const leaving = new AbortController()
    const gone = world.post(path, body, key.secret, { signal: leaving.signal }).catch(() => {})
    await eventually(() => expect(world.provider.received).toHaveLength(1))
    leaving.abort()
    await gone
    await pause(50)
    release()
    const [row] = await world.rows(key.id)
    expect(row?.cost.nanoUsd).toBe(billOf(thought))
    expect(row?.cost.estimated).toBeUndefined()
  })

  test.each(operations)('%s: its x-router-timeout passes', async (_, path, body) => {
    const key = await newKey(world.store)
    const release = untilReleased(world)
    const headers = { 'x-router-timeout': '300ms' }
    const response = await world.post(path, body, key.secret, { headers })
    expect(await response.text()).toContain('did not finish within')
    expect(await world.rowsOf(key.id)).toEqual([])
    release()
    const [row] = await world.rows(key.id)
    expect(row).toMatchObject({ outcome: 'failed', status: 502 })
    expect(row?.cost.nanoUsd).toBe(billOf(thought))
  })

  test('a stream whose first content comes after it has left', async () => {
    const key = await newKey(world.store)
    const released = Promise.withResolvers<void>()
    world.answer(async (received, response) => {
      await released.promise
      writeText(received, response)
      writeUsage(received, response, thought)
    })
    const headers = { 'x-router-timeout': '200ms' }
    const response = await world.post(endpoints.chat, requestIn('chat', 'chat/m1'), key.secret, { headers })
    expect(response.status).toBe(502)
    await response.text()
    released.resolve()
    const [row] = await world.rows(key.id)
    expect(row?.cost.nanoUsd).toBe(billOf(thought))
  })

  test('with `abandoned: nothing` it pays nothing, and the provider is left at once', async () => {
    const alone = await own({ budget: { abandoned: 'nothing' } })
    for (const stream of [false, true]) {
      const key = await newKey(alone.store)
      alone.answer(() => {})
      const headers = { 'x-router-timeout': '200ms' }
      await (await alone.post(endpoints.chat, requestIn('chat', 'chat/m1', { stream }), key.secret, { headers })).text()
      await within(2_000, 'leaving the provider', remainingOf(alone))
      expect((await alone.rows(key.id))[0]?.cost.nanoUsd).toBe(0)
    }
  })
})

describe('where the provider sends no usage in time', () => {
  const never = async () => {
    const alone = await own({ budget: { wait_for_usage: '400ms' } })
    untilReleased(alone)
    return alone
  }

  test.each(names)('%s: what is likely is charged, and the search that was reported', async (slug) => {
    const alone = await never()
    const key = await newKey(alone.store)
    await leaveAfterText(alone, endpoints[slug], requestIn(slug, `${slug}/m1`, tools(slug)), key)
    await within(5_000, 'leaving the provider', remainingOf(alone))
    const [row] = await alone.rows(key.id)
    expect(row?.cost.estimated).toBe(true)
    // A hundred tokens a second, since the attempt began.
    const { durationMs = 0, usage } = row ?? {}
    expect(usage?.output).toBeGreaterThanOrEqual(35)
    expect(usage?.output).toBeLessThanOrEqual(durationMs / 10 + 1)
    expect(usage?.searches ?? 0).toBe(searches(slug))
  })

  test('at most what is reserved is charged, with no limit passed', async () => {
    const alone = await never()
    const key = await newKey(alone.store, { monthlyLimitNano: 2_000_000n })
    const body = requestIn('chat', 'chat/m1', { max_tokens: 10 })
    await leaveAfterText(alone, endpoints.chat, body, key)
    const [row] = await alone.rows(key.id)
    expect(row?.usage.output).toBeLessThanOrEqual(10)
    expect(row?.cost.estimated).toBe(true)
  })

  test('a client that leaves before the first byte pays its prompt and what is likely', async () => {
    const alone = await never()
    const key = await newKey(alone.store)
    const headers = { 'x-router-timeout': '200ms' }
    const body = requestIn('chat', 'chat/m1', { stream: false })
    await (await alone.post(endpoints.chat, body, key.secret, { headers })).text()
    const [row] = await alone.rows(key.id)
    expect(row?.cost.estimated).toBe(true)
    expect(row?.usage.input).toBeGreaterThan(0)
    expect(row?.usage.output).toBeGreaterThanOrEqual(55)
  })

  test('the measured speed of the model decides what is likely', async () => {
    const alone = await never()
    const key = await newKey(alone.store)
    // At least 1,000 tokens a second: 20,003 within so many seconds, waiting included.
    alone.answer((received, response) => writeWhole(received, response, thought))
    const body = requestIn('chat', 'chat/m1', { stream: false })
    expect((await alone.post(endpoints.chat, body, key.secret)).status).toBe(200)
    untilReleased(alone)
    await leaveAfterText(alone, endpoints.chat, requestIn('chat', 'chat/m1'), key)
    const row = (await alone.rows(key.id, 2)).find(({ outcome }) => outcome === 'partial')
    expect(row?.usage.output).toBeGreaterThan(2 * ((row?.durationMs ?? 0) / 10))
    expect(row?.usage.output).toBeLessThanOrEqual(30_000)
  })
})

describe('a stream that its provider cuts', () => {
  const cutAfter = (ms: number, slug = 'chat') =>
    world.answer(async (received, response) => {
      writeText(received, response)
      await pause(ms)
      if (received.path.startsWith(`/${slug}/`)) response.destroy()
      else writeUsage(received, response, thought)
    })

  test('costs what a model that thinks has likely used', async () => {
    const key = await newKey(world.store)
    cutAfter(500)
    await (await world.post(endpoints.chat, requestIn('chat', 'chat/m1'), key.secret)).text()
    const [row] = await world.rows(key.id)
    expect(row).toMatchObject({ outcome: 'partial', error: 'provider_cut', cost: { estimated: true } })
    expect(row?.usage.output).toBeGreaterThanOrEqual(49)
  })

  test('costs the search that it reported', async () => {
    const key = await newKey(world.store)
    cutAfter(0, 'responses')
    const body = requestIn('responses', 'responses/plain', tools('responses'))
    await (await world.post(endpoints.responses, body, key.secret)).text()
    const [row] = await world.rows(key.id)
    expect(row?.usage.searches).toBe(1)
    expect(row?.cost.nanoUsd).toBeGreaterThan(10_000_000)
  })

  test('costs that also where another target goes on with it', async () => {
    const key = await newKey(world.store)
    cutAfter(500)
    const text = await (await world.post(endpoints.chat, requestIn('chat', 'policy/restart'), key.secret)).text()
    expect(text).toContain('[DONE]')
    const rows = await world.rows(key.id, 2)
    const cut = rows.find(({ attemptOf }) => attemptOf !== undefined)
    expect(cut?.usage.output).toBeGreaterThanOrEqual(49)
    expect(cut?.cost.estimated).toBe(true)
    const served = rows.find(({ attemptOf }) => attemptOf === undefined)
    expect(served?.cost.nanoUsd).toBe(billOf(thought))
  })
})

describe('an attempt that is given up for another target', () => {
  /** The first provider sends its text, and its usage when the test says so; the second one answers at once. */
  async function stalled(settings: object = {}) {
    const alone = await own({
      policies: { restart: { targets: ['chat/m1', 'second/m1'], on_cut: 'restart' } },
      providers: { chat: { timeouts: { between_events: '300ms' } } },
      ...settings,
    })
    const released = Promise.withResolvers<void>()
    alone.answer(async (received, response) => {
      writeText(received, response)
      if (received.path.startsWith('/chat/')) await released.promise
      writeUsage(received, response, thought)
    })
    const call = async ({ secret }: { secret: string }) =>
      (await alone.post(endpoints.chat, requestIn('chat', 'policy/restart'), secret)).text()
    return { alone, call, release: released.resolve }
  }
  const cutOf = (rows: CallRecord[]) => rows.find(({ attemptOf }) => attemptOf !== undefined)

  test('is read on while the call goes on, and charged by its own count', async () => {
    const { alone, call, release } = await stalled()
    const key = await newKey(alone.store, { limits: { ...noLimits, concurrentCalls: 1 } })
    expect(await call(key)).toContain('[DONE]')
    expect(await alone.rowsOf(key.id)).toMatchObject([{ outcome: 'complete', cost: { nanoUsd: billOf(thought) } }])
    // Until then it holds its place.
    expect((await alone.post(endpoints.chat, requestIn('chat', 'second/m1'), key.secret)).status).toBe(429)
    release()
    const cut = cutOf(await alone.rows(key.id, 2))
    expect(cut).toMatchObject({ outcome: 'partial', error: 'provider_timeout', cost: { nanoUsd: billOf(thought) } })
    expect(cut?.cost.estimated).toBeUndefined()
    expect(await alone.store.spend.ofKey(key.id, Date.now())).toBe(2n * BigInt(billOf(thought)))
    await eventually(async () => expect(await call(key)).toContain('[DONE]'))
  })

  test('is charged by an estimate when its provider has sent no usage in time', async () => {
    const { alone, call } = await stalled({ budget: { wait_for_usage: '400ms' } })
    const key = await newKey(alone.store)
    await call(key)
    const cut = cutOf(await alone.rows(key.id, 2))
    expect(cut?.cost.estimated).toBe(true)
    expect(cut?.usage.output).toBeGreaterThanOrEqual(65)
  })

  test('is left at once where its money cannot be held beside that of the next one, and no limit is passed', async () => {
    const { alone, call } = await stalled()
    const limit = 300_000_000n
    const key = await newKey(alone.store, { monthlyLimitNano: limit })
    expect(await call(key)).toContain('[DONE]')
    const cut = cutOf(await alone.rows(key.id, 2))
    expect(cut?.cost.estimated).toBe(true)
    expect(await alone.store.spend.ofKey(key.id, Date.now())).toBeLessThanOrEqual(limit)
  })

  test('holds its money beside that of the next one where it fits', async () => {
    const { alone, call, release } = await stalled()
    const key = await newKey(alone.store, { monthlyLimitNano: 500_000_000n })
    expect(await call(key)).toContain('[DONE]')
    const another = () => alone.post(endpoints.chat, requestIn('chat', 'second/m1'), key.secret)
    expect((await another()).status).toBe(402)
    release()
    await alone.rows(key.id, 2)
    expect(await alone.store.spend.ofKey(key.id, Date.now())).toBe(2n * BigInt(billOf(thought)))
  })
})

describe('where the client sees all that is used', () => {
  const seen: [what: string, model: string, more: JsonObject][] = [
    ['a model that does not think', 'chat/plain', {}],
    ['a model that was not asked to think', 'messages/asked', {}],
  ]
  test.each(seen)('%s: the provider is left at once, and what was transferred is charged', async (_, model, more) => {
    const key = await newKey(world.store)
    untilReleased(world)
    const api = model.startsWith('chat') ? 'chat' : 'messages'
    await leaveAfterText(world, endpoints[api], requestIn(api, model, more), key)
    await within(2_000, 'leaving the provider', remainingOf(world))
    const [row] = await world.rows(key.id)
    expect(row?.usage.output).toBe(3)
    expect(row?.cost.estimated).toBe(true)
  })

  test('a model that was asked to think hides usage', async () => {
    const key = await newKey(world.store)
    const release = untilReleased(world)
    const thinking = { thinking: { type: 'enabled', budget_tokens: 20_000 } }
    await leaveAfterText(world, endpoints.messages, requestIn('messages', 'messages/asked', thinking), key)
    await pause(50)
    release()
    expect((await world.rows(key.id))[0]?.cost.nanoUsd).toBe(billOf(thought))
  })
})

describe('while the provider is read for its usage', () => {
  const begun = async (alone: HiddenWorld, limits: object = {}) => {
    const key = await newKey(alone.store, { limits: { ...noLimits, ...limits } })
    const release = untilReleased(alone)
    await leaveAfterText(alone, endpoints.chat, requestIn('chat', 'chat/m1'), key)
    return { key, release }
  }

  test('the call keeps its place among those of its key', async () => {
    const { key, release } = await begun(world, { concurrentCalls: 1 })
    const again = () => world.post(endpoints.chat, requestIn('chat', 'chat/m1', { stream: false }), key.secret)
    expect((await again()).status).toBe(429)
    release()
    await world.rows(key.id)
    expect((await again()).status).toBe(200)
  })

  test('the call keeps its place at its target', async () => {
    const alone = await own({ providers: { chat: { limits: { concurrent: 1, queue: 0 } } } })
    const { key, release } = await begun(alone)
    const again = () => alone.post(endpoints.chat, requestIn('chat', 'chat/m1', { stream: false }), key.secret)
    expect((await again()).status).toBe(429)
    release()
    await alone.rows(key.id)
    await eventually(async () => expect((await again()).status).toBe(200))
  })

  test('a key that leaves all its calls keeps no other key waiting, and pays all of them', async () => {
    const limits = { concurrent: 3, queue: 0 }
    const alone = await own({ server: { host: '127.0.0.1', port: 0, threads: 1, limits } })
    const leaver = await newKey(alone.store)
    const other = await newKey(alone.store)
    const release = untilReleased(alone)
    for (let count = 0; count < 3; count++)
      await leaveAfterText(alone, endpoints.chat, requestIn('chat', 'chat/m1'), leaver)
    const call = async ({ secret }: { secret: string }) => {
      const leaving = new AbortController()
      const response = await alone.post(endpoints.chat, requestIn('chat', 'chat/m1'), secret, {
        signal: leaving.signal,
      })
      leaving.abort()
      return response.status
    }
    // Its own calls find no place.
    expect(await call(leaver)).toBe(429)
    await eventually(async () => expect(await call(other)).toBe(200))
    release()
    const rows = await alone.rows(leaver.id, 3)
    expect(rows.map(({ cost }) => [cost.nanoUsd, cost.estimated])).toEqual(Array(3).fill([billOf(thought), undefined]))
  })

  test('its reservation stays', async () => {
    const { key, release } = await begun(world)
    const limited = await newKey(world.store, { monthlyLimitNano: 300_000_000n })
    const release2 = untilReleased(world)
    await leaveAfterText(world, endpoints.chat, requestIn('chat', 'chat/m1'), limited)
    const again = await world.post(endpoints.chat, requestIn('chat', 'chat/m1'), limited.secret)
    expect(again.status).toBe(402)
    await again.text()
    release()
    release2()
    await world.rows(key.id)
    await world.rows(limited.id)
  })

  test('a router that stops waits for it, and settles it', async () => {
    const alone = await openHiddenWorld()
    onTestFinished(() => alone.provider.close())
    const { key, release } = await begun(alone)
    const stopping = alone.router.stop(limit(8_000))
    let hasStopped = false
    void stopping.then(() => {
      hasStopped = true
    })
    await pause(200)
    expect(hasStopped).toBe(false)
    release()
    await within(5_000, 'stopping', stopping)
    expect((await alone.rowsOf(key.id))[0]?.cost.nanoUsd).toBe(billOf(thought))
    await alone.store.close()
    await alone.router.end()
  })

  test('a router that must stop before the usage is there charges what is likely', async () => {
    const alone = await openHiddenWorld()
    onTestFinished(() => alone.provider.close())
    const { key } = await begun(alone)
    await within(4_000, 'stopping', alone.router.stop(300))
    expect((await alone.rowsOf(key.id))[0]?.cost.estimated).toBe(true)
    await alone.store.close()
    await alone.router.end()
  })
})

test('usage that comes seconds after the finish reason is charged to a client that stays', async () => {
  const key = await newKey(world.store)
  world.answer(async (received, response) => {
    writeText(received, response)
    response.write(
      `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`,
    )
    await pause(2_500)
    writeUsage(received, response, thought)
  })
  await (await world.post(endpoints.chat, requestIn('chat', 'chat/m1'), key.secret)).text()
  const [row] = await world.rows(key.id)
  expect(row).toMatchObject({ outcome: 'complete', usage: { input: promptTokens, reasoning: thought } })
})
