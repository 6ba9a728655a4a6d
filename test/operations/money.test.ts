import { testInRuns } from '../helpers/slow.ts'
import '../helpers/fixed-seed.ts'
import type { ServerResponse } from 'node:http'
import fc from 'fast-check'
import { afterAll, beforeAll, expect } from 'vitest'
import type { CallRecord } from '../../src/core/call.ts'
import type { Store } from '../../src/store/open.ts'
import { newKey, storeIn } from '../e2e/money/budget-world.ts'
import { answerJson, type LoopbackProvider, loopbackProvider, pause, type Received } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { wav } from '../media/sounds.ts'
import { until } from './speech-world.ts'

// Any calls for operations at once, whatever their providers and clients do: limits hold, each call has one ending, nothing that was
// served is free, and nothing stays reserved.

/** A token costs 1,000 nano-USD everywhere, a second a hundred of them. */
const tokenNano = 1_000n
const perToken = [{ prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 1e-6 }]
const kinds = {
  embed: { api: 'embedding', pricing: perToken },
  image: { api: 'image', pricing: perToken },
  draw: { api: 'image', other_prices: { per_image: 5e-4 } },
  decide: { api: 'decision', pricing: perToken },
  speak: { api: 'speech', other_prices: { per_second: 1e-4 } },
  say: { api: 'speech', pricing: perToken },
  hear: { api: 'transcription', other_prices: { per_second: 1e-4 } },
  write: { api: 'transcription', pricing: perToken },
  rank: { api: 'rerank', other_prices: { per_query: 2e-3 } },
  sort: { api: 'rerank', pricing: perToken },
}
type Kind = keyof typeof kinds

const manifest = (slug: string, url: string) =>
  JSON.stringify({
    ...{ slug, name: slug, base_url: url, auth: { scheme: 'none' }, dialect: 'openai-chat' },
    endpoints: {
      embed: { batch: { field: 'input', size: 2 } },
      image: { stream: {} },
      speech: { stream: {} },
      transcribe: { stream: {} },
      decide: {},
      rerank: {},
    },
    models: kinds,
  })

/** What a provider does with a call: the text of the call says it. */
const manners = ['honest', 'huge', 'negative', 'absent', 'wrong', 'garbage', 'fails', 'bills', 'cuts', 'slow'] as const
type Manner = (typeof manners)[number]

let providers: LoopbackProvider[]
let router: TestRouter
let store: Store
/** One for each run of both suites. The router knows an organization's groups from its first call on. */
let groups: { id: string; limitNano: bigint }[]
const runs = { fast: 3, slow: 12 }

beforeAll(async () => {
  providers = await Promise.all(
    ['one', 'two'].map((slug) => loopbackProvider((request, to) => serve(slug, request, to))),
  )
  const files = ['one', 'two'].map((slug, at) => [`providers/${slug}.yaml`, manifest(slug, providers[at]?.url ?? '')])
  const policies = Object.fromEntries(
    Object.keys(kinds).map((kind) => [`both-${kind}`, { targets: [`one/${kind}`, `two/${kind}`] }]),
  )
  router = await testRouter({ files: Object.fromEntries(files), settings: { policies } })
  store = await storeIn(router.folder)
  await store.organizations.credit(await organization(), 1_000_000_000_000n)
  groups = await Promise.all(
    Array.from({ length: runs.fast + runs.slow }, async (_, index) => {
      const limitNano = BigInt(1 + index * 9_000) * tokenNano
      const name = `group ${index}`
      return {
        id: (await store.groups.create({ organization: await organization(), name, monthlyLimitNano: limitNano })).id,
        limitNano,
      }
    }),
  )
})

afterAll(async () => {
  await store?.close()
  await router?.end()
  for (const provider of providers ?? []) await provider.close()
})

const organization = async () => (await store.organizations.list())[0]?.id ?? ''

async function serve(slug: string, { path, body }: Received, response: ServerResponse): Promise<void> {
  const asked = JSON.stringify(body, (name, value) => (name === 'file' || Buffer.isBuffer(value) ? '' : value))
  let manner = manners.find((name) => asked.includes(`[${name}]`)) ?? 'honest'
  if (slug === 'two' && manner !== 'huge') manner = 'honest'
  if (manner === 'slow') await pause(30)
  const usage = usageOf(manner)
  if (manner === 'fails') return answerJson(response, { error: { message: 'No.' } }, 500)
  if (manner === 'bills') return answerJson(response, { error: { message: 'No.' }, usage: usageOf('huge') })
  if (manner === 'garbage') return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":')
  const streams = asked.includes('"stream":true') || asked.includes('["stream","true"]') || asked.includes('"sse"')
  if (manner === 'wrong') return answerJson(response, { data: 7, answers: 'x', text: 4, usage: 'much' })
  if (streams) return sendEvents(response, eventsAt(path, usage), manner === 'cuts')
  if (path === '/audio/speech') return sendAudio(response, manner)
  if (manner === 'cuts') {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{')
    return void setTimeout(() => response.destroy(), 5)
  }
  answerJson(response, { ...replyAt(path, body), usage })
}

function usageOf(manner: Manner): object | undefined {
  if (manner === 'absent') return undefined
  const count = { huge: 9e9, negative: -70 }[manner as string] ?? 6
  const tokens = { prompt_tokens: count, input_tokens: count, output_tokens: count, total_tokens: 2 * count }
  return { ...tokens, seconds: count, images: count, input_token_details: { audio_tokens: 1 } }
}

function replyAt(path: string, body: { input?: unknown[]; n?: number; questions?: unknown[] }): object {
  if (path === '/embeddings') return { data: [body.input].flat().map((_, index) => ({ index, embedding: [1, 2] })) }
  if (path === '/images/generations') return { data: Array.from({ length: body.n ?? 1 }, () => ({ b64_json: 'UElY' })) }
  if (path === '/rerank') return { results: [{ index: 0, relevance_score: 0.5 }] }
  if (path === '/decisions') return { answers: body.questions?.map(() => ({ type: 'predicate', probability: 0.5 })) }
  return { text: 'Nothing was said.' }
}

function eventsAt(path: string, usage: object | undefined): object[] {
  if (path === '/images/generations') {
    const completed = { type: 'image_generation.completed', b64_json: 'UElY' }
    return [
      { type: 'image_generation.partial_image', b64_json: 'UElY' },
      { ...completed, ...(usage && { usage }) },
    ]
  }
  const isSpeech = path === '/audio/speech'
  const delta = isSpeech
    ? { type: 'speech.audio.delta', audio: 'AAAA' }
    : { type: 'transcript.text.delta', delta: 'No' }
  const done = isSpeech ? { type: 'speech.audio.done' } : { type: 'transcript.text.done', text: 'Nothing.' }
  return [delta, delta, { ...done, ...(usage && { usage }) }]
}

async function sendEvents(response: ServerResponse, events: object[], isCut: boolean): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of isCut ? events.slice(0, -1) : events) {
    response.write(`data: ${JSON.stringify(event)}\n\n`)
    await pause(3)
  }
  if (isCut) response.destroy()
  else response.end()
}

async function sendAudio(response: ServerResponse, manner: Manner): Promise<void> {
  response.writeHead(200, { 'content-type': 'audio/pcm' })
  response.write(Buffer.alloc(manner === 'huge' ? 3_000_000 : 2_000))
  await pause(5)
  if (manner === 'cuts') response.destroy()
  else response.end(Buffer.alloc(1_000))
}

/** One call: which model by which name, what its provider does, how much is asked for, who pays, and when its client leaves. */
type Asked = {
  kind: Kind
  both: boolean
  manner: Manner
  count: number
  stream: boolean
  payer: number
  leavesMs: number | undefined
}

const anyCall: fc.Arbitrary<Asked> = fc.record({
  kind: fc.constantFrom(...(Object.keys(kinds) as Kind[])),
  both: fc.boolean(),
  manner: fc.constantFrom(...manners),
  count: fc.integer({ min: 1, max: 5 }),
  stream: fc.boolean(),
  payer: fc.nat(3),
  leavesMs: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.nat(60) }),
})

const anyLimit = fc.integer({ min: 1, max: 60_000 }).map((count) => BigInt(count) * tokenNano)

let counted = 0
let world = 0

/** Makes a call; the status, or undefined where the client left first. */
async function make({ kind, both, manner, count, stream, leavesMs }: Asked, secret: string): Promise<Made> {
  const id = `call-${++counted}`
  const model = `${both ? 'both-' : 'one/'}${kind}`
  const { path, body } = bodyOf(kind, { model, text: `[${manner}] some words`, count, stream })
  const isForm = body instanceof FormData
  const signal = leavesMs === undefined ? undefined : AbortSignal.timeout(leavesMs)
  const headers = {
    authorization: `Bearer ${secret}`,
    'x-request-id': id,
    ...(!isForm && { 'content-type': 'application/json' }),
  }
  const init = { method: 'POST', headers, body: isForm ? body : JSON.stringify(body), ...(signal && { signal }) }
  try {
    const response = await fetch(router.url + path, init)
    const attempts = Number(response.headers.get('x-router-attempts') ?? 0)
    await response.arrayBuffer().catch(() => {})
    return { id, status: signal?.aborted ? undefined : response.status, attempts }
  } catch {
    return { id, status: undefined, attempts: 0 }
  }
}

type Made = { id: string; status: number | undefined; attempts: number }

function bodyOf(
  kind: Kind,
  { model, text, count, stream }: { model: string; text: string; count: number; stream: boolean },
) {
  switch (kind) {
    case 'embed':
      return { path: '/v1/embeddings', body: { model, input: Array.from({ length: count }, () => text) } }
    case 'image':
    case 'draw':
      return {
        path: '/v1/images/generations',
        body: { model, prompt: text, size: '1024x1024', ...(stream ? { stream } : { n: count }) },
      }
    case 'decide': {
      const questions = Array.from({ length: count }, () => ({ type: 'predicate', instructions: 'Is it?' }))
      return { path: '/v1/decisions', body: { model, input: text, questions } }
    }
    case 'rank':
    case 'sort': {
      const documents = Array.from({ length: count }, () => 'A document.')
      return { path: '/v1/rerank', body: { model, query: text, documents } }
    }
    case 'speak':
    case 'say': {
      const format = { response_format: 'pcm', ...(stream && { stream_format: 'sse' }) }
      return { path: '/v1/audio/speech', body: { model, input: text, voice: 'alloy', ...format } }
    }
    default: {
      const form = new FormData()
      for (const [name, value] of Object.entries({ model, prompt: text, ...(stream && { stream: 'true' }) })) {
        form.append(name, value)
      }
      form.append('file', new File([new Uint8Array(wav(count))], 'sound.wav', { type: 'audio/wav' }))
      return { path: '/v1/audio/transcriptions', body: form }
    }
  }
}

/** Who pays: keys with a limit, one of them and another in a group with a limit, and one that only the balance limits. */
async function payersWith(keyLimit: bigint) {
  const group = groups[world++] as { id: string; limitNano: bigint }
  const groupId = group.id
  const keys = [
    await newKey(store, { monthlyLimitNano: keyLimit }),
    await newKey(store, { monthlyLimitNano: keyLimit, groupId }),
    await newKey(store, { groupId }),
    await newKey(store),
  ]
  return { keys, group }
}

const spent = (key: { id: string }) => store.spend.ofKey(key.id, Date.now())

/** Whether a key can spend all that it has left: an embedding is bounded by its bytes and eight more. */
async function canSpend({ secret }: { secret: string }, leftNano: bigint): Promise<boolean> {
  const bytes = Number(leftNano / tokenNano) - 8
  if (bytes < 1) return true
  const headers = { authorization: `Bearer ${secret}` }
  const response = await router.call('/v1/embeddings', { model: 'two/embed', input: 'x'.repeat(bytes) }, headers)
  await response.arrayBuffer()
  return response.status === 200
}

async function untilAsync(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error('Something stays reserved.')
    await pause(20)
  }
}

testInRuns(
  'any calls at once: no limit is passed, each call has one ending, nothing is served free, nothing stays reserved',
  runs,
  async (numRuns) => {
    const scenario = fc.asyncProperty(
      anyLimit,
      fc.array(anyCall, { minLength: 12, maxLength: 30 }),
      async (keyLimit, calls) => {
        const { keys, group } = await payersWith(keyLimit)
        const keyOf = (index: number) => keys[index] as { id: string; secret: string }
        const made = await Promise.all(calls.map((call) => make(call, keyOf(call.payer).secret)))
        const left = async (index: number) => {
          const ofKey = keyLimit - (await spent(keyOf(index)))
          const ofGroup = group.limitNano - (await store.spend.ofGroup(group.id, Date.now()))
          return index === 0 ? ofKey : index === 2 ? ofGroup : ofKey < ofGroup ? ofKey : ofGroup
        }
        const rowsOf = async (id: string) =>
          (await Promise.all(keys.map(async (key) => await Array.fromAsync(store.ledger.each({ key: key.id })))))
            .flat()
            .filter(({ requestId }) => requestId === id)
        for (const one of made) if (isAdmitted(one)) await until(async () => endingsOf(await rowsOf(one.id)) === 1)
        for (const index of [0, 1, 2]) await untilAsync(async () => canSpend(keyOf(index), await left(index)))
        for (const one of made)
          expect(endingsOf(await rowsOf(one.id)), `endings of ${one.status}`).toBeLessThanOrEqual(1)
        for (const { id, status } of made) {
          if (status !== 200) continue
          for (const row of await rowsOf(id))
            if (row.attemptOf === undefined) expect(row.cost.nanoUsd, JSON.stringify(row)).toBeGreaterThan(0)
        }
        for (const key of keys) {
          const rows = await Array.fromAsync(store.ledger.each({ key: key.id }))
          expect(rows.reduce((sum, { cost }) => sum + BigInt(cost.nanoUsd), 0n)).toBe(await spent(key))
          for (const { cost } of rows) expect(cost.nanoUsd).toBeGreaterThanOrEqual(0)
        }
        expect([(await spent(keyOf(0))) <= keyLimit, (await spent(keyOf(1))) <= keyLimit]).toEqual([true, true])
        expect((await store.spend.ofGroup(group.id, Date.now())) <= group.limitNano).toBe(true)
      },
    )
    await fc.assert(scenario, { numRuns, interruptAfterTimeLimit: 60_000, endOnFailure: true })
  },
)

/** Whether a call reached a provider, as its client saw it. */
function isAdmitted({ status, attempts }: Made): boolean {
  return status !== undefined && attempts > 0
}

/** The rows that end a call: its attempts have rows of their own, which name it. */
function endingsOf(rows: readonly CallRecord[]): number {
  return rows.filter(({ attemptOf }) => attemptOf === undefined).length
}
