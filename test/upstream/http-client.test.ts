import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { Timeouts } from '../../src/manifest/provider.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import type { HttpClient, HttpResponse } from '../../src/upstream/http/types.ts'
import { beginStream, type LoopbackProvider, loopbackProvider, within } from '../helpers/provider.ts'
import { eventually } from '../helpers/time.ts'

const patient: Timeouts = {
  connectMs: 60_000,
  firstEventMs: 60_000,
  betweenEventsMs: 60_000,
  wholeMs: 60_000,
  totalMs: 60_000,
}
const opened: { httpClient?: HttpClient; provider?: LoopbackProvider } = {}

afterEach(async () => {
  await opened.provider?.close()
  await opened.httpClient?.close()
})

async function knock(
  answer: Parameters<typeof loopbackProvider>[0],
  timeouts: Partial<Timeouts> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<HttpResponse> {
  opened.provider = await loopbackProvider(answer)
  opened.httpClient = openHttpClient()
  const { url } = opened.provider
  return await opened.httpClient.send({
    url,
    headers: { 'content-type': 'application/json' },
    body: '{}',
    timeouts: { ...patient, ...timeouts },
    signal,
    provider: 'acme',
  })
}

async function readAll({ bytes }: HttpResponse): Promise<string> {
  let text = ''
  for await (const chunk of bytes) text += Buffer.from(chunk).toString('utf8')
  return text
}

const failure = (code: string) => expect.objectContaining({ code, provider: 'acme' })

test('a provider that sends nothing at all is given up after the first-event limit', async () => {
  const sent = within(
    5_000,
    'the limit',
    knock(() => {}, { firstEventMs: 100 }),
  )
  await expect(sent).rejects.toEqual(failure('provider_timeout'))
})

test('a provider that falls silent in the middle is given up after the between-events limit', async () => {
  const incoming = await knock(
    (_, response) => {
      beginStream(response)
      response.write('data: 1\n\n')
    },
    { betweenEventsMs: 100 },
  )
  await expect(within(5_000, 'the limit', readAll(incoming))).rejects.toEqual(failure('provider_timeout'))
})

test('a provider that never finishes is given up after the total limit', async () => {
  const incoming = await knock(
    (_, response) => {
      beginStream(response)
      const timer = setInterval(() => response.write('data: 1\n\n'), 20)
      response.on('close', () => clearInterval(timer))
    },
    { totalMs: 200 },
  )
  await expect(within(5_000, 'the limit', readAll(incoming))).rejects.toEqual(failure('provider_timeout'))
})

test('a connection that breaks in the middle is a cut, one that cannot be made is unreachable', async () => {
  const incoming = await knock((_, response) => {
    beginStream(response)
    response.write('data: 1\n\n', () => response.destroy())
  })
  await expect(readAll(incoming)).rejects.toEqual(failure('provider_cut'))
  const url = 'http://127.0.0.1:1'
  const refused = opened.httpClient?.send({
    url,
    headers: {},
    body: '',
    timeouts: patient,
    signal: AbortSignal.any([]),
    provider: 'acme',
  })
  await expect(refused).rejects.toEqual(failure('provider_unreachable'))
})

test('a client that leaves stops the provider within a second', async () => {
  const client = new AbortController()
  const incoming = await knock(
    (_, response) => {
      beginStream(response)
      response.write('data: 1\n\n')
    },
    {},
    client.signal,
  )
  const reading = readAll(incoming)
  client.abort(new RouterError('client_gone', 'The client disconnected.'))
  await expect(reading).rejects.toMatchObject({ code: 'client_gone' })
  await within(5_000, 'closing the provider request', opened.provider?.received[0]?.left ?? Promise.reject())
})

test('a provider waits for a slow reader, whose time is not its own', async () => {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const chunks = 400
  let written = 0
  const { bytes } = await knock(
    async (_, response) => {
      beginStream(response)
      for (; written < chunks; written++) if (!response.write(chunk)) await once(response, 'drain')
      response.end()
    },
    { betweenEventsMs: 150 },
  )
  const reader = bytes[Symbol.asyncIterator]()
  let length = (await reader.next()).value?.length ?? 0
  // Until the buffers of both sides are full, and then for longer than the provider may be silent.
  let before = -1
  await eventually(async () => {
    const isFull = written === before
    before = written
    await pause(200)
    expect(isFull).toBe(true)
  })
  expect(written).toBeLessThan(chunks)
  for (let next = await reader.next(); !next.done; next = await reader.next()) length += next.value.length
  expect(length).toBe(chunks * chunk.length)
})

test('a reader that has enough closes the connection', async () => {
  const { bytes } = await knock((_, response) => {
    beginStream(response)
    response.write('data: 1\n\n')
  })
  for await (const _ of bytes) break
  await within(5_000, 'closing the provider request', opened.provider?.received[0]?.left ?? Promise.reject())
})

test('a client that leaves while the connection is being made is not waited for', async () => {
  // Accepts connections, and says nothing of TLS.
  const silent = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void silent.close())
  await once(silent, 'listening')
  const client = new AbortController()
  opened.httpClient = openHttpClient()
  silent.on('connection', () => client.abort(new RouterError('client_gone', 'The client disconnected.')))
  const { port } = silent.address() as AddressInfo
  const url = `https://127.0.0.1:${port}/`
  const sent = opened.httpClient.send({
    url,
    headers: {},
    body: '{}',
    timeouts: { ...patient, connectMs: 500 },
    signal: client.signal,
    provider: 'acme',
  })
  await expect(within(5_000, 'the client', sent)).rejects.toMatchObject({ code: 'client_gone' })
})

test('an address that is no URL is unreachable', async () => {
  opened.httpClient = openHttpClient()
  for (const url of ['nowhere', 'http://', 'ftp://127.0.0.1/x']) {
    const sent = opened.httpClient.send({
      url,
      headers: {},
      body: '{}',
      timeouts: patient,
      signal: new AbortController().signal,
      provider: 'acme',
    })
    await expect(sent).rejects.toEqual(failure('provider_unreachable'))
  }
})
