import type { Dispatcher } from 'undici'
import { describe, expect, test } from 'vitest'
import type { Timeouts } from '../../src/manifest/provider.ts'
import type { Deadlines } from '../../src/upstream/http/deadlines.ts'
import { Exchange } from '../../src/upstream/http/exchange.ts'
import type { HttpRequest } from '../../src/upstream/http/types.ts'

const patient: Timeouts = {
  connectMs: 1e6,
  firstEventMs: 1e6,
  betweenEventsMs: 1e6,
  wholeMs: 1e6,
  totalMs: 1e6,
}
const stepMs = 10
const tooLate = (message: string) => expect.objectContaining({ code: 'provider_timeout', message })

/** An exchange whose clock is moved by hand, and the connection that it has. */
function openExchange(timeouts: Partial<Timeouts>, request: Partial<HttpRequest> = {}) {
  const clock = { now: 0, add() {}, delete() {} }
  const { signal } = new AbortController()
  const facts = { signal, provider: 'acme', ...request, timeouts: { ...patient, ...timeouts } }
  const exchange = new Exchange(facts, clock as unknown as Deadlines)
  const connection = { paused: false, resumed: 0, aborted: undefined as unknown }
  const controller = {
    get paused() {
      return connection.paused
    },
    pause() {
      connection.paused = true
    },
    resume() {
      connection.paused = false
      connection.resumed++
    },
    abort(reason: unknown) {
      connection.aborted = reason
    },
  } as unknown as Dispatcher.DispatchController
  const dispatcher = { dispatch: () => exchange.onRequestStart(controller) } as unknown as Dispatcher
  const head = exchange.begin(dispatcher, { path: '/', method: 'POST' })
  head.catch(() => {})
  return {
    exchange,
    connection,
    head,
    /** Lets time go by, with a look at the limits after every step. A silence counts from the first look that finds the reader waiting. */
    pass(ms: number) {
      for (const end = clock.now + ms; clock.now < end; ) {
        clock.now += stepMs
        exchange.checkLimits(clock.now)
      }
    },
    answer: () => exchange.onResponseStart(controller, 200, {}),
    send: (bytes: number | string) =>
      exchange.onResponseData(controller, typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.alloc(bytes)),
  }
}

describe('silence in the middle of a response', () => {
  const limits = { betweenEventsMs: 100 }

  test('is one gap: short ones do not add up, however many there are', async () => {
    const { exchange, pass, answer, send, connection } = openExchange(limits, { untilContent: true })
    answer()
    for (let event = 0; event < 20; event++) {
      const read = exchange.next()
      pass(90)
      send('x')
      expect(await read).toMatchObject({ done: false })
      exchange.progressed()
    }
    expect(connection.aborted).toBeUndefined()
    const read = exchange.next()
    pass(100 + stepMs)
    await expect(read).rejects.toEqual(tooLate('The provider sent nothing more for 100 ms.'))
  })

  test('ends with any byte where no content is waited for', async () => {
    const { exchange, pass, answer, send, connection } = openExchange(limits)
    answer()
    for (let event = 0; event < 20; event++) {
      const read = exchange.next()
      pass(90)
      send('x')
      expect(await read).toMatchObject({ done: false })
    }
    expect(connection.aborted).toBeUndefined()
  })

  test('goes on through bytes that are no content', async () => {
    const { exchange, pass, answer, send } = openExchange(limits, { untilContent: true })
    answer()
    exchange.progressed()
    const alive = exchange.next()
    pass(60)
    send(': still here\n\n')
    expect(await alive).toMatchObject({ done: false })
    const read = exchange.next()
    pass(70)
    await expect(read).rejects.toEqual(tooLate('The provider sent nothing more for 100 ms.'))
  })

  test('does not contain the time in which nobody reads', async () => {
    const { exchange, pass, answer, send, connection } = openExchange(limits, { untilContent: true })
    answer()
    exchange.progressed()
    for (const ms of [40, 50]) {
      const read = exchange.next()
      pass(ms)
      send(': still here\n\n')
      expect(await read).toMatchObject({ done: false })
      pass(1_000)
    }
    expect(connection.aborted).toBeUndefined()
    const read = exchange.next()
    pass(50)
    await expect(read).rejects.toEqual(tooLate('The provider sent nothing more for 100 ms.'))
  })

  test('begins with the content: what comes before has the limit of the first', async () => {
    const { exchange, pass, answer, send, connection } = openExchange(
      { ...limits, firstEventMs: 500 },
      { untilContent: true },
    )
    answer()
    for (let at = 0; at < 4; at++) {
      const read = exchange.next()
      pass(120)
      send(': still here\n\n')
      await read
    }
    expect(connection.aborted).toBeUndefined()
    pass(20)
    await expect(exchange.next()).rejects.toEqual(tooLate('The provider sent no content within 500 ms.'))
  })
})

test('the total limit holds for a response that never falls silent', async () => {
  const { exchange, pass, answer, send, connection } = openExchange({ betweenEventsMs: 100, totalMs: 1_000 })
  answer()
  for (let event = 0; event < 11; event++) {
    const read = exchange.next()
    pass(90)
    send('x')
    await read
  }
  expect(connection.aborted).toBeUndefined()
  const read = exchange.next()
  pass(10)
  await expect(read).rejects.toEqual(tooLate('The provider did not finish within 1000 ms.'))
})

test('what came before the connection broke is read before the error, as one piece', async () => {
  const { exchange, answer, send } = openExchange({})
  answer()
  send('data: 1\n\n')
  send('data: 2\n\n')
  exchange.onResponseError(null, Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }))
  const { value } = await exchange.next()
  expect(Buffer.from(value ?? []).toString()).toBe('data: 1\n\ndata: 2\n\n')
  const failure = { code: 'provider_cut', provider: 'acme', message: 'The connection to the provider broke.' }
  await expect(exchange.next()).rejects.toMatchObject(failure)
})

describe('a provider', () => {
  test('that is read as fast as it sends is never made to wait, however long its response', async () => {
    const { exchange, answer, send, connection } = openExchange({})
    answer()
    for (let chunk = 0; chunk < 40; chunk++) {
      send(10_000)
      expect((await exchange.next()).value).toHaveLength(10_000)
    }
    expect(connection).toMatchObject({ paused: false, resumed: 0 })
  })

  test('waits whenever 64 KiB are unread, and goes on once they are fewer', async () => {
    const { exchange, answer, send, connection } = openExchange({})
    answer()
    for (let round = 0; round < 5; round++) {
      for (let chunk = 0; chunk < 3; chunk++) send(16 * 1024)
      expect(connection).toMatchObject({ paused: false, resumed: round })
      send(16 * 1024)
      expect(connection).toMatchObject({ paused: true, resumed: round })
      expect((await exchange.next()).value).toHaveLength(16 * 1024)
      expect(connection).toMatchObject({ paused: false, resumed: round + 1 })
      for (let chunk = 0; chunk < 3; chunk++) await exchange.next()
    }
  })

  test('may take each piece of a body as long as the limit, and its reader any time', async () => {
    const { exchange, pass, connection } = openExchange({ betweenEventsMs: 100, firstEventMs: 50 })
    async function* made() {
      for (let piece = 0; piece < 20; piece++) {
        // The file is slow.
        pass(500)
        yield Buffer.from('x')
      }
    }
    const body = exchange.sending(made())
    for (let next = await body.next(); !next.done; next = await body.next()) {
      // The connection is.
      pass(90)
    }
    expect(connection.aborted).toBeUndefined()
    exchange.onRequestSent()
    pass(40)
    expect(connection.aborted).toBeUndefined()
    pass(10)
    expect(connection.aborted).toEqual(tooLate('The provider sent nothing within 50 ms.'))
  })

  test('that takes nothing of a later piece is given up', async () => {
    const { exchange, pass, head } = openExchange({ betweenEventsMs: 100 })
    const body = exchange.sending(Buffer.alloc(200 * 1024))
    for (let piece = 0; piece < 3; piece++) {
      expect((await body.next()).value).toHaveLength(64 * 1024)
      if (piece < 2) pass(90)
    }
    pass(100)
    await expect(head).rejects.toEqual(tooLate('The provider accepted no part of the request for 100 ms.'))
  })
})
