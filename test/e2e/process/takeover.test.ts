import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { Agent, fetch as fetchBy } from 'undici'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Router, startRouter } from '../../../src/app/router.ts'
import { openFileCache } from '../../../src/manifest/read/file-cache.ts'
import type { Store } from '../../../src/store/open.ts'
import { type RouterProcess, routerProcess } from '../../helpers/process.ts'
import { type LoopbackProvider, pause, within } from '../../helpers/provider.ts'
import { routerFolder, testKey } from '../../helpers/router.ts'
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

// A process takes over from another one that runs with the same database: no call fails, and the money stays exact.

let provider: LoopbackProvider
let made: ReturnType<typeof routerFolder>
let store: Store
/** What is not to be answered before it resolves: calls of this many tokens are long. */
let held: PromiseWithResolvers<void>
const release = () => held.resolve()
const longTokens = { ...tenTokens, max_tokens: 20, stream: true }
const running: Router[] = []
/** What any router of this run found out about files. */
const cache = openFileCache(join(process.env.INFERENCE_ROUTER_CACHE ?? tmpdir(), 'files'))

beforeEach(async () => {
  held = Promise.withResolvers()
  let calls = 0
  provider = await pricedProvider({
    wait: async () => {
      const { body } = provider.received[calls++] as { body: { max_tokens: number } }
      await (body.max_tokens === 20 ? held.promise : pause(10))
    },
  })
  made = routerFolder({
    files: { 'providers/priced.yaml': pricedManifest(provider.url) },
  })
})

afterEach(async () => {
  release()
  await store.close()
  for (const router of running.splice(0)) await router.stop(1_000)
  await provider.close()
  rmSync(made.folder, { recursive: true, force: true })
})

async function start(port = 0): Promise<Router> {
  const env = { INFERENCE_ROUTER_ADMIN_KEY: testKey }
  const log = pino({ level: 'silent' })
  const router = await startRouter({ configPath: made.configPath, port, takeOver: true, env, log, earlier: { cache } })
  running.push(router)
  return router
}

const portOf = ({ url }: { url: string }) => Number(new URL(url).port)
const startProcess = (port = 0): Promise<RouterProcess> =>
  routerProcess(made.configPath, { args: ['--takeover', '--port', String(port)] })

/** The rows of a key add up to what it has spent. */
async function spentBy(id: string): Promise<bigint> {
  const rows = await Array.fromAsync(store.ledger.each({ key: id }))
  const sum = rows.reduce((sum, { cost }) => sum + BigInt(cost.nanoUsd), 0n)
  expect(await store.spend.ofKey(id, Date.now())).toBe(sum)
  return sum
}

/** Linux resets a connection that arrives in the moment in which a process closes its port, unless it is told to move it. */
const resetsArrivals = contentOf('/proc/sys/net/ipv4/tcp_migrate_req') !== '1'

function isResetBySystem(failure: Ended | Error | undefined): boolean {
  const cause = failure instanceof Error ? (failure.cause as NodeJS.ErrnoException | undefined) : undefined
  return resetsArrivals && cause?.code === 'ECONNRESET'
}

/** A call of ten tokens on a connection of its own. It is made again where the system has reset that. */
async function callShort(url: string, secret: string, how: { stream?: true } = {}): Promise<Ended> {
  const body = { ...tenTokens, ...how }
  const ended = await callOnce(url, secret, body)
  return isResetBySystem(ended.failure) ? await callOnce(url, secret, body) : ended
}

function contentOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined
}

/** Makes calls one after the other until it is stopped. */
function looping(url: string, secret: string, how: { stream?: boolean; fresh?: boolean }) {
  const ended: (Ended | Error)[] = []
  let goesOn = true
  const dispatcher = new Agent({ connections: 1 })
  const headers = {
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
    ...(how.fresh && { connection: 'close' }),
  }
  const body = JSON.stringify({ ...tenTokens, ...(how.stream && { stream: true }) })
  const once = async () => {
    const response = await fetchBy(`${url}/v1/chat/completions`, { method: 'POST', headers, body, dispatcher })
    const text = await response.text()
    const whole = response.status === 200 && (how.stream ? text.includes('[DONE]') : text.endsWith('}'))
    return { status: response.status, text, whole }
  }
  const done = (async () => {
    while (goesOn) {
      ended.push(await once().catch((thrown: Error) => thrown))
      await pause(10)
    }
  })()
  return {
    fresh: how.fresh === true,
    async stop() {
      goesOn = false
      await done
      await dispatcher.close()
      return ended
    },
  }
}

test('during takeovers no call fails, and the rows are what was spent', slow, async () => {
  let router = await start()
  const port = portOf(router)
  store = await storeIn(made.folder)
  const key = await newKey(store, { monthlyLimitNano: 1_000_000n * callNano })
  const clients = [{}, {}, { stream: true }, { stream: true }, { fresh: true }, { fresh: true, stream: true }].map(
    (how) => looping(router.url, key.secret, how),
  )
  for (let n = 0; n < 2; n++) {
    const next = await start(port)
    await pause(50)
    await within(10_000, 'the calls of the earlier one', router.retired)
    await router.stop(1_000)
    running.shift()
    router = next
  }
  const ended = await Promise.all(clients.map(async (client) => ({ ...client, ended: await client.stop() })))
  const ends = ended.flatMap(({ fresh, ended }) => ended.filter((one) => !(fresh && isResetBySystem(one))))
  expect(ends.filter((one) => one instanceof Error || !one.whole)).toEqual([])
  expect(ended.flatMap((client) => client.ended).length - ends.length).toBeLessThan(2)
  expect(ends.length).toBeGreaterThan(100)
  expect(await spentBy(key.id)).toBe(BigInt(ends.length) * callNano)
})

test('of 200 calls around a takeover a key that pays 20 makes exactly 20', async () => {
  const old = await start()
  store = await storeIn(made.folder)
  const key = await newKey(store, { monthlyLimitNano: 20n * callNano })
  const calls: Promise<Ended>[] = []
  const made200 = (async () => {
    for (let n = 0; n < 200; n++) {
      calls.push(callShort(old.url, key.secret, n % 2 ? {} : { stream: true }))
      await pause(n < 190 ? 3 : 60)
    }
  })()
  await start(portOf(old))
  await made200
  expect(byStatus(await Promise.all(calls))).toEqual({ 200: 20, 402: 180 })
  expect(await spentBy(key.id)).toBe(20n * callNano)
})

/** A key that pays so many calls, and a call of two of them that runs. */
async function withLongCall({ url }: { url: string }, calls: bigint) {
  store = await storeIn(made.folder)
  const key = await newKey(store, { monthlyLimitNano: calls * callNano })
  const long = callOnce(url, key.secret, longTokens)
  await expect.poll(() => provider.received.length, { interval: 5 }).toBe(1)
  return { key, long }
}

test('a long stream goes on in the old process, and its money is held in the new one', slow, async () => {
  const old = await start()
  const { key, long } = await withLongCall(old, 5n)
  const next = await start(portOf(old))
  const others = await Promise.all(Array.from({ length: 6 }, () => callShort(next.url, key.secret)))
  expect(byStatus(others)).toEqual({ 200: 3, 402: 3 })
  release()
  expect(await long).toMatchObject({ status: 200, whole: true })
  expect(await spentBy(key.id)).toBe(5n * callNano)
})

test(
  'nobody takes over while calls of the process before still run, and somebody can when they have ended',
  slow,
  async () => {
    const first = await start()
    const { key, long } = await withLongCall(first, 5n)
    const second = await start(portOf(first))
    await expect(start(portOf(first))).rejects.toThrow('calls of the process before it still run')
    release()
    expect(await long).toMatchObject({ status: 200, whole: true })
    await within(10_000, 'the end of the first process', first.retired)
    await first.stop(1_000)
    const third = await start(portOf(first))
    await within(10_000, 'the end of the second process', second.retired)
    const others = await Promise.all(Array.from({ length: 6 }, () => callUntilReady(third.url, key.secret)))
    expect(byStatus(others)).toEqual({ 200: 3, 402: 3 })
    expect(await spentBy(key.id)).toBe(5n * callNano)
  },
)

test('a process that cannot start gives the database back', slow, async () => {
  const old = await start()
  const { key, long } = await withLongCall(old, 5n)
  const blocker = createServer().listen(0, '127.0.0.1')
  const taken = await new Promise<number>((resolve) =>
    blocker.once('listening', () => resolve((blocker.address() as { port: number }).port)),
  )
  await expect(start(taken)).rejects.toThrow('EADDRINUSE')
  const others = await Promise.all(Array.from({ length: 6 }, () => callShort(old.url, key.secret)))
  expect(byStatus(others)).toEqual({ 200: 3, 402: 3 })
  release()
  expect(await long).toMatchObject({ status: 200, whole: true })
  expect(await spentBy(key.id)).toBe(5n * callNano)
  blocker.close()
  const next = await start(portOf(old))
  expect(await callShort(next.url, key.secret)).toMatchObject({ status: 402 })
})

test('after kill -9 of the old process its calls hold nothing any more', slow, async () => {
  const old = await startProcess()
  const { key, long } = await withLongCall(old, 5n)
  const next = await startProcess(portOf(old))
  await old.end('SIGKILL')
  expect((await long).whole).toBe(false)
  const others = await Promise.all(Array.from({ length: 8 }, () => callShort(next.url, key.secret)))
  expect(byStatus(others)).toEqual({ 200: 5, 402: 3 })
  expect(await spentBy(key.id)).toBe(5n * callNano)
})

test('after kill -9 of the new process the old one finishes its calls, and a third one goes on', slow, async () => {
  const old = await startProcess()
  const { key, long } = await withLongCall(old, 5n)
  const next = await startProcess(portOf(old))
  expect(await callShort(next.url, key.secret)).toMatchObject({ status: 200 })
  await next.end('SIGKILL')
  const third = await startProcess(portOf(old))
  const others = await Promise.all(Array.from({ length: 6 }, () => callShort(third.url, key.secret)))
  expect(byStatus(others)).toEqual({ 200: 2, 402: 4 })
  release()
  expect(await long).toMatchObject({ status: 200, whole: true })
  expect(await spentBy(key.id)).toBe(5n * callNano)
  // It has been taken over from: it ends by itself, and a signal that comes meanwhile would kill it.
  expect(await old.end()).toBe(0)
})

/** A call that is made again where the database was on its way from one process to another. */
async function callUntilReady(url: string, secret: string): Promise<Ended> {
  for (let tries = 1; ; tries++) {
    const ended = await callShort(url, secret)
    if (ended.status !== 503 || tries === 5) return ended
    await pause(50)
  }
}

test('a router that was not started for it keeps its database', slow, async () => {
  const env = { INFERENCE_ROUTER_ADMIN_KEY: testKey }
  running.push(await startRouter({ configPath: made.configPath, env, log: pino({ level: 'silent' }) }))
  store = await storeIn(made.folder)
  await expect(start()).rejects.toThrow('another router uses this database')
})

test('only its user may use the socket', async () => {
  await start()
  store = await storeIn(made.folder)
  expect(statSync(join(made.folder, 'data/router.sqlite-control')).mode & 0o777).toBe(0o600)
})

test('who looks on at the process that served is sent on: it does not keep that process alive', slow, async () => {
  const first = await start()
  store = await storeIn(made.folder)
  const headers = { authorization: `Bearer ${testKey}` }
  const watched = await fetch(`${first.url}/v1/manage/live`, { headers })
  const text = watched.text()
  await start(portOf(first))
  await within(10_000, 'the first process to be done', first.retired)
  expect(await within(1_000, 'the end of the stream', text)).toContain('data: {"at"')
})
