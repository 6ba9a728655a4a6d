import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import type { HttpResponse } from '../../src/upstream/http/types.ts'
import { readStream } from '../../src/upstream/provider-stream.ts'
import type { StreamFrame } from '../../src/upstream/stream-frames.ts'

const bounds = { bytes: 1e7, eventBytes: 1e6, values: 1e6 }
/** More events in a row than this make others wait. */
const mostInOneTurn = 1_000

/** A provider whose every event is mapped by this function. */
function providerOf(map: (input: unknown) => unknown): Provider {
  const stream = { path: '/chat', format: 'sse', data: 'json', done: '[DONE]' }
  const chat = { stream, events: new Map([['*', { run: map }]]), patch: {} }
  return { slug: 'maker', auth: { scheme: 'none' }, headers: {}, traits: [], errors: {}, chat } as unknown as Provider
}

/** A response whose chunks, of so many events each, are all there already. */
function responseOf(chunks: readonly number[]): HttpResponse {
  const event = 'data: {"text":"x"}\n\n'
  async function* bytes() {
    for (const events of chunks) yield Buffer.from(event.repeat(events))
    yield Buffer.from('data: [DONE]\n\n')
  }
  return { status: 200, headers: {}, bytes: bytes(), progressed() {}, discard() {} } as unknown as HttpResponse
}

/** Reads it all. Returns the number of events, how many of them were mapped without a turn of the event loop for others, and those turns. */
async function readAll(chunks: readonly number[]): Promise<{ events: number; inOneTurn: number; turns: number }> {
  let [events, inOneTurn, sinceTurn, turns] = [0, 0, 0, 0]
  const map = (input: unknown) => {
    sinceTurn += 1
    inOneTurn = Math.max(inOneTurn, sinceTurn)
    return input
  }
  let turn: NodeJS.Immediate
  const others = () => {
    sinceTurn = 0
    turns += 1
    turn = setImmediate(others)
  }
  turn = setImmediate(others)
  const { batches } = await readStream({ model: 'm', provider: providerOf(map) }, responseOf(chunks), { bounds })
  for await (const batch of batches) for (const { payload } of batch) if (payload) events += 1
  clearImmediate(turn)
  return { events, inOneTurn, turns }
}

test('events that come at once, in one chunk or many, leave others their turns', async () => {
  const chunks = fc.oneof(
    fc.integer({ min: 3_000, max: 9_000 }).map((events) => [events]),
    fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 60, maxLength: 100 }),
    fc.constant(Array<number>(4_000).fill(1)),
  )
  const property = fc.asyncProperty(chunks, async (sizes) => {
    const { events, inOneTurn, turns } = await readAll(sizes)
    expect(events).toBe(sizes.reduce((sum, size) => sum + size, 0))
    expect(inOneTurn).toBeLessThanOrEqual(mostInOneTurn)
    // They are left now and then, not after every event: that would take longer than the events.
    expect(turns).toBeLessThanOrEqual(10 + events / 100)
  })
  await fc.assert(property, { numRuns: 12 })
})

test('an event that stands for thousands is given on in steps, and its payload once, with the last', async () => {
  const all = Array.from({ length: 9_500 }, (_, at) => ({ text: 'x', at }))
  let turns = 0
  let turn: NodeJS.Immediate
  const others = () => {
    turns += 1
    turn = setImmediate(others)
  }
  turn = setImmediate(others)
  const { batches } = await readStream({ model: 'm', provider: providerOf(() => all) }, responseOf([1]), { bounds })
  const steps: StreamFrame[][] = []
  for await (const batch of batches) steps.push(batch)
  clearImmediate(turn)
  expect(Math.max(...steps.map((batch) => batch.flatMap(({ events }) => events).length))).toBeLessThanOrEqual(
    mostInOneTurn,
  )
  expect(turns).toBeGreaterThanOrEqual(9)
  const frames = steps.flat()
  expect(frames.flatMap(({ events }) => events).filter(({ done }) => !done)).toEqual(all)
  expect(frames.flatMap(({ payload }, index) => (payload ? index : []))).toEqual([9])
})

describe('after the finish reason', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  /** A stream whose events come when they are sent; its connection breaks when it is discarded. */
  async function openStream() {
    const arriving = new PassThrough()
    const state = { isDiscarded: false }
    const response = {
      status: 200,
      headers: {},
      bytes: arriving,
      progressed() {},
      discard() {
        state.isDiscarded = true
        arriving.destroy(new RouterError('provider_cut', 'The connection broke.', { provider: 'maker' }))
      },
    } as unknown as HttpResponse
    const send = (event: object | string) =>
      arriving.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`)
    send({ text: 'a' })
    const { batches } = await readStream({ model: 'm', provider: providerOf((input) => input) }, response, { bounds })
    const reader = batches[Symbol.asyncIterator]()
    await reader.next()
    const next = async () => {
      const { value }: { value?: StreamFrame[] } = await reader.next()
      return value?.flatMap(({ events }) => events)
    }
    return { state, send, next, end: () => arriving.end() }
  }

  test('content ends the wait for counts and the end: what comes later is read as well', async () => {
    const { state, send, next, end } = await openStream()
    for (const text of ['b', 'c', 'd']) {
      send({ finish: 'stop' })
      expect(await next()).toEqual([{ finish: 'stop' }])
      vi.advanceTimersByTime(1_500)
      send({ text })
      expect(await next()).toEqual([{ text }])
    }
    vi.advanceTimersByTime(60_000)
    expect(state.isDiscarded).toBe(false)
    send({ finish: 'stop' })
    expect(await next()).toEqual([{ finish: 'stop' }])
    end()
    expect(await next()).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a provider has two seconds for counts and the end, then its connection is closed', async () => {
    const { state, send, next } = await openStream()
    send({ finish: 'stop' })
    await next()
    vi.advanceTimersByTime(1_900)
    const usage = { output: 3 }
    send({ usage })
    expect(await next()).toEqual([{ usage }])
    expect(state.isDiscarded).toBe(false)
    vi.advanceTimersByTime(100)
    expect(state.isDiscarded).toBe(true)
    expect(await next()).toBeUndefined()
  })

  test('a second finish reason begins no second wait', async () => {
    const { state, send, next, end } = await openStream()
    send({ finish: 'stop' })
    await next()
    vi.advanceTimersByTime(1_500)
    send({ finish: 'stop' })
    await next()
    expect(vi.getTimerCount()).toBe(1)
    end()
    expect(await next()).toBeUndefined()
    expect([state.isDiscarded, vi.getTimerCount()]).toEqual([false, 0])
  })

  test('and the end marker the connection is read to its end, or closed when it stays open', async () => {
    for (const ends of [true, false]) {
      const { state, send, next, end } = await openStream()
      send({ finish: 'stop' })
      send('[DONE]')
      expect(await next()).toEqual([{ finish: 'stop' }, { done: true }])
      const last = next()
      await vi.advanceTimersByTimeAsync(49)
      expect(state.isDiscarded).toBe(false)
      if (ends) end()
      else await vi.advanceTimersByTimeAsync(1)
      expect(await last).toBeUndefined()
      expect([state.isDiscarded, vi.getTimerCount()]).toEqual([!ends, 0])
    }
  })
})
