import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Timeouts } from '../../src/manifest/provider.ts'
import { LoopStalls } from '../../src/upstream/http/deadlines.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import type { HttpClient } from '../../src/upstream/http/types.ts'

const patient: Timeouts = {
  connectMs: 60_000,
  firstEventMs: 60_000,
  betweenEventsMs: 60_000,
  wholeMs: 60_000,
  totalMs: 60_000,
}

/** A provider in a thread of its own, so that it goes on while the loop of this one stands still. */
const provider = String.raw`
  const { parentPort } = require('node:worker_threads')
  const { createServer } = require('node:net')
  const server = createServer((socket) => {
    let idle
    socket.on('error', () => {}).on('data', (bytes) => {
      clearTimeout(idle)
      const answer = () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
        // As servers do, without a word about when.
        idle = setTimeout(() => socket.end(), 200)
      }
      if (/"late"/.test(bytes)) parentPort.once('message', answer)
      else answer()
    })
  })
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

const opened: { httpClient?: HttpClient; worker?: Worker } = {}

afterEach(async () => {
  await opened.httpClient?.close()
  await opened.worker?.terminate()
})

async function open(timeouts: Partial<Timeouts> = {}) {
  const worker = new Worker(provider, { eval: true })
  const httpClient = openHttpClient()
  Object.assign(opened, { worker, httpClient })
  const [port] = await once(worker, 'message')
  return async (body: string) => {
    const response = await httpClient.send({
      url: `http://127.0.0.1:${port}/`,
      headers: { 'content-type': 'application/json' },
      body,
      timeouts: { ...patient, ...timeouts },
      signal: new AbortController().signal,
      provider: 'acme',
    })
    let text = ''
    for await (const chunk of response.bytes) text += Buffer.from(chunk).toString('utf8')
    return text
  }
}

function holdLoop(ms: number): void {
  const begun = performance.now()
  while (performance.now() - begun < ms);
}

describe('the time in which a loop stood still', () => {
  /** A loop whose timers run when they are told to, by a clock that goes on all the same. */
  function openLoop() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    let now = 1_000
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
    const stalls = new LoopStalls()
    const tick = (ms: number) => {
      now += ms
      vi.advanceTimersByTime(250)
    }
    const hold = (ms: number) => {
      now += ms
    }
    onTestFinished(() => {
      stalls.stop()
      clock.mockRestore()
      vi.useRealTimers()
    })
    return { stalls, tick, hold }
  }

  test('is none while its timers are in time, or a little late, however long it runs', () => {
    const { stalls, tick } = openLoop()
    for (let at = 0; at < 2_000; at++) {
      tick(at % 2 === 0 ? 250 : 450)
      expect(stalls.totalMs).toBe(0)
      expect(stalls.catchingUp).toBeUndefined()
    }
  })

  test('is that of all stalls together, each counted once', () => {
    const { stalls, tick, hold } = openLoop()
    let total = 0
    for (const ms of [500, 2_000, 700, 60_000]) {
      tick(250)
      // Until the next tick is due it is not late.
      hold(250 + ms)
      total += ms
      expect(stalls.totalMs).toBe(total)
      expect(stalls.totalMs).toBe(total)
      tick(0)
      for (let at = 0; at < 5; at++) tick(250)
      expect(stalls.totalMs).toBe(total)
    }
  })

  test('is caught up with once all that waited has been read', async () => {
    const { stalls, tick, hold } = openLoop()
    for (let round = 0; round < 3; round++) {
      tick(250)
      hold(1_000)
      const { catchingUp } = stalls
      expect(catchingUp).toBeInstanceOf(Promise)
      await catchingUp
      expect(stalls.catchingUp).toBeUndefined()
    }
  })
})

test('a connection that the provider closed while the loop stood still is not used', async () => {
  const send = await open()
  expect(await send('{}')).toBe('ok')
  // The first one after a connection is idle is looked at by undici's own timers: the loop stands still before they run.
  holdLoop(1_500)
  expect(await send('{}')).toBe('ok')
})

test('time in which the loop stood still is not the provider’s', async () => {
  const send = await open({ firstEventMs: 1_500 })
  expect(await send('{}')).toBe('ok')
  const sent = send('"late"')
  await pause(100)
  holdLoop(2_000)
  // The limits are looked at before the answer comes.
  await pause(100)
  opened.worker?.postMessage('answer')
  expect(await sent).toBe('ok')
})
