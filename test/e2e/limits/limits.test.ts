import { randomUUIDv7 } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { noLimits } from '../../../src/store/keys.ts'
import type { Store } from '../../../src/store/open.ts'
import { answerJson, type LoopbackProvider, pause, within } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { describeEach } from '../../helpers/slow.ts'
import {
  byStatus,
  callOnce,
  errorIn,
  newKey,
  type OddEnd,
  pricedManifest,
  pricedProvider,
  refused,
  storeIn,
  tenTokens,
} from '../money/budget-world.ts'

// Rate limits and concurrent calls. The clock of the limits is moved forward by the tests, where calls are served by this thread:
// test/accounts moves the one that several threads share.

let provider: LoopbackProvider
let router: TestRouter
let store: Store
/** The organization of a test, and what it has of the provider. */
let organization = ''
let behaviour: Parameters<typeof pricedProvider>[0] = {}
let callsBefore = 0

async function begin(how: Parameters<typeof pricedProvider>[0] = {}): Promise<void> {
  behaviour = how
  callsBefore = provider.received.length
  organization = (await store.organizations.create(randomUUIDv7())).id
}

const received = () => provider.received.slice(callsBefore)
const keyWith = (changes: Parameters<typeof newKey>[1] = {}) => newKey(store, { organization, ...changes })

describeEach([1, 4], { slowIf: (threads) => threads > 1 })('%d threads', (threads) => {
  beforeAll(async () => {
    provider = await pricedProvider({
      wait: (n) => behaviour?.wait?.(n - callsBefore) ?? pause(1),
      oddly: (n) => behaviour?.oddly?.(n - callsBefore),
    })
    router = await testRouter({ threads, files: { 'providers/priced.yaml': pricedManifest(provider.url) } })
    store = await storeIn(router.folder)
  })

  afterEach(() => vi.restoreAllMocks())

  afterAll(async () => {
    await store.close()
    await router.end()
    await provider.close()
  })

  const realNow = performance.now.bind(performance)

  /** Moves the clock that windows are measured by. */
  function later(seconds: number): void {
    vi.spyOn(performance, 'now').mockImplementation(() => realNow() + seconds * 1_000)
  }

  async function ask(secret: string, body: object = tenTokens, path = '/v1/chat/completions') {
    const response = await router.call(path, body, { authorization: `Bearer ${secret}` })
    const left = (what: string) => {
      const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
        response.headers.get(`x-ratelimit-${name}-${what}`),
      )
      return { limit, remaining, reset }
    }
    const retryAfter = response.headers.get('retry-after')
    const text = await response.clone().text()
    return { response, status: response.status, text, requests: left('requests'), tokens: left('tokens'), retryAfter }
  }

  test('a key may make so many requests a minute; after Retry-After the next one passes', async () => {
    await begin()
    const key = await keyWith({ limits: { ...noLimits, requestsPerMinute: 3 } })
    const reported = []
    for (let n = 0; n < 3; n++) {
      const { status, requests, tokens } = await ask(key.secret, n === 1 ? { ...tenTokens, stream: true } : tenTokens)
      expect([status, tokens.limit]).toEqual([200, null])
      expect(requests.reset).toMatch(/^(5\d|60|61)s$/)
      reported.push([requests.limit, requests.remaining])
    }
    expect(reported).toEqual([
      ['3', '2'],
      ['3', '1'],
      ['3', '0'],
    ])
    const rejected = await ask(key.secret)
    expect([rejected.status, rejected.requests.remaining]).toEqual([429, '0'])
    expect(await errorIn(rejected.response)).toMatchObject({
      type: 'rate_limit_error',
      code: 'rate_limited',
      message: expect.stringMatching(
        /^The limit of this API key is 3 requests per minute, and it has been reached\. Try again in \d\d s\.$/,
      ),
    })
    const wait = Number(rejected.retryAfter)
    expect(wait).toBeGreaterThan(40)
    if (threads > 1) return
    later(wait - 20)
    expect((await ask(key.secret)).status).toBe(429)
    later(wait)
    expect((await ask(key.secret)).status).toBe(200)
    expect(received()).toHaveLength(4)
    expect(await Array.fromAsync(store.ledger.each({ key: key.id }))).toHaveLength(4)
  })

  test('a call that fails after it was admitted has the limit headers as well, and the model that was called', async () => {
    const tooLong: OddEnd = (response) =>
      answerJson(response, { error: { message: 'Too long.', code: 'context_length_exceeded' } }, 400)
    await begin({ oddly: (n) => [refused, tooLong][n] })
    const key = await keyWith({ limits: { ...noLimits, requestsPerMinute: 3 } })
    const failed = []
    for (let n = 0; n < 2; n++) {
      const { status, requests, response } = await ask(key.secret)
      const [model, attempts] = ['model', 'attempts'].map((name) => response.headers.get(`x-router-${name}`))
      failed.push({ status, remaining: requests.remaining, model, attempts })
    }
    expect(failed).toEqual([
      { status: 502, remaining: '2', model: 'priced/m1', attempts: '1' },
      { status: 400, remaining: '1', model: 'priced/m1', attempts: '1' },
    ])
  })

  test.each(['/v1/chat/completions', '/v1/messages/count_tokens'])(
    '%s: a key that is deleted while its body is on its way calls nothing',
    async (path) => {
      await begin()
      const key = await newKey(store)
      const headers = { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' }
      const body = JSON.stringify(tenTokens)
      const call = request(router.url + path, { method: 'POST', headers })
      const answered = once(call, 'response')
      call.write(body.slice(0, 10))
      await pause(50)
      const manager = { method: 'DELETE', headers: { authorization: `Bearer ${testKey}` } }
      expect((await fetch(`${router.url}/v1/manage/apikey/${key.id}`, manager)).status).toBe(204)
      call.end(body.slice(10))
      const [response] = (await within(5_000, 'the answer', answered)) as [IncomingMessage]
      response.resume()
      expect(response.statusCode).toBe(403)
      expect(received()).toEqual([])
    },
  )

  test('the keys of an organization share its limits', async () => {
    await begin()
    await store.organizations.setLimits(organization, { ...noLimits, requestsPerMinute: 10 })
    const keys = [await keyWith({ limits: { ...noLimits, requestsPerMinute: 8 } }), await keyWith()]
    const ended = await Promise.all(
      Array.from({ length: 40 }, (_, n) => callOnce(router.url, keys[n % 2]?.secret ?? '', tenTokens)),
    )
    expect(byStatus(ended)).toEqual({ 200: 10, 429: 30 })
    expect((await ask(keys[1]?.secret ?? '')).text).toContain('The limit of the organization is 10 requests per minute')
  })

  test('tokens are counted by actual usage: unused ones, and those of failed calls, are released', async () => {
    await begin({ wait: () => pause(1), oddly: (n) => (n === 1 ? refused : undefined) })
    const key = await keyWith({ limits: { ...noLimits, tokensPerMinute: 1_000 } })
    const first = await ask(key.secret, { ...tenTokens, max_tokens: 900 })
    expect(first.status).toBe(200)
    expect(Number(first.tokens.remaining)).toBeLessThan(100)
    // It used 909 of them.
    const rejected = await ask(key.secret, { ...tenTokens, max_tokens: 200 })
    expect([rejected.status, rejected.tokens.remaining]).toEqual([429, '91'])
    expect((await ask(key.secret, { ...tenTokens, max_tokens: 80 })).status).toBe(502)
    expect((await ask(key.secret, { ...tenTokens, max_tokens: 80 })).status).toBe(200)
    if (threads > 1) return
    later(Number(rejected.retryAfter))
    expect((await ask(key.secret, { ...tenTokens, max_tokens: 200 })).status).toBe(200)
  })

  test('a call without an output limit is not rejected for its longest output', async () => {
    await begin()
    const { max_tokens: _, ...unbounded } = tenTokens
    const key = await keyWith({ limits: { ...noLimits, tokensPerMinute: 40 } })
    const reported = []
    for (let n = 0; n < 3; n++) reported.push((await ask(key.secret, unbounded)).status)
    expect(reported).toEqual([200, 200, 429])
  })

  test('so many calls run at once: streams until their end or until the client leaves', async () => {
    const opened = Promise.withResolvers<void>()
    await begin({ wait: () => opened.promise })
    const key = await keyWith({ limits: { ...noLimits, concurrentCalls: 2 } })
    const leaving = new AbortController()
    const left = fetch(`${router.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(tenTokens),
      signal: leaving.signal,
    })
    await expect.poll(() => received().length).toBe(1)
    const stays = ask(key.secret, { ...tenTokens, stream: true })
    await expect.poll(() => received().length).toBe(2)
    const rejected = await ask(key.secret)
    expect([rejected.status, rejected.retryAfter]).toEqual([429, '1'])
    expect(rejected.text).toContain('2 concurrent calls')
    leaving.abort()
    await expect(left).rejects.toThrow()
    await expect.poll(async () => (await Array.fromAsync(store.ledger.each({ key: key.id }))).length).toBe(1)
    const next = ask(key.secret)
    await expect.poll(() => received().length).toBe(3)
    expect((await ask(key.secret)).status).toBe(429)
    opened.resolve()
    expect((await Promise.all([stays, next])).map(({ status }) => status)).toEqual([200, 200])
    expect((await ask(key.secret)).status).toBe(200)
  })

  test('a burst beyond the calls at once loses none that was taken', async () => {
    await begin({ wait: () => pause(30) })
    const key = await keyWith({ limits: { ...noLimits, concurrentCalls: 5 } })
    const ended = await Promise.all(Array.from({ length: 60 }, () => callOnce(router.url, key.secret, tenTokens)))
    const { 200: taken = 0, 429: refused = 0 } = byStatus(ended)
    expect(taken + refused).toBe(60)
    expect(taken).toBeGreaterThanOrEqual(5)
    expect(await Array.fromAsync(store.ledger.each({ key: key.id }))).toHaveLength(taken)
    const second = await Promise.all(Array.from({ length: 5 }, () => callOnce(router.url, key.secret, tenTokens)))
    expect(byStatus(second)).toEqual({ 200: 5 })
  })

  test('counting tokens is a request, and every API has the limit headers', async () => {
    await begin()
    const key = await keyWith({ limits: { ...noLimits, requestsPerMinute: 3, tokensPerMinute: 1_000 } })
    const counted = await ask(key.secret, tenTokens, '/v1/messages/count_tokens')
    expect([counted.status, counted.requests.remaining, counted.tokens.remaining]).toEqual([200, '2', '1000'])
    const messages = await ask(key.secret, tenTokens, '/v1/messages')
    expect([messages.status, messages.requests.remaining, messages.tokens.limit]).toEqual([200, '1', '1000'])
    const input = { model: 'priced/m1', input: 'x', max_output_tokens: 10 }
    expect((await ask(key.secret, input, '/v1/responses')).requests.remaining).toBe('0')
    const rejected = await ask(key.secret, tenTokens, '/v1/messages')
    expect(await errorIn(rejected.response)).toMatchObject({ type: 'rate_limit_error' })
    expect((await ask(key.secret, tenTokens, '/v1/messages/count_tokens')).status).toBe(429)
  })

  test('a key without limits gets no limit headers', async () => {
    await begin()
    const { response } = await ask((await keyWith()).secret)
    expect([...response.headers.keys()].filter((name) => name.startsWith('x-ratelimit'))).toEqual([])
  })
})
