import { afterEach, expect, test } from 'vitest'
import { RouterError } from '../../src/core/errors.ts'
import type { Timeouts } from '../../src/manifest/provider.ts'
import { type HttpClient, type HttpResponse, openHttpClient } from '../../src/upstream/http-client.ts'
import { beginStream, type LoopbackProvider, loopbackProvider, within } from '../helpers/provider.ts'

const patient: Timeouts = { connectMs: 60_000, firstEventMs: 60_000, betweenEventsMs: 60_000, totalMs: 60_000 }
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
