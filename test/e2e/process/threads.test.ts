import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { noLimits } from '../../../src/store/keys.ts'
import type { Store } from '../../../src/store/open.ts'
import { type LoopbackProvider, pause, within } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'
import {
  byStatus,
  callNano,
  callOnce,
  type Ended,
  newKey,
  pricedManifest,
  pricedProvider,
  storeIn,
  tenTokens,
} from '../money/budget-world.ts'

// Four threads at one port: what one thread guarantees, all of them guarantee together.

let provider: LoopbackProvider
let router: TestRouter
let store: Store
let hold: Promise<void> = Promise.resolve()

beforeAll(async () => {
  provider = await pricedProvider({ wait: async () => void (await hold) })
  router = await testRouter({ files: { 'providers/priced.yaml': pricedManifest(provider.url) }, threads: 4 })
  store = await storeIn(router.folder)
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

const burst = (secret: string, count: number): Promise<Ended[]> =>
  Promise.all(Array.from({ length: count }, () => callOnce(router.url, secret, tenTokens)))

/** Each on a connection of its own, so that the system gives them to different threads. */
const once = async (secret: string, body: object = tenTokens) =>
  await fetch(`${router.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(body),
  })

/** Calls that the provider has and does not answer until they are released. */
function holding() {
  const { promise, resolve } = Promise.withResolvers<void>()
  hold = promise
  const release = () => {
    hold = Promise.resolve()
    resolve()
  }
  // A test that fails before it releases them leaves no call behind.
  onTestFinished(release)
  return release
}

describe('money', () => {
  test('of 600 calls at once a key that pays 20 makes exactly 20', async () => {
    const count = 600
    const key = await newKey(store, { monthlyLimitNano: 20n * callNano })
    const before = provider.received.length
    expect(byStatus(await burst(key.secret, count))).toEqual({ 200: 20, 402: count - 20 })
    expect(provider.received.length - before).toBe(20)
    expect(await store.spend.ofKey(key.id, Date.now())).toBe(20n * callNano)
  })

  test('no call is refused while the money for it lies in another thread', async () => {
    const key = await newKey(store, { monthlyLimitNano: 12n * callNano })
    for (let n = 0; n < 12; n++) expect((await once(key.secret)).status).toBe(200)
    const refused = await once(key.secret)
    expect(refused.status).toBe(402)
    expect(await refused.text()).toContain(
      'The monthly limit of this API key is 0.012 USD: 0.012 USD spent, 0.00 USD reserved',
    )
  })

  test('a limit that is raised or lowered holds for the next call, wherever it arrives', async () => {
    const key = await newKey(store, { monthlyLimitNano: 2n * callNano })
    const change = (monthly_limit: number) =>
      fetch(`${router.url}/v1/manage/apikey/${key.id}/limit`, {
        method: 'POST',
        headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ monthly_limit }),
      })
    expect(byStatus(await burst(key.secret, 20))).toEqual({ 200: 2, 402: 18 })
    expect((await change(0.006)).status).toBe(200)
    expect(byStatus(await burst(key.secret, 20))).toEqual({ 200: 4, 402: 16 })
    expect((await change(0.005)).status).toBe(200)
    expect(byStatus(await burst(key.secret, 8))).toEqual({ 402: 8 })
  })
})

describe('limits', () => {
  test('so many requests a minute, and so many calls at once', slow, async () => {
    const requests = await newKey(store, { limits: { ...noLimits, requestsPerMinute: 15 } })
    expect(byStatus(await burst(requests.secret, 100))).toEqual({ 200: 15, 429: 85 })
    const calls = await newKey(store, { limits: { ...noLimits, concurrentCalls: 10 } })
    const before = provider.received.length
    const release = holding()
    const statuses: number[] = []
    const ended = Array.from({ length: 60 }, () =>
      callOnce(router.url, calls.secret, tenTokens).then(({ status }) => void statuses.push(status)),
    )
    // All others are refused while these run.
    await expect.poll(() => [statuses.length, provider.received.length - before]).toEqual([50, 10])
    expect(statuses).toEqual(Array(50).fill(429))
    release()
    await Promise.all(ended)
    expect(statuses.slice(50)).toEqual(Array(10).fill(200))
    for (let n = 0; n < 12; n++) expect((await once(calls.secret)).status).toBe(200)
  })

  test('so many tokens a minute, by actual use', async () => {
    const key = await newKey(store, { limits: { ...noLimits, tokensPerMinute: 200 } })
    // A call uses 19 tokens; while it runs it holds a little more.
    const call = { ...tenTokens, messages: [{ role: 'user', content: 'Go on, and on, and on, and then on again' }] }
    const ended = await Promise.all(Array.from({ length: 60 }, () => callOnce(router.url, key.secret, call)))
    expect(byStatus(ended)[200]).toBeGreaterThan(4)
    while ((await once(key.secret, call)).status === 200);
    const rows = await Array.fromAsync(store.ledger.each({ key: key.id }))
    const used = rows.reduce((sum, { usage }) => sum + (usage.input ?? 0) + (usage.output ?? 0), 0)
    expect(used).toBeGreaterThan(200 - 60)
    expect(used).toBeLessThanOrEqual(200)
  })
})

describe('changes', () => {
  test('a key that is revoked is refused by every thread at once', async () => {
    const key = await newKey(store)
    for (let n = 0; n < 12; n++) expect((await once(key.secret)).status).toBe(200)
    const deleted = await fetch(`${router.url}/v1/manage/apikey/${key.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${testKey}` },
    })
    expect(deleted.status).toBe(204)
    expect(byStatus(await burst(key.secret, 40))).toEqual({ 403: 40 })
  })

  test('a stored response can be continued and deleted wherever the next call arrives', slow, async () => {
    const send = async (path: string, method: string, body?: object) =>
      await fetch(`${router.url}/v1/responses${path}`, {
        method,
        headers: { authorization: `Bearer ${testKey}`, 'content-type': 'application/json', connection: 'close' },
        ...(body && { body: JSON.stringify(body) }),
      })
    let previous: string | undefined
    const long = 'Für 3 € '.repeat(10_000)
    for (let turn = 0; turn < 8; turn++) {
      const more = previous === undefined ? {} : { previous_response_id: previous }
      const input = turn === 0 ? long : 'Go on'
      const response = await send('', 'POST', { model: 'priced/free', input, ...more })
      expect(response.status).toBe(200)
      previous = ((await response.json()) as { id: string }).id
    }
    expect(JSON.stringify(provider.received.at(-1)?.body)).toContain(long)
    expect((await send(`/${previous}`, 'DELETE')).status).toBe(200)
    for (let n = 0; n < 8; n++) expect((await send(`/${previous}`, 'GET')).status).toBe(404)
  })

  test('files are in use in all threads or in none', async () => {
    const modelsOf = async () => {
      const response = await fetch(`${router.url}/v1/models`, {
        headers: { authorization: `Bearer ${testKey}`, connection: 'close' },
      })
      const { data } = (await response.json()) as { data: { id: string }[] }
      return data.map(({ id }) => id).join()
    }
    router.put('providers/second.yaml', pricedManifest(provider.url).replaceAll(/priced/gi, 'second'))
    await expect.poll(() => router.snapshot().generation).toBe(2)
    const found = await Promise.all(Array.from({ length: 20 }, modelsOf))
    expect(new Set(found).size).toBe(1)
    expect(found[0]).toContain('/m1')
    writeFileSync(join(router.folder, 'providers/second.yaml'), 'slug: [')
    const problems = async () =>
      ((await (await router.call('/ready')).json()) as { problem_count: number }).problem_count
    await expect.poll(problems).toBeGreaterThan(0)
    expect(new Set(await Promise.all(Array.from({ length: 20 }, modelsOf)))).toEqual(new Set(found))
    // A thread that is started now has the files that are in use, not those on the disk.
    await router.threads()[0]?.terminate()
    await expect.poll(() => router.threads().length).toBe(4)
    const again = () => Promise.all(Array.from({ length: 20 }, modelsOf)).catch(() => [])
    await expect.poll(async () => [...new Set(await again())]).toEqual([found[0]])
  })
})

test(
  'a thread that dies in a burst is replaced: rows and sums agree, and the rest of the limits can be used',
  slow,
  async () => {
    const key = await newKey(store, { monthlyLimitNano: 110n * callNano })
    const few = await newKey(store, { limits: { ...noLimits, concurrentCalls: 10 } })
    const before = provider.received.length
    const release = holding()
    const ended = burst(key.secret, 100)
    const fewEnded = burst(few.secret, 10)
    await expect.poll(() => provider.received.length - before).toBe(110)
    const [first] = router.threads()
    await first?.terminate()
    release()
    const all = await within(20_000, 'the calls', ended)
    await within(20_000, 'the others', fewEnded)
    const whole = all.filter((one) => one.whole)
    expect(byStatus(all)[0]).toBeGreaterThan(0)
    const rows = async () => await Array.fromAsync(store.ledger.each({ key: key.id }))
    expect((await rows()).filter(({ outcome }) => outcome === 'complete').length).toBeGreaterThanOrEqual(whole.length)
    await expect.poll(() => router.threads().length).toBe(4)
    for (let status = 200; status === 200; ) {
      const next = await once(key.secret).catch(() => ({ status: 200 }))
      status = next.status
      expect([200, 402]).toContain(status)
    }
    expect(await store.spend.ofKey(key.id, Date.now())).toBe(110n * callNano)
    expect((await rows()).reduce((sum, { cost }) => sum + BigInt(cost.nanoUsd), 0n)).toBe(110n * callNano)
    expect(await rows()).toHaveLength(110)
    const releaseAgain = holding()
    const beforeAgain = provider.received.length
    const statuses: number[] = []
    const again = Array.from({ length: 15 }, () => once(few.secret).then(({ status }) => statuses.push(status)))
    await expect.poll(() => provider.received.length - beforeAgain).toBe(10)
    await expect.poll(() => statuses).toEqual(Array(5).fill(429))
    releaseAgain()
    await Promise.all(again)
    expect(statuses.slice(5)).toEqual(Array(10).fill(200))
  },
)

test('a stop lets the calls of all threads end, and refuses new ones', slow, async () => {
  const own = await testRouter({ files: { 'providers/priced.yaml': pricedManifest(provider.url) }, threads: 2 })
  const release = holding()
  const before = provider.received.length
  const running = Promise.all(Array.from({ length: 20 }, () => callOnce(own.url, testKey, tenTokens)))
  await expect.poll(() => provider.received.length - before).toBe(20)
  const stopped = own.end(30_000)
  await pause(20)
  expect((await callOnce(own.url, testKey, tenTokens)).status).not.toBe(200)
  release()
  expect(byStatus(await running)).toEqual({ 200: 20 })
  await stopped
})

test('a start is refused where threads cannot share: the port of another router, a database in memory', async () => {
  const start = (settings: object) =>
    testRouter({ files: { 'providers/priced.yaml': pricedManifest(provider.url) }, settings })
  const server = { host: '127.0.0.1', port: Number(new URL(router.url).port), threads: 2 }
  await expect(start({ server })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  const inMemory = { server: { ...server, port: 0 }, store: { url: 'sqlite::memory:' } }
  await expect(start(inMemory)).rejects.toThrow('server.threads is 2, but a database in memory')
})
