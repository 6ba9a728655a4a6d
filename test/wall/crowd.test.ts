import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { pause } from '../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'
import { slow } from '../helpers/slow.ts'
import { eventually, limit } from '../helpers/time.ts'
import { chat } from './clients/chat.ts'
import { call, type Seen } from './clients/client.ts'
import { outcomeOf } from './judge.ts'
import { type RouterProcess, startProcess } from './process.ts'
import { type Simulator, startSimulator } from './simulator/server.ts'
import { reloadProblems, stopProblems } from './strain.ts'

let simulator: Simulator
let router: TestRouter

const manifest = (slug: string, url: string, price = 1) => `slug: ${slug}
name: Faulty
base_url: ${url}/v1
auth: { scheme: none }
dialect: openai-chat
unknown_models: pass
models:
  "*": { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.00000${price}, output_price: 0.000002 }] }
`

async function begin(): Promise<TestRouter> {
  return await testRouter({
    files: {
      'providers/faulty.yaml': manifest('faulty', simulator.url),
      // What is done to the credential of one is nothing to the other.
      'providers/steady.yaml': manifest('steady', simulator.url),
    },
    settings: { routing: {}, health: {} },
    // Each thread finds out by itself who is busy.
    threads: 1,
  })
}

beforeAll(async () => {
  simulator = await startSimulator()
  router = await begin()
})
beforeEach(() => simulator.journal.reset())
afterAll(async () => {
  await router?.end()
  await simulator?.close()
})

const ask = (model: string, caller: string, { at = router } = {}): Promise<Seen> =>
  call({ url: at.url, key: testKey, limitMs: limit(30_000) }, chat, {
    model: `steady/${model}`,
    text: `Count. (case:${caller})`,
    stream: true,
  })

const isWhole = (seen: Seen) => outcomeOf({ mode: 'streamed' }, seen).of === 'complete' && seen.wrong.length === 0

test('twenty calls that wait for one busy target spread out after the time that it named', async () => {
  const caller = 'twenty'
  const model = '429-once-retry-after-1'
  const first = ask(model, caller)
  await eventually(() => expect(simulator.journal.entries({ caller })).toHaveLength(1))
  await pause(20)
  const others = Array.from({ length: 20 }, () => ask(model, caller))
  const seen = await Promise.all([first, ...others])
  expect(seen.filter((one) => !isWhole(one))).toEqual([])
  const [busy, ...later] = simulator.journal.entries({ caller }).map(({ at }) => at)
  const waits = later.map((at) => at - (busy ?? 0))
  expect(waits).toHaveLength(21)
  // Timers may end a millisecond early.
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(990)
  expect(new Set(waits.map((ms) => Math.floor(ms / 10))).size).toBeGreaterThanOrEqual(8)
})

describe('official SDKs, which try again by themselves', () => {
  const hidden = () => ({ role: 'user' as const, content: 'Hi' })
  const openai = () => new OpenAI({ baseURL: `${router.url}/v1`, apiKey: testKey })
  const anthropic = () => new Anthropic({ baseURL: router.url, apiKey: testKey })
  const sdks = {
    'chat completions': (model: string) => openai().chat.completions.create({ model, messages: [hidden()] }),
    'streamed chat completions': (model: string) =>
      openai().chat.completions.create({ model, messages: [hidden()], stream: true }),
    responses: (model: string) => openai().responses.create({ model, input: 'Hi', store: false }),
    messages: (model: string) => anthropic().messages.create({ model, max_tokens: 100, messages: [hidden()] }),
  }
  const permanent = {
    '400-always': 400,
    '401-always': 502,
    '403-always': 502,
    '404-always': 404,
    quota: 502,
    'context-length': 400,
    'content-policy': 400,
    '307-always': 502,
  }

  test.each(Object.keys(sdks))('%s: a failure that another try cannot cure is asked for once', async (name) => {
    const create = sdks[name as keyof typeof sdks]
    for (const [fault, status] of Object.entries(permanent)) {
      const model = `${fault}~${name.replaceAll(' ', '-')}`
      await expect(create(`faulty/${model}`), fault).rejects.toMatchObject({ status })
      expect([fault, simulator.journal.entries({ target: model }).length]).toEqual([fault, 1])
    }
  })

  test.each(Object.keys(sdks))(
    '%s: a failure that may pass is tried again, and each try reaches the provider',
    async (name) => {
      const create = sdks[name as keyof typeof sdks]
      const model = `503-always~${name.replaceAll(' ', '-')}`
      await expect(create(`steady/${model}`)).rejects.toMatchObject({ status: name === 'messages' ? 529 : 502 })
      // The router itself tries once more in the first two of three tries; then it knows that the provider is down.
      expect(simulator.journal.entries({ target: model })).toHaveLength(5)
    },
  )
})

test('a stop under 200 streams lets those end that can in time, and tells the others', slow, async () => {
  const stopped = await begin()
  const streams = Array.from({ length: 200 }, (_, n) =>
    ask(n % 2 === 0 ? 'token-each-10ms' : 'silent-after-20', `stop-${n}`, { at: stopped }),
  )
  await eventually(() => expect(simulator.journal.entries()).toHaveLength(200))
  const stopping = stopped.stop(limit(3_000))
  const seen = await Promise.all(streams)
  await stopping
  await stopped.end()
  const outcomes = seen.map((one) => outcomeOf({ mode: 'streamed' }, one))
  expect(outcomes.flatMap(({ problems }) => problems)).toEqual([])
  expect(outcomes.filter(({ of }, n) => of !== (n % 2 === 0 ? 'complete' : 'error'))).toEqual([])
  await eventually(() => expect(simulator.journal.entries().filter(({ endedAt }) => endedAt === undefined)).toEqual([]))
})

describe('a router in a process of its own', slow, () => {
  let process: RouterProcess

  beforeAll(async () => {
    process = await startProcess(simulator.url, limit(30_000))
  })
  afterAll(() => process?.end())

  test('files that change all the time under load cost no call', async () => {
    const { calls, reloads, problems } = await reloadProblems(process, { seconds: 2, callers: 4 })
    expect(problems).toEqual([])
    expect(calls).toBeGreaterThan(4)
    expect(reloads).toBeGreaterThan(1)
  })

  test('it ends all of 200 streams properly when it is told to stop, and exits with 0', async () => {
    const models = { 'token-each-10ms': 'complete', 'token-each-30ms': 'complete' } as const
    expect(await stopProblems(process, simulator.journal, { of: 200, models })).toEqual([])
  })
})
