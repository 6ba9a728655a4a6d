import { createPrivateKey, createPublicKey, verify } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Auth, Provider } from '../../src/manifest/provider.ts'
import { authorize } from '../../src/upstream/auth/authorize.ts'
import { openHttpClient } from '../../src/upstream/http/http-client.ts'
import type { HttpClient } from '../../src/upstream/http/types.ts'
import { errorFor } from '../../src/upstream/provider-error.ts'
import { type TokenEndpoint, tokenEndpoint } from '../helpers/token-endpoint.ts'
import { rfc7515Key } from './rfc7515-key.ts'

const key = createPrivateKey({ key: rfc7515Key, format: 'jwk' })
const pem = key.export({ type: 'pkcs8', format: 'pem' }) as string
const bench = {} as { httpClient: HttpClient; endpoint: TokenEndpoint; folder: string }

beforeEach(async () => {
  bench.httpClient = openHttpClient()
  bench.endpoint = await tokenEndpoint()
  bench.folder = mkdtempSync(join(tmpdir(), 'router-'))
})

afterEach(async () => {
  await bench.endpoint.close()
  await bench.httpClient.close()
  rmSync(bench.folder, { recursive: true, force: true })
})

const patient = new AbortController().signal
const anonymous = {
  url: 'https://acme.test/v1?a=b',
  method: 'POST' as const,
  headers: { 'content-type': 'application/json', 'x-own': '1' },
  body: '{}',
}
const providerWith = (auth: Auth, slug = 'acme') => ({ slug, auth, headers: {}, errors: {} }) as unknown as Provider
const go = (auth: Auth, slug?: string) =>
  authorize(providerWith(auth, slug), anonymous, { httpClient: bench.httpClient, signal: patient })

describe('a secret of its own', () => {
  test.each<[Auth, string, Record<string, string>]>([
    [{ scheme: 'none' }, '', {}],
    [{ scheme: 'bearer', secret: 's' }, '', { authorization: 'Bearer s' }],
    [{ scheme: 'bearer', secret: '' }, '', {}],
    [{ scheme: 'header', header: 'X-Api-Key', secret: 's' }, '', { 'x-api-key': 's' }],
    [{ scheme: 'query', parameter: 'key', secret: 's&/' }, '&key=s%26%2F', {}],
  ])('%j', async (auth, query, headers) => {
    expect(await go(auth)).toEqual({
      url: anonymous.url + query,
      headers: { ...anonymous.headers, ...headers },
    })
  })
})

describe('aws-sigv4', () => {
  const auth: Auth = {
    scheme: 'aws-sigv4',
    service: 'x',
    region: 'us-east-1',
    accessKey: 'A',
    secretKey: 'S',
    sessionToken: 'T',
  }

  test('signs the type of the body and its own headers, and nothing that changes on the way', async () => {
    const { headers } = await go(auth)
    expect(headers.authorization).toContain('SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,')
    expect(headers).toMatchObject({
      'x-own': '1',
      'x-amz-security-token': 'T',
      'x-amz-date': expect.stringMatching(/^\d{8}T\d{6}Z$/),
    })
  })

  test('a bearer key is used instead of the pair', async () => {
    expect((await go({ ...auth, bearer: 'b' })).headers).toEqual({ ...anonymous.headers, authorization: 'Bearer b' })
  })
})

describe('oauth-client-credentials', () => {
  const auth = (): Auth => ({
    scheme: 'oauth-client-credentials',
    tokenUrl: bench.endpoint.url,
    clientId: 'me',
    clientSecret: 'very-secret',
    scope: 'https://acme.test/.default',
  })

  test('is requested once for all calls and all providers that have the same credential', async () => {
    const all = await Promise.all(Array.from({ length: 50 }, (_, index) => go(auth(), `acme-${index % 2}`)))
    expect(new Set(all.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer token-1']))
    expect(bench.endpoint.requested).toEqual([
      {
        grant_type: 'client_credentials',
        client_id: 'me',
        client_secret: 'very-secret',
        scope: 'https://acme.test/.default',
      },
    ])
  })

  test('credentials that differ have tokens of their own', async () => {
    expect((await go(auth())).headers.authorization).toBe('Bearer token-1')
    expect((await go({ ...auth(), clientId: 'you' } as Auth)).headers.authorization).toBe('Bearer token-2')
  })

  test('a token that the provider rejected is not used again', async () => {
    const first = await go(auth())
    first.refused?.()
    expect((await go(auth())).headers.authorization).toBe('Bearer token-2')
  })

  test('a refusal of the token endpoint has no secret, names the provider that was called, and is not cached', async () => {
    bench.endpoint.answer = {
      status: 401,
      body: { error: 'invalid_client', error_description: 'very-secret is wrong' },
      delayMs: 20,
    }
    const [one, other] = await Promise.allSettled([go(auth(), 'one'), go(auth(), 'other')])
    const host = new URL(bench.endpoint.url).host
    const message = (provider: string) => ({
      status: 'rejected',
      reason: {
        code: 'provider_refused',
        provider,
        message: `The router got no token for ${provider}: its token endpoint answered with status 401.`,
        forLog: `${host} answered with status 401: invalid_client, [secret] is wrong`,
      },
    })
    expect(one).toMatchObject(message('one'))
    expect(other).toMatchObject(message('other'))
    expect(bench.endpoint.requested).toHaveLength(1)
    bench.endpoint.answer = {}
    expect((await go(auth())).headers.authorization).toBe('Bearer token-2')
  })

  test.each([
    [{ status: 503, body: 'busy' }, 'provider_unreachable', 'answered with status 503'],
    [{ status: 429, body: {} }, 'provider_unreachable', 'answered with status 429'],
    [{ body: '<html>' }, 'provider_unreadable', 'answered without an `access_token`'],
    [{ body: { access_token: 'a\nb' } }, 'provider_unreadable', 'answered without an `access_token`'],
  ])('an endpoint that answers %j', async (answer, code, message) => {
    bench.endpoint.answer = answer
    await expect(go(auth())).rejects.toMatchObject({ code, status: 502, message: expect.stringContaining(message) })
  })

  test('an endpoint that is not there', async () => {
    await bench.endpoint.close()
    await expect(go(auth())).rejects.toMatchObject({
      code: 'provider_unreachable',
      message: expect.stringContaining('did not answer'),
    })
  })

  test('a caller that leaves is let go at once', async () => {
    bench.endpoint.answer = { delayMs: 300 }
    const leaving = new AbortController()
    const left = authorize(providerWith(auth()), anonymous, { httpClient: bench.httpClient, signal: leaving.signal })
    leaving.abort(new Error('left'))
    await expect(left).rejects.toThrow('left')
  })

  test('a token that a provider repeats in an error is not exposed', async () => {
    const provider = providerWith(auth())
    await authorize(provider, anonymous, { httpClient: bench.httpClient, signal: patient })
    const text = JSON.stringify({ error: { message: 'neither token-1 nor very-secret will do' } })
    expect(errorFor(provider, { status: 400, headers: {}, text }).message).toBe('neither [secret] nor [secret] will do')
  })
})

describe('google-service-account', () => {
  const keyFile = (more: object = {}) =>
    JSON.stringify({
      type: 'service_account',
      client_email: 'me@acme.test',
      private_key: pem,
      private_key_id: 'k1',
      token_uri: bench.endpoint.url,
      ...more,
    })
  const auth = (credentials = keyFile()): Auth => ({ scheme: 'google-service-account', credentials })

  test('sends a signed assertion of the account, for the usual scope', async () => {
    expect((await go(auth())).headers.authorization).toBe('Bearer token-1')
    const [form] = bench.endpoint.requested
    expect(form?.grant_type).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
    const [header = '', claims = '', signature = ''] = (form?.assertion ?? '').split('.')
    const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as { [name: string]: unknown }
    expect(read(header)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' })
    const { iat, exp, ...rest } = read(claims)
    expect(rest).toEqual({
      iss: 'me@acme.test',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      aud: bench.endpoint.url,
    })
    expect(Number(exp) - Number(iat)).toBe(3_600)
    expect(Math.abs(Number(iat) - Date.now() / 1_000)).toBeLessThan(5)
    expect(
      verify(
        'RSA-SHA256',
        Buffer.from(`${header}.${claims}`),
        createPublicKey(key),
        Buffer.from(signature, 'base64url'),
      ),
    ).toBe(true)
  })

  test('fifty concurrent calls request one token', async () => {
    await Promise.all(Array.from({ length: 50 }, () => go(auth())))
    expect(bench.endpoint.requested).toHaveLength(1)
  })

  test('the key file may be named by its path, and its line ends be escaped twice', async () => {
    const path = join(bench.folder, 'key.json')
    writeFileSync(path, keyFile({ private_key: pem.replaceAll('\n', '\\n') }))
    expect((await go(auth(path))).headers.authorization).toBe('Bearer token-1')
  })

  test.each([
    ['/nowhere/key.json', 'names a file that cannot be read (ENOENT)'],
    ['{"client_email":"x"}', 'needs `client_email` and `private_key`'],
    ['{"client_email":"x","private_key":"top secret"}', 'has a `private_key` that is not a PEM key'],
    ['{"client_email":"x","private_key":"y","token_uri":"z"}', 'has a `token_uri` that is not a URL'],
    ['{', 'is not JSON'],
  ])('credentials that cannot be used, %s, are told and not shown', async (credentials, message) => {
    const failed = go(auth(credentials))
    await expect(failed).rejects.toMatchObject({
      code: 'provider_refused',
      status: 502,
      message: expect.stringContaining(message),
    })
    await expect(failed).rejects.not.toMatchObject({ message: expect.stringContaining('top secret') })
  })
})
