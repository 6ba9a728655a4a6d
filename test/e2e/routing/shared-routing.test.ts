import { rmSync } from 'node:fs'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Router, startRouter } from '../../../src/app/router.ts'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { cache, routerFolder, testKey } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'

// What one thread finds out about providers, the others know when the next call arrives, and so does the process that takes over.

let provider: LoopbackProvider
let made: ReturnType<typeof routerFolder>
const running: Router[] = []

const manifest = (url: string) => `slug: maker
name: Maker
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models:
  fails: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
  works: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }] }
`

beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => {
    const { model } = body as { model: string }
    if (model === 'fails') return answerJson(response, { error: { message: 'The kitchen is on fire.' } }, 500)
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Gone' }, finish_reason: 'stop' }]
    const usage = { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 }
    answerJson(response, { id: 'c', object: 'chat.completion', created: 1, model, choices, usage })
  })
})

beforeEach(() => {
  provider.received.length = 0
})

afterEach(async () => {
  for (const router of running.splice(0)) await router.stop(1_000)
  rmSync(made.folder, { recursive: true, force: true })
})

afterAll(() => provider.close())

async function start({ health, port = 0 }: { health?: object; port?: number } = {}): Promise<Router> {
  if (running.length === 0) {
    const settings = { health: health ?? { consecutive_failures: 1, open_for: '60s', max_open: '60s' } }
    made = routerFolder({ files: { 'providers/maker.yaml': manifest(provider.url) }, settings, threads: 2 })
  }
  const env = { INFERENCE_ROUTER_ADMIN_KEY: testKey }
  const how = { configPath: made.configPath, port, takeOver: true, env, log: pino({ level: 'silent' }) }
  const router = await startRouter({ ...how, earlier: { cache } })
  running.push(router)
  return router
}

const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json', connection: 'close' }

/** Calls one after the other, each on a connection of its own, so that the system gives them to different threads. Who was asked. */
async function askedBy({ url }: Router, calls: number, more: object = {}): Promise<Record<string, number>> {
  provider.received.length = 0
  for (let call = 0; call < calls; call++) {
    const messages = [{ role: 'user', content: `Go on, ${call}` }]
    const body = JSON.stringify({ model: 'maker/fails', models: ['maker/works'], messages, ...more })
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Gone')])
  }
  const models = provider.received.map(({ body }) => (body as { model: string }).model)
  return Object.fromEntries([...Map.groupBy(models, String)].map(([model, all]) => [model, all.length]))
}

async function degraded({ url }: Router): Promise<{ name: string; state: string }[]> {
  const response = await fetch(`${url}/v1/manage/health`, { headers })
  return ((await response.json()) as { degraded: { name: string; state: string }[] }).degraded
}

test('a target that failed for one thread is asked by none, and those who ask for the health are told at once', async () => {
  const router = await start()
  expect(await askedBy(router, 1)).toEqual({ fails: 1, works: 1 })
  expect(await degraded(router)).toMatchObject([{ name: 'maker/fails', state: 'open' }])
  expect(await askedBy(router, 16)).toEqual({ works: 16 })
  const { targets } = (await (await fetch(`${router.url}/v1/manage/targets`, { headers })).json()) as {
    targets: { model: string }[]
  }
  expect(targets.find(({ model }) => model === 'maker/fails')).toMatchObject({
    attempts: 1,
    failed: 1,
    last_failure: { provider_message: 'The kitchen is on fire.' },
  })
  expect(targets.find(({ model }) => model === 'maker/works')).toMatchObject({ attempts: 17, succeeded: 17 })
})

test('a session stays where it had to go, whichever thread gets the call', slow, async () => {
  const router = await start({ health: { consecutive_failures: 1_000_000, min_calls: 1_000_000 } })
  expect(await askedBy(router, 16, { session_id: 'a session' })).toEqual({ fails: 1, works: 16 })
})

test('a thread that takes the place of another one knows what the others know', slow, async () => {
  const router = await start()
  await askedBy(router, 1)
  for (let place = 0; place < 2; place++) {
    await router.threads()[0]?.terminate()
    await expect.poll(() => router.threads().length).toBe(2)
    await expect.poll(async () => (await degraded(router).catch(() => [])).length).toBe(1)
  }
  expect(await askedBy(router, 16)).toEqual({ works: 16 })
})

test('so does the process that takes over', slow, async () => {
  const first = await start()
  await askedBy(first, 1)
  const next = await start({ port: Number(new URL(first.url).port) })
  expect(await degraded(next)).toMatchObject([{ name: 'maker/fails', state: 'open' }])
  expect(await askedBy(next, 16)).toEqual({ works: 16 })
})
