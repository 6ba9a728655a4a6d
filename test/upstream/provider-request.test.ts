import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Provider } from '../../src/manifest/provider.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import { bytesBody, formBody, multipartBody, type OutgoingBody } from '../../src/upstream/outgoing-body.ts'
import { type OutgoingRequest, sendRequest, urlOf } from '../../src/upstream/provider-request.ts'
import { expectedAuthorization, type Seen } from './aws-verify.ts'

const provider = { slug: 'acme', baseUrl: 'https://acme.test/v1/' } as Provider

test.each([
  ['/models/{model}:run', 'm1', 'https://acme.test/v1/models/m1:run'],
  ['/models/{model}:run', 'owner/m 1', 'https://acme.test/v1/models/owner%2Fm%201:run'],
  ['/models/{+model}/predictions', 'owner/m 1', 'https://acme.test/v1/models/owner/m%201/predictions'],
  ['/models/{+model}/predictions', 'owner/a?b#c', 'https://acme.test/v1/models/owner/a%3Fb%23c/predictions'],
  ['/models/{model}', '$&', 'https://acme.test/v1/models/%24%26'],
  ['/chat', '..', 'https://acme.test/v1/chat'],
  ['/models/{model}/x', 'v1..2', 'https://acme.test/v1/models/v1..2/x'],
])('the path %s for the model %s', (path, model, url) => {
  expect(urlOf(provider, path, model)).toBe(url)
})

test.each([
  ['/models/{model}/run', '..'],
  ['/models/{model}/run', '.'],
  ['/models/{+model}/run', '../admin'],
  ['/models/{+model}/run', 'owner/../../admin'],
  ['/models/{+model}/run', 'owner/.'],
  ['/models/{+model}/run', '/admin'],
])('no model leads out of the path %s: %s', (path, model) => {
  expect(() => urlOf(provider, path, model)).toThrow(
    expect.objectContaining({ code: 'model_not_found', param: 'model' }),
  )
})

describe('a request', () => {
  /** What a provider with this base path and these changes gets. */
  async function sent(outgoing: Partial<OutgoingRequest>, changes: object = {}) {
    const came: { method?: string; url?: string; headers: Record<string, unknown>; body: string }[] = []
    const server = createServer(async (incoming, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of incoming) chunks.push(chunk)
      const { method = '', url = '', headers } = incoming
      came.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      response.end('{}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const httpClient = openHttpClient()
    onTestFinished(async () => {
      await httpClient.close()
      server.close()
    })
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const timeouts = { connectMs: 5_000, firstEventMs: 5_000, betweenEventsMs: 5_000, wholeMs: 5_000, totalMs: 5_000 }
    const full = { slug: 'acme', baseUrl: `${origin}/v1`, auth: { scheme: 'none' }, headers: {}, errors: {}, timeouts }
    const target = { model: 'm', provider: { ...full, ...changes } as unknown as Provider }
    const { signal } = new AbortController()
    const path = outgoing.hosts ? `${origin}/v2/jobs/1?a=b#c` : '/x/{model}'
    const response = await sendRequest(target, { path, accept: '*/*', signal, ...outgoing }, httpClient)
    response.discard()
    return came[0] as (typeof came)[number]
  }

  const file = {
    mediaType: 'audio/mpeg',
    size: 100_000,
    async *read() {
      for (let at = 0; at < 10; at++) yield Buffer.alloc(10_000, 'x')
    },
  }

  test('of JSON is a POST', async () => {
    const { method, url, headers, body } = await sent({ body: { cut: '\ud83d', bytes: 1 } })
    expect([method, url, headers['content-type'], body]).toEqual([
      'POST',
      '/v1/x/m',
      'application/json',
      '{"cut":"\ufffd","bytes":1}',
    ])
  })

  test('of JSON too long for one step arrives whole, with its length', async () => {
    const body = { text: '"ż🙂\ud83d'.repeat(200_000), list: Array.from({ length: 50_000 }, (_, at) => `n${at}`) }
    const came = await sent({ body })
    expect(JSON.parse(came.body)).toEqual({ ...body, text: body.text.toWellFormed() })
    expect(came.headers['content-length']).toBe(String(Buffer.byteLength(came.body)))
    expect(came.headers).not.toHaveProperty('transfer-encoding')
  })

  test.each<[what: string, body: OutgoingBody, type: RegExp, length: number]>([
    ['a form', formBody([['a', 'b']]), /^application\/x-www-form-urlencoded$/, 3],
    ['a file', bytesBody(file), /^audio\/mpeg$/, 100_000],
    [
      'a form with a file',
      multipartBody([{ ...file, name: 'f', filename: 'f' }]),
      /^multipart\/form-data; bound/,
      100_000,
    ],
  ])('of %s has its type and its length, whatever the manifest declares', async (_, body, type, length) => {
    const {
      method,
      headers,
      body: came,
    } = await sent({ body }, { headers: { 'Content-Type': 'text/json', 'X-Own': '1' } })
    expect([method, headers['x-own'], Number(headers['content-length'])]).toEqual(['POST', '1', came.length])
    expect(headers['content-type']).toMatch(type)
    expect(came.length).toBeGreaterThanOrEqual(length)
  })

  test.each(['GET', 'DELETE'] as const)('to %s has no body', async (method) => {
    const { headers, ...came } = await sent({ method })
    expect(came).toEqual({ method, url: '/v1/x/m', body: '' })
    expect(headers).not.toHaveProperty('content-type')
    expect(headers).not.toHaveProperty('content-length')
  })

  test('has a query', async () => {
    const query = { 'a b': 'ż&/+', cut: '\ud83d' }
    expect((await sent({ method: 'GET', query })).url).toBe('/v1/x/m?a%20b=%C5%BC%26%2F%2B&cut=%EF%BF%BD')
    expect((await sent({ method: 'GET', query: {} })).url).toBe('/v1/x/m')
    expect((await sent({ method: 'GET', hosts: [], query: { c: 'd' } })).url).toBe('/v2/jobs/1?a=b&c=d')
  })

  test('to an address of another is not sent', async () => {
    const elsewhere = sent({ method: 'GET', hosts: [], path: 'https://acme.example/' })
    await expect(elsewhere).rejects.toMatchObject({ code: 'provider_unreadable', provider: 'acme' })
  })

  test.each<[method: 'POST' | 'GET', body: OutgoingBody | undefined]>([
    ['POST', bytesBody(file)],
    ['POST', formBody([['a', 'b']])],
    ['GET', undefined],
  ])('to %s is signed as it is sent', async (method, body) => {
    const keys = { accessKey: 'A', secretKey: 'S', service: 'bedrock', region: 'us-east-1' }
    const auth = { scheme: 'aws-sigv4', ...keys }
    const came = await sent({ method, query: { q: 'a b' }, ...(body && { body }) }, { auth })
    const seen = { ...came, target: came.url ?? '', method: came.method ?? '' }
    expect(came.headers.authorization).toBe(expectedAuthorization(seen as Seen, keys.secretKey))
  })

  test('of JSON too long for one step is signed as it is sent', async () => {
    const keys = { accessKey: 'A', secretKey: 'S', service: 'bedrock', region: 'us-east-1' }
    const came = await sent({ body: { text: '"'.repeat(600_000) } }, { auth: { scheme: 'aws-sigv4', ...keys } })
    const seen = { ...came, target: came.url ?? '', method: came.method ?? '' }
    expect(came.headers.authorization).toBe(expectedAuthorization(seen as Seen, keys.secretKey))
  })

  test('of JSON too long for one step is shown to a scheme of a plugin as a text', async () => {
    let seen: { body?: string } = {}
    const headersOf = (request: object) => {
      seen = request
      return { 'x-signed': 'yes' }
    }
    const auth = { scheme: 'plugin', name: 'own', values: {}, headersOf }
    const came = await sent({ body: { text: '"🙂'.repeat(300_000) } }, { auth })
    expect([came.headers['x-signed'], seen.body === came.body]).toEqual(['yes', true])
  })

  test('that must be signed is refused above 64 MiB', async () => {
    const piece = Buffer.alloc(1024 * 1024)
    const large = {
      ...file,
      size: 65 * piece.length,
      async *read() {
        for (let at = 0; at < 65; at++) yield piece
      },
    }
    const auth = { scheme: 'aws-sigv4', accessKey: 'A', secretKey: 'S', service: 'x', region: 'us-east-1' }
    await expect(sent({ body: bytesBody(large) }, { auth })).rejects.toMatchObject({ code: 'too_large' })
  })
})
