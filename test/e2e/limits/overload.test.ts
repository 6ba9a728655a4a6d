import { Agent, request as httpRequest } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { eventually } from '../../helpers/time.ts'

const body = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 })
const reply = {
  id: 'c1',
  created: 1,
  model: 'm1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}
const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
models:
  m1: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0.000002 }] }
`

let provider: LoopbackProvider
let router: TestRouter
const atOnce = { narrow: 0, wide: 0, all: 0 }
let most = { ...atOnce }

beforeAll(async () => {
  provider = await loopbackProvider(async ({ path }, response) => {
    const counted = [path.startsWith('/narrow') ? 'narrow' : 'wide', 'all'] as const
    for (const name of counted) most[name] = Math.max(most[name], ++atOnce[name])
    await pause(50)
    for (const name of counted) atOnce[name]--
    answerJson(response, reply)
  })
  router = await testRouter({
    files: {
      'providers/narrow.yaml': manifest('narrow', `${provider.url}/narrow`),
      'providers/wide.yaml': manifest('wide', `${provider.url}/wide`),
    },
    providers: { narrow: { limits: { concurrent: 3, queue: 6 } } },
    settings: {
      server: { host: '127.0.0.1', port: 0, limits: { concurrent: 40, queue: 5 } },
      policies: { both: { targets: ['narrow/m1', 'wide/m1'] } },
    },
  })
})

afterAll(async () => {
  await router?.end()
  await provider?.close()
})

/** The sum of a metric over its samples, or over those with a label of this value. */
function metricValue(text: string, metric: string, label?: string): number {
  const samples = text.split('\n').filter((line) => line.startsWith(`${metric} `) || line.startsWith(`${metric}{`))
  const wanted = label === undefined ? samples : samples.filter((line) => line.includes(`"${label}"`))
  return wanted.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

async function burst(count: number, model: string) {
  most = { narrow: 0, wide: 0, all: 0 }
  const answers = await Promise.all(
    Array.from({ length: count }, () => router.call('/v1/chat/completions', body(model))),
  )
  const statuses: { [status: number]: number } = {}
  for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1
  return { answers, statuses }
}

describe('a target that is full', () => {
  let held: LoopbackProvider
  let own: TestRouter
  /** Ends the calls that the provider has. */
  let release: () => void
  let released: Promise<void>
  const begun: Promise<unknown>[] = []

  beforeAll(async () => {
    held = await loopbackProvider(async (_, response) => {
      await released
      answerJson(response, reply)
    })
    own = await testRouter({
      files: { 'providers/narrow.yaml': manifest('narrow', held.url) },
      providers: { narrow: { limits: { concurrent: 3, queue: 6 } } },
      // Each thread has its share of a limit.
      threads: 1,
    })
  })

  beforeEach(() => {
    held.received.length = 0
    ;({ promise: released, resolve: release } = Promise.withResolvers<void>())
  })

  afterEach(async () => {
    release()
    await Promise.all(begun.splice(0))
  })

  afterAll(async () => {
    await own?.end()
    await held?.close()
  })

  function calls(count: number) {
    const ended: Response[] = []
    const all = Array.from({ length: count }, async () => {
      const response = await own.call('/v1/chat/completions', body('narrow/m1'))
      ended.push(response)
      return response.status
    })
    begun.push(...all)
    return { ended, statuses: Promise.all(all) }
  }

  /** How many calls wait for the target. */
  async function waiting(): Promise<number> {
    return metricValue(await (await own.call('/metrics')).text(), 'inference_router_limit_waiting', 'narrow/m1')
  }

  test('is asked by as many calls as its limit; the others are told when to come again, after a second at most', async () => {
    const { ended, statuses } = calls(15)
    await eventually(() => expect(ended).toHaveLength(12))
    expect(held.received).toHaveLength(3)
    for (const refused of ended) {
      expect(refused.status).toBe(429)
      expect([refused.headers.get('retry-after'), refused.headers.get('x-should-retry')]).toEqual(['1', null])
      expect(await refused.json()).toMatchObject({ error: { origin: 'router', code: 'rate_limited' } })
    }
    release()
    expect((await statuses).toSorted()).toEqual([...Array(3).fill(200), ...Array(12).fill(429)])
    expect(held.received).toHaveLength(3)
  })

  // Calls wait a second at most: a machine that takes longer than that shows nothing.
  test('has its queue, and what does not fit in is refused at once', { retry: 5 }, async () => {
    const running = calls(3)
    await eventually(() => expect(held.received).toHaveLength(3))
    const queued = calls(6)
    await eventually(async () => expect(await waiting()).toBe(6))
    expect(await calls(1).statuses).toEqual([429])
    expect([running.ended, queued.ended]).toEqual([[], []])
    release()
    expect(await running.statuses).toEqual(Array(3).fill(200))
    expect(await queued.statuses).toEqual(Array(6).fill(200))
    expect(held.received).toHaveLength(9)
  })
})

test('calls that have another target go there instead of waiting', async () => {
  const { statuses } = await burst(15, 'both')
  expect(statuses).toEqual({ 200: 15 })
  expect(most.narrow).toBeLessThanOrEqual(3)
})

test('the server runs no more calls at once than its limit', async () => {
  const { statuses } = await burst(60, 'wide/m1')
  expect(most.all).toBeLessThanOrEqual(40)
  expect((statuses[200] ?? 0) + (statuses[429] ?? 0)).toBe(60)
  expect((await burst(20, 'wide/m1')).statuses).toEqual({ 200: 20 })
})

/** Calls that send the beginning of a body and no more, until they are ended. */
function stalledUploads(count: number, size: number) {
  const begin = () => {
    const headers = {
      authorization: `Bearer ${testKey}`,
      'content-type': 'application/json',
      'content-length': size,
    }
    const upload = httpRequest(`${router.url}/v1/chat/completions`, { method: 'POST', headers })
    upload.on('error', () => {})
    upload.write('{"model": "wide/m1", ')
    return upload
  }
  const uploads = Array.from({ length: count }, begin)
  return { end: () => uploads.map((upload) => upload.destroy()) }
}

test('uploads that stall take no places from other calls', async () => {
  const uploads = stalledUploads(60, 1_000)
  try {
    // As many as there are places have begun, and have given their places back.
    await eventually(async () => {
      const text = await (await router.call('/metrics')).text()
      expect(metricValue(text, 'inference_router_requests_running')).toBeGreaterThanOrEqual(40)
      expect(metricValue(text, 'inference_router_limit_running', 'server')).toBe(0)
    })
    expect((await burst(40, 'wide/m1')).statuses).toEqual({ 200: 40 })
  } finally {
    uploads.end()
  }
})

test('who is refused is refused before the body is read, and can go on calling on the same connection', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const running = burst(60, 'wide/m1')
  const own = new Set<unknown>()
  const statuses = new Set<number | undefined>()
  try {
    for (let index = 0; index < 5; index++) {
      const { promise, resolve } = Promise.withResolvers<number | undefined>()
      const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' }
      const call = httpRequest(`${router.url}/v1/chat/completions`, { method: 'POST', headers, agent }, (response) => {
        own.add(response.socket)
        response.resume().on('end', () => resolve(response.statusCode))
      })
      call.end(JSON.stringify(body('wide/m1')))
      statuses.add(await promise)
    }
    expect(own.size).toBe(1)
    expect([...statuses].every((status) => status === 200 || status === 429)).toBe(true)
  } finally {
    agent.destroy()
    await running
  }
})
