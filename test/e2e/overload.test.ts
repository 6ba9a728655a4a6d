import { Agent, request as httpRequest } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { answerJson, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../helpers/router.ts'

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

async function burst(count: number, model: string) {
  most = { narrow: 0, wide: 0, all: 0 }
  const answers = await Promise.all(
    Array.from({ length: count }, () => router.call('/v1/chat/completions', body(model))),
  )
  const statuses: { [status: number]: number } = {}
  for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1
  return { answers, statuses }
}

test('a target gets no more calls at once than its limit; those that do not fit are told when to come again', async () => {
  const { answers, statuses } = await burst(15, 'narrow/m1')
  expect(most.narrow).toBeLessThanOrEqual(3)
  // Six may wait, the others may not; on a slow machine some of the six wait too long, or the others come later.
  expect((statuses[200] ?? 0) + (statuses[429] ?? 0)).toBe(15)
  expect(statuses[429]).toBeGreaterThanOrEqual(1)
  expect(statuses[200]).toBeGreaterThanOrEqual(3)
  const refused = answers.find(({ status }) => status === 429)
  expect(refused?.headers.get('retry-after')).toBe('1')
  expect(refused?.headers.get('x-should-retry')).toBeNull()
  expect((await refused?.json()) as object).toMatchObject({ error: { origin: 'router', code: 'rate_limited' } })
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
    await pause(400)
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
