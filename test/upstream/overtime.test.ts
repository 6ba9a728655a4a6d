import { afterEach, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import { Overtime } from '../../src/upstream/http/overtime.ts'
import type { HttpClient, HttpResponse } from '../../src/upstream/http/types.ts'
import { beginStream, type LoopbackProvider, loopbackProvider, within } from '../helpers/provider.ts'

const timeouts = { connectMs: 60_000, firstEventMs: 60_000, betweenEventsMs: 60_000, wholeMs: 60_000, totalMs: 60_000 }
const opened: { httpClient?: HttpClient; provider?: LoopbackProvider } = {}

afterEach(async () => {
  await opened.provider?.close()
  await opened.httpClient?.close()
})

const gone = () => new RouterError('client_gone', 'The client disconnected.')

/** An answer of which the beginning has come, and whose rest comes when it is released. */
async function begun({ ms, totalMs = 60_000 }: { ms: number; totalMs?: number }) {
  const released = Promise.withResolvers<void>()
  opened.provider = await loopbackProvider(async (_, response) => {
    beginStream(response)
    response.write('first')
    await released.promise
    response.end('last')
  })
  opened.httpClient = openHttpClient()
  const [client, process] = [new AbortController(), new AbortController()]
  const overtime = new Overtime(ms, process.signal)
  const { bytes }: HttpResponse = await opened.httpClient.send({
    url: opened.provider.url,
    headers: { 'content-type': 'application/json' },
    body: '{}',
    timeouts: { ...timeouts, totalMs },
    signal: client.signal,
    provider: 'acme',
    overtime,
  })
  const reader = bytes[Symbol.asyncIterator]()
  const next = async () => Buffer.from((await within(5_000, 'a chunk', reader.next())).value ?? []).toString()
  expect(await next()).toBe('first')
  return { overtime, next, client, process, release: released.resolve, left: opened.provider.received[0]?.left }
}

test('after the client has left, the wait for an answer ends at once, and the answer is read on', async () => {
  const { overtime, next, client, release } = await begun({ ms: 10_000 })
  const reading = next()
  const waiting = overtime.unlessOver(reading)
  client.abort(gone())
  await expect(within(2_000, 'the wait', waiting)).rejects.toMatchObject({ code: 'client_gone' })
  expect(overtime.isOpen).toBe(true)
  release()
  expect(await reading).toBe('last')
  expect(await next()).toBe('')
  expect(overtime.isOpen).toBe(false)
})

test('after a time limit as well', async () => {
  const { overtime, next, release } = await begun({ ms: 10_000, totalMs: 100 })
  const reading = next()
  await expect(within(2_000, 'the wait', overtime.unlessOver(reading))).rejects.toMatchObject({
    code: 'provider_timeout',
  })
  release()
  expect(await reading).toBe('last')
})

test('the connection is closed when the overtime is over', async () => {
  const { next, client, left } = await begun({ ms: 100 })
  client.abort(gone())
  await expect(next()).rejects.toMatchObject({ code: 'client_gone' })
  await within(2_000, 'leaving the provider', left as Promise<void>)
})

test('the connection is closed when the overtime is cancelled', async () => {
  const { overtime, next, client } = await begun({ ms: 10_000 })
  client.abort(gone())
  overtime.cancel()
  await expect(next()).rejects.toMatchObject({ code: 'client_gone' })
  expect(overtime.isOpen).toBe(false)
})

test('the connection is closed when the process stops, and no overtime begins from then on', async () => {
  const { next, client, process } = await begun({ ms: 10_000 })
  client.abort(gone())
  process.abort()
  await expect(next()).rejects.toMatchObject({ code: 'client_gone' })
  expect(new Overtime(10_000, process.signal).begin(gone(), () => {})).toBe(false)
})

test('an answer that has ended has no overtime', async () => {
  const { overtime, next, release } = await begun({ ms: 10_000 })
  release()
  expect(await next()).toBe('last')
  expect(await next()).toBe('')
  overtime.start(gone())
  expect(overtime.isOpen).toBe(false)
})

test('a request that is not sent yet is ended at once', async () => {
  opened.httpClient = openHttpClient()
  const client = new AbortController()
  client.abort(gone())
  const overtime = new Overtime(10_000, new AbortController().signal)
  const sent = opened.httpClient.send({
    ...{ url: 'http://127.0.0.1:1', headers: {}, body: '{}', timeouts, signal: client.signal, provider: 'acme' },
    overtime,
  })
  await expect(sent).rejects.toMatchObject({ code: 'client_gone' })
  expect(overtime.isOpen).toBe(false)
})
