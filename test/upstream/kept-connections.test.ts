import { createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import type { HttpClient } from '../../src/upstream/http/types.ts'

const timeouts = { connectMs: 5_000, firstEventMs: 5_000, betweenEventsMs: 5_000, wholeMs: 5_000, totalMs: 5_000 }

/** A provider that answers the first requests of each connection, and closes it at the next one, cleanly or by a reset. */
async function provider(answers: number, how: 'end' | 'reset') {
  const seen: number[] = []
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    const connection = sockets.push(socket) - 1
    let requests = 0
    socket.on('error', () => {})
    socket.on('data', (data) => {
      if (!data.includes('POST')) return
      seen.push(connection)
      if (requests++ < answers) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')
      else if (how === 'end') socket.end()
      else socket.resetAndDestroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  return { seen, url: `http://127.0.0.1:${port}/` }
}

function client(): HttpClient {
  const opened = openHttpClient()
  onTestFinished(() => opened.close())
  return opened
}

async function ask(httpClient: HttpClient, url: string, more: { once?: boolean } = {}): Promise<number> {
  const { signal } = new AbortController()
  const sent = { url, headers: {}, body: '{}', timeouts, signal, provider: 'acme', ...more }
  const { status, bytes } = await httpClient.send(sent)
  for await (const _ of bytes);
  // Only then a connection can be used again.
  await pause(20)
  return status
}

test.each(['end', 'reset'] as const)('a kept connection that the provider closed (%s) costs no call', async (how) => {
  const { seen, url } = await provider(1, how)
  const httpClient = client()
  for (const _ of Array(3)) expect(await ask(httpClient, url)).toBe(200)
  // The second request is sent again on a fresh connection, which is not kept.
  expect(seen).toEqual([0, 0, 1, 2])
})

test('all kept connections that are reset at once cost no call', async () => {
  const { url } = await provider(1, 'reset')
  const httpClient = client()
  const twenty = () => Promise.all(Array.from({ length: 20 }, () => ask(httpClient, url)))
  expect(await twenty()).toEqual(Array(20).fill(200))
  expect(await twenty()).toEqual(Array(20).fill(200))
})

test.each(['end', 'reset'] as const)('a fresh connection that is closed (%s) is a failure', async (how) => {
  const { seen, url } = await provider(0, how)
  await expect(ask(client(), url)).rejects.toMatchObject({ code: 'provider_unreachable' })
  expect(seen).toEqual([0])
})

test('what must not be done twice is not sent again', async () => {
  const { seen, url } = await provider(1, 'reset')
  const httpClient = client()
  await ask(httpClient, url)
  await expect(ask(httpClient, url, { once: true })).rejects.toMatchObject({ code: 'provider_unreachable' })
  expect(seen).toEqual([0, 0])
})
