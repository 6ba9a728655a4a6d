import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { Response } from '../../src/http/app.ts'
import { type StreamedBody, sendBody } from '../../src/http/bodies/response-body.ts'
import type { ServerContext } from '../../src/http/context.ts'
import { RunningRequests } from '../../src/http/running-requests.ts'
import { eventually } from '../helpers/time.ts'

/** A server that answers everything with this body; what became of each answer. */
async function serving(answer: () => StreamedBody, patienceMs = 60_000) {
  const running = new RunningRequests()
  const context = {
    running,
    clientTimeoutMs: () => patienceMs,
    clientMinRate: () => 0,
    log: pino({ level: 'silent' }),
  } as unknown as ServerContext
  const ended: ('sent' | 'thrown')[] = []
  const server = createServer((_, response) => {
    const own = running.begin(response)
    const sent = sendBody(Object.assign(response, { locals: {} }) as unknown as Response, answer(), {
      own,
      context,
      isHead: false,
    })
    void sent
      .then(
        () => ended.push('sent'),
        () => ended.push('thrown'),
      )
      .finally(() => running.end(own))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, running, ended }
}

/** Pieces that are counted; `left` when nobody wants more. */
function pieces(next: (count: number) => Promise<IteratorResult<string, void>> | IteratorResult<string, void>) {
  const seen = { asked: 0, left: 0 }
  const body: StreamedBody['body'] = {
    next: async () => await next(++seen.asked),
    async return() {
      seen.left++
      return { done: true, value: undefined }
    },
  }
  return { body, seen }
}

const done = { done: true, value: undefined } as const
const large = 'x'.repeat(100_000)

describe('a body that is sent piece by piece', () => {
  test('comes whole', async () => {
    const { body, seen } = pieces((count) => (count > 3 ? done : { done: false, value: `${count} ` }))
    const { url, ended } = await serving(() => ({ body, mediaType: 'text/csv' }))
    const response = await fetch(url)
    expect([response.headers.get('content-type'), await response.text()]).toEqual(['text/csv', '1 2 3 '])
    await eventually(() => expect([ended, seen.left]).toEqual([['sent'], 1]))
  })

  test('is cut off where it breaks, and an error before its first piece is thrown', async () => {
    const fail = (at: number) =>
      pieces((count) => {
        if (count === at) throw new RouterError('unavailable', 'The database is gone.')
        return { done: false, value: 'x' }
      })
    const late = await serving(() => ({ body: fail(3).body }))
    await expect(fetch(late.url).then((response) => response.text())).rejects.toThrow()
    const early = await serving(() => ({ body: fail(1).body }))
    void fetch(early.url).catch(() => {})
    await eventually(() => expect([late.ended, early.ended]).toEqual([['sent'], ['thrown']]))
  })

  test('is made no faster than the client reads it, and for none that has left', async () => {
    const { body, seen } = pieces(() => ({ done: false, value: large }))
    const { url, ended } = await serving(() => ({ body, mediaType: 'text/csv' }))
    const response = await new Promise<IncomingMessage>((resolve) => get(url, resolve))
    response.pause()
    let before = -1
    // Until the buffers of both sides are full.
    await eventually(async () => {
      const now = seen.asked
      const isFull = now === before
      before = now
      await new Promise((resolve) => setTimeout(resolve, 30))
      expect(isFull).toBe(true)
    })
    expect(seen.asked).toBeLessThan(200)
    response.destroy()
    await eventually(() => expect([ended.length, seen.left]).toEqual([1, 1]))
    expect(seen.asked).toBeLessThanOrEqual(before + 1)
  })

  test('ends for a client that reads nothing for too long', async () => {
    const { body, seen } = pieces(() => ({ done: false, value: large }))
    const { url } = await serving(() => ({ body, mediaType: 'text/csv' }), 100)
    const response = await new Promise<IncomingMessage>((resolve) => get(url, resolve))
    response.on('error', () => {}).pause()
    await eventually(() => expect(seen.left).toBe(1))
  })

  test('ends at once when endless ones must, and is cut off when all must', async () => {
    const never = () => pieces((count) => (count === 1 ? { done: false, value: 'x' } : new Promise(() => {})))
    const [live, table] = [never(), never()]
    const endless = await serving(() => ({ body: live.body, endless: true }))
    const limited = await serving(() => ({ body: table.body }))
    const [first, second] = await Promise.all([fetch(endless.url), fetch(limited.url)])
    endless.running.endEndless()
    limited.running.endEndless()
    expect(await first.text()).toBe('x')
    const cut = expect(second.text()).rejects.toThrow()
    limited.running.abortAll()
    await cut
    await eventually(() => expect([live.seen.left, table.seen.left]).toEqual([1, 1]))
    const later = await fetch(endless.url)
    expect(await later.text()).toBe('')
  })
})
