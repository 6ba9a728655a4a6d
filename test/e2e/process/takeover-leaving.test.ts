import { rmSync } from 'node:fs'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { type Router, startRouter } from '../../../src/app/router.ts'
import { loopbackProvider, within } from '../../helpers/provider.ts'
import { cache, routerFolder, testKey } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'
import { eventually, limit } from '../../helpers/time.ts'
import { newKey, storeIn } from '../money/budget-world.ts'
import {
  billOf,
  endpoints,
  manifestsAt,
  requestIn,
  words,
  writeText,
  writeUsage,
  writeWhole,
} from '../money/hidden-usage-world.ts'

// A process takes over while the other one still reads answers whose clients have left, to learn what they cost.

const thought = 20_000
const body = requestIn('chat', 'chat/m1')

/** A router whose only call has been left after its text. Its usage follows when the test says so. */
async function leftBehind(settings: object = {}) {
  const released = Promise.withResolvers<void>()
  const provider = await loopbackProvider(async (received, response) => {
    if (received.body.stream !== true) return writeWhole(received, response, 1)
    writeText(received, response)
    await released.promise
    writeUsage(received, response, thought)
  })
  const { folder, configPath } = routerFolder({ files: manifestsAt(provider.url), settings })
  const running: Router[] = []
  const start = async (port = 0): Promise<Router> => {
    const env = { INFERENCE_ROUTER_ADMIN_KEY: testKey }
    const log = pino({ level: 'silent' })
    const router = await startRouter({ configPath, port, takeOver: true, env, log, earlier: { cache } })
    running.push(router)
    return router
  }
  const old = await start()
  const store = await storeIn(folder)
  onTestFinished(async () => {
    released.resolve()
    await store.close()
    for (const router of running) await router.stop(1_000)
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const post = (url: string, secret: string, body: object, signal: AbortSignal | null = null) =>
    fetch(url + endpoints.chat, {
      method: 'POST',
      // A kept connection that the old process has accepted while both listened would keep that running.
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(body),
      signal,
    })
  // Enough for the call, but not for another one as large beside it.
  const key = await newKey(store, { monthlyLimitNano: 300_000_000n })
  const leaving = new AbortController()
  const reader = (await post(old.url, key.secret, body, leaving.signal)).body?.getReader()
  const text = new TextDecoder()
  for (let read = ''; !read.includes(words); ) {
    const { done, value } = (await within(10_000, 'the text', reader?.read() ?? Promise.reject())) ?? {}
    if (done) throw new Error('an answer without its text')
    read += text.decode(value, { stream: true })
  }
  leaving.abort()
  await reader?.read().catch(() => {})
  const takeOver = () => start(Number(new URL(old.url).port))
  const rows = async () => await Array.fromAsync(store.ledger.each({ key: key.id }))
  const again = ({ url }: Router) => post(url, key.secret, body)
  return { old, key, takeOver, release: released.resolve, rows, again, store }
}

test('an answer that is read for its usage is charged by it after a takeover, and its money is held until then', async () => {
  const { old, key, takeOver, release, rows, again, store } = await leftBehind({ budget: { wait_for_usage: '10m' } })
  const next = await takeOver()
  const refused = await again(next)
  expect(refused.status).toBe(402)
  await refused.text()
  expect(await rows()).toEqual([])
  release()
  await eventually(async () => expect(await rows()).toHaveLength(1))
  expect((await rows())[0]?.cost).toMatchObject({ nanoUsd: billOf(thought) })
  expect((await rows())[0]?.cost.estimated).toBeUndefined()
  expect(await store.spend.ofKey(key.id, Date.now())).toBe(BigInt(billOf(thought)))
  await within(10_000, 'the end of the old process', old.retired)
})

test('without usage it is charged by an estimate in time, and the old process ends', slow, async () => {
  const { old, takeOver, rows } = await leftBehind({ budget: { wait_for_usage: '1s' } })
  await takeOver()
  await within(limit(5_000), 'the end of the old process', old.retired)
  await eventually(async () => expect(await rows()).toHaveLength(1))
  expect((await rows())[0]?.cost.estimated).toBe(true)
  expect((await rows())[0]?.usage.output).toBeGreaterThanOrEqual(90)
})
