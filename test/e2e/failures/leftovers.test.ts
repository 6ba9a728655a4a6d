import { describeEach } from '../../helpers/slow.ts'
import '../../helpers/fixed-seed.ts'
import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RunningRequests } from '../../../src/http/running-requests.ts'
import type { Target } from '../../../src/manifest/target.ts'
import { Circuit } from '../../../src/routing/health/circuit.ts'
import { ConcurrencyLimiter } from '../../../src/routing/health/concurrency-limiter.ts'
import { RetryBudget } from '../../../src/routing/health/retries.ts'
import { Measurements } from '../../../src/routing/measurements.ts'
import { Deadlines, type Limited } from '../../../src/upstream/http/deadlines.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { eventually } from '../../helpers/time.ts'

// However calls end, and wherever they are by then, nothing of them is left: no money held, no place, no trial, no exchange, no listener.

const chunk = (content: string, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', created: 1, model: 'm1', choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`

/** What a provider does with a call. */
const manners = {
  answers: (response, stream, path) => {
    if (path.endsWith('/embeddings')) {
      answerJson(response, { data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 1, total_tokens: 1 } })
    } else if (path.endsWith('/speech')) {
      response.writeHead(200, { 'content-type': 'audio/mpeg' }).write('one')
      response.end('two')
    } else if (stream) {
      beginStream(response)
      response.end(`${chunk('one ')}${chunk('two', 'stop')}data: [DONE]\n\n`)
    } else {
      const message = { role: 'assistant', content: 'one two' }
      answerJson(response, {
        id: 'c',
        created: 1,
        model: 'm1',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
      })
    }
  },
  fails: (response) => answerJson(response, { error: { message: 'No.' } }, 500),
  refuses: (response) => answerJson(response, { error: { message: 'No.' } }, 400),
  is_busy: (response) => answerJson(response, { error: { message: 'No.' } }, 429, { 'retry-after-ms': '30' }),
  is_silent: () => {},
  opens: (response) => {
    beginStream(response)
    response.write(chunk(''))
  },
  stalls: (response) => {
    beginStream(response)
    response.write(chunk('one '))
  },
  cuts: (response, _, path) => {
    if (path.endsWith('/speech')) response.writeHead(200, { 'content-type': 'audio/mpeg' })
    else beginStream(response)
    response.write(chunk('one '), () => response.destroy())
  },
  resets: (response) => response.destroy(),
  breaks: (response) => {
    beginStream(response)
    response.end(`${chunk('one ')}data: {"error": {"message": "No."}, "usage": {"prompt_tokens": 1}}\n\n`)
  },
  cannot_be_read: (response, stream) => {
    if (!stream) return answerJson(response, { choices: 'none' })
    beginStream(response)
    response.end('data: {"choices": [{"index": 0, "delta": {"content": 7}}]}\n\ndata: nothing\n\n')
  },
} satisfies { [manner: string]: (response: ServerResponse, stream: boolean, path: string) => void }
type Manner = keyof typeof manners
const allManners = Object.keys(manners) as Manner[]

const slugs = ['one', 'two', 'three'] as const
const policies = ['error', 'hold', 'continue', 'restart'] as const
/** What is sent to each path, beside a model and what providers are to do. */
const apis = {
  '/v1/chat/completions': { max_tokens: 10 },
  '/v1/messages': { max_tokens: 10 },
  '/v1/responses': { max_output_tokens: 10 },
  '/v1/embeddings': {},
  '/v1/audio/speech': { voice: 'v' },
}
/** Operations have models of their own. */
const models: { [path: string]: string | undefined } = { '/v1/embeddings': 'e1', '/v1/audio/speech': 's1' }

/** What is seen of the insides of a router in this thread. */
const seen = {
  gates: new Set<ConcurrencyLimiter>(),
  circuits: new Set<Circuit>(),
  speeds: new Map<Measurements, Set<Target>>(),
  waiting: 0,
  open: new Set<Limited>(),
  signals: [] as AbortSignal[],
}

function watchInsides(): void {
  const { enter } = ConcurrencyLimiter.prototype
  vi.spyOn(ConcurrencyLimiter.prototype, 'enter').mockImplementation(function (this: ConcurrencyLimiter, ...args) {
    seen.gates.add(this)
    return enter.apply(this, args)
  })
  const { beginTrial } = Circuit.prototype
  vi.spyOn(Circuit.prototype, 'beginTrial').mockImplementation(function (this: Circuit) {
    seen.circuits.add(this)
    beginTrial.call(this)
  })
  const { begin } = Measurements.prototype
  vi.spyOn(Measurements.prototype, 'begin').mockImplementation(function (this: Measurements, target, ...args) {
    seen.speeds.set(this, (seen.speeds.get(this) ?? new Set()).add(target))
    return begin.call(this, target, ...args)
  })
  const { wait } = RetryBudget.prototype
  vi.spyOn(RetryBudget.prototype, 'wait').mockImplementation(async function (this: RetryBudget, ...args) {
    seen.waiting++
    try {
      return await wait.apply(this, args)
    } finally {
      seen.waiting--
    }
  })
  const { add, delete: remove } = Deadlines.prototype
  vi.spyOn(Deadlines.prototype, 'add').mockImplementation(function (this: Deadlines, limited) {
    seen.open.add(limited)
    add.call(this, limited)
  })
  vi.spyOn(Deadlines.prototype, 'delete').mockImplementation(function (this: Deadlines, limited) {
    seen.open.delete(limited)
    remove.call(this, limited)
  })
  const { begin: beginRequest } = RunningRequests.prototype
  vi.spyOn(RunningRequests.prototype, 'begin').mockImplementation(function (this: RunningRequests, response) {
    const request = beginRequest.call(this, response)
    seen.signals.push(request.signal)
    return request
  })
}

/** How much of each kind is left. */
function leftovers() {
  const underWay = [...seen.speeds].flatMap(([speeds, targets]) => [...targets].map((one) => speeds.of(one).underWay))
  return {
    inGates: [...seen.gates].reduce((sum, { running, waiting }) => sum + running + waiting, 0),
    trials: [...seen.circuits].filter(({ isFree }) => !isFree).length,
    measured: underWay.reduce((sum, count) => sum + count, 0),
    waiting: seen.waiting,
    exchanges: seen.open.size,
    listeners: seen.signals.reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0),
    atProviders,
  }
}

const nothing = { inGates: 0, trials: 0, measured: 0, waiting: 0, exchanges: 0, listeners: 0, atProviders: 0 }

let providers: LoopbackProvider[]
let atProviders = 0

beforeEach(async () => {
  watchInsides()
  providers = await Promise.all(
    slugs.map((_, place) =>
      loopbackProvider(({ body, path }, response) => {
        const [, told = ''] = /\[([a-z_ ]+)\]/.exec(JSON.stringify(body)) ?? []
        atProviders++
        response.on('close', () => atProviders--)
        manners[(told.split(' ')[place] || 'answers') as Manner](response, body.stream === true, path)
      }),
    ),
  )
})

afterEach(async () => {
  vi.restoreAllMocks()
  for (const kept of [seen.gates, seen.circuits, seen.speeds, seen.open]) kept.clear()
  seen.signals.length = 0
  for (const provider of providers) await provider.close()
})

const manifest = (slug: string, url: string) => `slug: ${slug}
name: ${slug}
base_url: ${url}
auth: { scheme: none }
dialect: openai-chat
timeouts: { between_events: 300ms, first_event: 300ms, whole: 300ms }
traits: [{ match: ".*", facts: { prefill: true } }]
endpoints:
  embed: {}
  speech: {}
  chat:
    patch:
      request: '$contains($string(messages), "unsendable ${slug}") ? $error("No.") : $'
models:
  m1: { api: chat, pricing: [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0.000001 }] }
  e1: { api: embedding, pricing: [{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0 }] }
  s1: { api: speech, other_prices: { per_character: 0.000001 } }
`

const targetsOf = (id: string) => slugs.map((slug) => `${slug}/${id}`)
const times = { first_event: '100ms', total: '1s' }

async function routerWith(threads: number): Promise<TestRouter> {
  return await testRouter({
    threads,
    files: Object.fromEntries(
      slugs.map((slug, at) => [`providers/${slug}.yaml`, manifest(slug, providers[at]?.url ?? '')]),
    ),
    providers: Object.fromEntries(slugs.map((slug) => [slug, { limits: { concurrent: 2, queue: 3 } }])),
    settings: {
      server: { host: '127.0.0.1', port: 0, threads, keep_alive: 'early', limits: { concurrent: 12, queue: 5 } },
      routing: { retries: 1 },
      health: { consecutive_failures: 3, open_for: '50ms', max_open: '100ms', ramp_up: '50ms' },
      policies: Object.fromEntries([
        ...policies.map((on_cut) => [on_cut, { targets: targetsOf('m1'), on_cut, ...times }]),
        ...['e1', 's1'].map((id) => [id, { targets: targetsOf(id), ...times }]),
      ]),
    },
    keepAliveMs: 50,
  })
}

type Asked = {
  model: string
  path: keyof typeof apis
  stream: boolean
  does: Manner[]
  unsendable: string
  /** The client leaves after so many milliseconds, or stays. */
  leavesMs: number | null
  timeout: string | null
}

const anyManner = fc.constantFrom(...allManners)
/** Streams that break off when a part of them has been shown are as frequent as all else. */
const brokenOff = fc.constantFrom<Manner>('cuts', 'stalls', 'breaks')
const anyManners = fc.array(anyManner, { minLength: 3, maxLength: 3 })
const anyCall: fc.Arbitrary<Asked> = fc.record({
  model: fc.constantFrom(...policies, 'one'),
  path: fc.constantFrom(...(Object.keys(apis) as (keyof typeof apis)[])),
  stream: fc.constantFrom(true, true, false),
  does: fc.oneof(anyManners, fc.tuple(brokenOff, anyManner, anyManner)),
  unsendable: fc.constantFrom('', '', '', 'unsendable one', 'unsendable two'),
  leavesMs: fc.option(fc.integer({ min: 0, max: 250 }), { freq: 2 }),
  timeout: fc.constantFrom(null, null, '40ms', '200ms'),
})

/** Makes a call, and returns how it ended. */
async function make(router: TestRouter, key: string, call: Asked): Promise<string> {
  const { model, path, stream, does, unsendable, leavesMs, timeout } = call
  const text = `[${does.join(' ')}] ${unsendable}`
  const isChat = models[path] === undefined
  const said = ['/v1/chat/completions', '/v1/messages'].includes(path)
    ? { messages: [{ role: 'user', content: text }] }
    : { input: text }
  const leaver = new AbortController()
  const timer = leavesMs === null ? undefined : setTimeout(() => leaver.abort(), leavesMs)
  try {
    const response = await fetch(`${router.url}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(timeout !== null && { 'x-router-timeout': timeout }),
      },
      body: JSON.stringify({
        model: model === 'one' ? `one/${models[path] ?? 'm1'}` : (models[path] ?? model),
        ...(isChat && { stream }),
        ...apis[path],
        ...said,
      }),
      signal: leaver.signal,
    })
    await response.text()
    return String(response.status)
  } catch {
    return 'left'
  } finally {
    clearTimeout(timer)
  }
}

const mostUsd = 0.05

async function newKey(router: TestRouter): Promise<{ id: string; secret: string }> {
  const made = await router.call('/v1/manage/apikey', { name: 'k', monthly_limit: mostUsd })
  const { api_key_id: id, api_key: secret } = (await made.json()) as { api_key_id: string; api_key: string }
  return { id, secret }
}

/** What running calls hold of the money of a key, as a call is told that does not fit. */
async function heldOf(router: TestRouter, secret: string): Promise<string | undefined> {
  const body = { model: 'one/m1', max_tokens: 1_000_000, messages: [{ role: 'user', content: 'Hi' }] }
  const refused = await router.call('/v1/chat/completions', body, { authorization: `Bearer ${secret}` })
  expect(refused.status).toBe(402)
  return / ([\d.]+) USD reserved by running calls/.exec(await refused.text())?.[1]
}

async function expectNothingLeft(router: TestRouter, { id, secret }: { id: string; secret: string }): Promise<void> {
  await eventually(() => expect(leftovers()).toEqual(nothing))
  await eventually(async () => expect(Number(await heldOf(router, secret))).toBe(0))
  // No call runs any more: the only one that may run can.
  expect((await router.call(`/v1/manage/apikey/${id}/limits`, { concurrent_calls: 1 })).status).toBe(200)
  const well: Asked = {
    model: 'one',
    path: '/v1/chat/completions',
    stream: false,
    does: [],
    unsendable: '',
    leavesMs: null,
    timeout: null,
  }
  await eventually(async () => expect(await make(router, secret, well)).toBe('200'))
}

describeEach([1, 2], { slowIf: (threads) => threads > 1 })('%i threads', (threads) => {
  test('whatever providers and clients do, nothing is left', { timeout: 90_000 }, async () => {
    const router = await routerWith(threads)
    const endings = new Map<string, number>()
    const bursts = fc.asyncProperty(fc.array(anyCall, { minLength: 10, maxLength: 25 }), async (calls) => {
      const key = await newKey(router)
      for (const how of await Promise.all(calls.map((call) => make(router, key.secret, call)))) {
        endings.set(how, (endings.get(how) ?? 0) + 1)
      }
      await expectNothingLeft(router, key)
    })
    await fc.assert(bursts, { numRuns: threads === 1 ? 5 : 2, endOnFailure: true, interruptAfterTimeLimit: 30_000 })
    for (const how of ['200', '502', 'left']) expect(endings.get(how), how).toBeGreaterThan(0)
    await router.end()
  })
})

test('calls that are under way when files are read again, or the process stops, leave nothing', async () => {
  const router = await routerWith(1)
  const key = await newKey(router)
  const calls = fc.sample(anyCall, { numRuns: 20, seed: 7 })
  const made = Promise.all(calls.map((call) => make(router, key.secret, call)))
  for (let round = 0; round < 3; round++) {
    await pause(20)
    router.put('providers/one.yaml', `${manifest('one', providers[0]?.url ?? '')}# ${round}\n`)
  }
  await made
  await expectNothingLeft(router, key)
  const last = Promise.all(calls.map((call) => make(router, key.secret, { ...call, leavesMs: null })))
  await pause(30)
  await router.end()
  await last
  await eventually(() => expect(leftovers()).toEqual(nothing))
})
