import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { Timeouts } from '../../src/manifest/provider.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import type { HttpRequest } from '../../src/upstream/http/types.ts'
import { within } from '../helpers/provider.ts'
import { eventually } from '../helpers/time.ts'

const patient: Timeouts = {
  connectMs: 60_000,
  firstEventMs: 60_000,
  betweenEventsMs: 60_000,
  wholeMs: 60_000,
  totalMs: 60_000,
}
const piece = Buffer.alloc(256 * 1024, 'x')
const failure = (code: string) => expect.objectContaining({ code, provider: 'acme' })

/** A provider that gets each request before its body. */
async function provider(answer: (incoming: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

async function send(url: string, outgoing: Partial<HttpRequest>, timeouts: Partial<Timeouts> = {}) {
  const httpClient = openHttpClient()
  onTestFinished(() => httpClient.close())
  const { signal } = new AbortController()
  const request = { url, headers: {}, signal, provider: 'acme', ...outgoing, timeouts: { ...patient, ...timeouts } }
  return await within(20_000, 'the response', httpClient.send(request))
}

/** A body of so many pieces: how many were taken, and whether its reader has let go of it. */
function bodyOf(count: number, everyMs = 0) {
  const state = { taken: 0, isClosed: false }
  async function* made() {
    try {
      for (; state.taken < count; state.taken++) {
        if (everyMs > 0) await pause(everyMs)
        yield piece
      }
    } finally {
      state.isClosed = true
    }
  }
  return { body: made(), length: count * piece.length, state }
}

async function lengthOf(incoming: IncomingMessage): Promise<number> {
  let length = 0
  for await (const chunk of incoming) length += chunk.length
  return length
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Answers with the method, the framing and the length of what came. */
async function describe(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const { 'content-length': length, 'transfer-encoding': coding } = incoming.headers
  response.end(JSON.stringify([incoming.method, length ?? coding ?? null, await lengthOf(incoming)]))
}

test.each<[what: string, outgoing: () => Partial<HttpRequest>, came: unknown[]]>([
  ['a text', () => ({ body: 'ż' }), ['POST', '2', 2]],
  ['bytes', () => ({ body: Buffer.alloc(300_000) }), ['POST', '300000', 300_000]],
  ['no bytes', () => ({ body: new Uint8Array() }), ['POST', '0', 0]],
  ['pieces', () => bodyOf(3), ['POST', String(3 * piece.length), 3 * piece.length]],
  ['pieces of no known length', () => ({ body: bodyOf(3).body }), ['POST', 'chunked', 3 * piece.length]],
  ['no pieces', () => bodyOf(0), ['POST', '0', 0]],
  ['nothing', () => ({ method: 'GET' }), ['GET', null, 0]],
  ['nothing to delete', () => ({ method: 'DELETE' }), ['DELETE', null, 0]],
])('%s', async (_, outgoing, came) => {
  const url = await provider(describe)
  for (let time = 0; time < 2; time++) {
    const { bytes } = await send(url, outgoing())
    expect(JSON.parse(await textOf(bytes))).toEqual(came)
  }
})

test('pieces are made as the provider takes them', async () => {
  const { body, length, state } = bodyOf(400)
  let takenBefore = 0
  const url = await provider(async (incoming, response) => {
    // Until the buffers of both sides are full.
    do {
      takenBefore = state.taken
      await pause(50)
    } while (takenBefore < state.taken || takenBefore === 0)
    response.end(String(await lengthOf(incoming)))
  })
  let isSent = false
  const { bytes } = await send(url, {
    body,
    length,
    onSent: () => {
      isSent = true
      expect(state.taken).toBe(400)
    },
  })
  expect(await textOf(bytes)).toBe(String(length))
  expect([isSent, state.isClosed]).toEqual([true, true])
  expect(takenBefore).toBeLessThan(200)
})

test('a provider that does not take a body is given up after the between-events limit', async () => {
  const { body, length, state } = bodyOf(400)
  const url = await provider(() => {})
  await expect(send(url, { body, length }, { betweenEventsMs: 200 })).rejects.toEqual(failure('provider_timeout'))
  await eventually(() => expect(state.isClosed).toBe(true))
})

test('a long upload is none of the time until the first event, nor is a slow file the fault of the provider', async () => {
  const { body, length } = bodyOf(6, 100)
  const url = await provider(describe)
  const { status } = await send(url, { body, length }, { firstEventMs: 250, betweenEventsMs: 60 })
  expect(status).toBe(200)
})

test('the time until the first event counts from the end of an upload', async () => {
  const url = await provider((incoming) => void incoming.resume())
  const sent = send(url, bodyOf(4, 100), { firstEventMs: 200 })
  await expect(sent).rejects.toMatchObject({ code: 'provider_timeout', message: expect.stringContaining('200 ms') })
})

test('the total limit holds for an upload', async () => {
  const { body, length, state } = bodyOf(1_000, 20)
  const url = await provider((incoming) => void incoming.resume())
  await expect(send(url, { body, length }, { totalMs: 200 })).rejects.toEqual(failure('provider_timeout'))
  await eventually(() => expect(state.isClosed).toBe(true))
})

test('a client that leaves ends the upload, and lets go of the file', async () => {
  const { body, length, state } = bodyOf(400)
  const client = new AbortController()
  const closed = Promise.withResolvers<void>()
  const url = await provider((incoming) => {
    incoming.once('data', () => client.abort(new RouterError('client_gone', 'The client disconnected.')))
    incoming.on('close', () => closed.resolve())
  })
  const sent = send(url, { body, length, signal: client.signal })
  await expect(sent).rejects.toMatchObject({ code: 'client_gone' })
  await within(5_000, 'closing the connection', closed.promise)
  await eventually(() => expect(state.isClosed).toBe(true))
})

test('a client that has left has sent nothing', async () => {
  const { body, length, state } = bodyOf(4)
  const url = await provider(describe)
  const signal = AbortSignal.abort(new RouterError('client_gone', 'The client disconnected.'))
  await expect(send(url, { body, length, signal })).rejects.toMatchObject({ code: 'client_gone' })
  expect(state.taken).toBe(0)
})

test('a provider may refuse before it has the whole body', async () => {
  const { body, length, state } = bodyOf(400)
  const url = await provider((_, response) => void response.writeHead(413).end('too large'))
  const { status, bytes } = await send(url, { body, length })
  expect([status, await textOf(bytes)]).toEqual([413, 'too large'])
  await eventually(() => expect(state.isClosed).toBe(true))
  expect(state.taken).toBeLessThan(200)
})

test('a provider that closes the connection in the middle could not be reached', async () => {
  const { body, length, state } = bodyOf(400)
  const url = await provider((incoming) => void incoming.once('data', () => incoming.socket.destroy()))
  await expect(send(url, { body, length })).rejects.toEqual(failure('provider_unreachable'))
  await eventually(() => expect(state.isClosed).toBe(true))
})

test('a file that cannot be read is not the fault of the provider', async () => {
  const error = new RouterError('unavailable', 'The server could not store an uploaded file.')
  async function* broken() {
    yield piece
    throw error
  }
  const url = await provider((incoming) => void incoming.resume())
  await expect(send(url, { body: broken(), length: 2 * piece.length })).rejects.toBe(error)
})

test.each([1, 3])('a body that is not as long as it was said to be is not sent', async (pieces) => {
  const url = await provider(describe)
  const sent = send(url, { body: bodyOf(pieces).body, length: 2 * piece.length })
  await expect(sent).rejects.toEqual(failure('provider_unreachable'))
})
