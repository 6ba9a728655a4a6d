import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { type TestRouter, testKey, testRouter } from '../../helpers/router.ts'
import { eventually } from '../../helpers/time.ts'
import { newKey, storeIn } from '../money/budget-world.ts'

// Streams that break off where no other target goes on: they fail as they are, have one row of their own, and hold nothing.

const chunk = (content: string, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', created: 1, model: 'm1', choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`
const models = [
  'fails1',
  'fails2',
  'fails3',
  'fails4',
  'fails5',
  'cut',
  'cut2',
  'cut3',
  'stalls',
  'differs',
  'ok',
] as const
const targets = (...names: (typeof models)[number][]) => names.map((name) => `maker/${name}`)
const price = '[{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0.000001 }]'
const inputPrice = '[{ prompt_tokens_threshold: 0, input_price: 0.000001, output_price: 0 }]'

let provider: LoopbackProvider
let router: TestRouter

beforeAll(async () => {
  provider = await loopbackProvider(({ body: { model } }, response) => {
    if (model.startsWith('fails')) return answerJson(response, { error: { message: 'No.' } }, 500)
    beginStream(response)
    if (model.startsWith('cut')) response.write(chunk('One '), () => response.destroy())
    else if (model === 'stalls') response.write(chunk('One '))
    else if (model === 'long') response.write(chunk('x'.repeat(30_000)), () => response.destroy())
    else response.end(`${chunk(model === 'differs' ? 'Two.' : 'One two.', 'stop')}data: [DONE]\n\n`)
  })
  router = await testRouter({
    files: {
      'providers/maker.yaml': `slug: maker
name: Maker
base_url: ${provider.url}
auth: { scheme: none }
dialect: openai-chat
traits: [{ match: ".*", facts: { prefill: true } }]
models: { ${models.map((id) => `${id}: { api: chat, pricing: ${price} }`).join(', ')} }
`,
      'providers/reader.yaml': `slug: reader
name: Reader
base_url: ${provider.url}
auth: { scheme: none }
dialect: openai-chat
traits: [{ match: ".*", facts: { prefill: true } }]
models: { long: { api: chat, pricing: ${inputPrice} }, ok: { api: chat, pricing: ${inputPrice} } }
`,
    },
    // Each thread counts failures by itself.
    threads: 1,
    settings: {
      health: { consecutive_failures: 100, share: 0.5, min_calls: 6 },
      policies: {
        going: { targets: targets('cut', 'ok'), on_cut: 'continue' },
        longer: { targets: ['reader/long', 'reader/ok'], on_cut: 'continue' },
        six: { targets: targets('fails1', 'fails2', 'fails3', 'fails4', 'fails5', 'cut', 'ok'), on_cut: 'continue' },
        late: { targets: targets('stalls', 'ok'), on_cut: 'continue', total: '300ms' },
        down: { targets: targets('cut', 'fails1', 'fails2'), on_cut: 'restart' },
        twice: { targets: targets('cut2', 'fails1'), on_cut: 'restart' },
        other: { targets: targets('cut3', 'differs', 'ok'), on_cut: 'restart' },
      },
    },
  })
})

afterAll(async () => {
  await router?.end()
  await provider?.close()
})

type Row = { model: string; outcome: string; error: string; attempts: number; attempt_of: string | null }

beforeEach(() => {
  provider.received.length = 0
})

/** The event that ends a stream, and the rows of the call. */
async function ask(model: string, secret = testKey, content = 'Hi') {
  const body = { model, stream: true, max_tokens: 50, messages: [{ role: 'user', content }] }
  const id = `call-${model}-${Math.random()}`
  const headers = { 'x-request-id': id, authorization: `Bearer ${secret}` }
  const response = await router.call('/v1/chat/completions', body, headers)
  const events = (await response.text()).trim().split('\n\n')
  const books = new Database(join(router.folder, 'data/router.sqlite'), { readonly: true })
  const columns = 'model, outcome, error, attempts, attempt_of'
  const rows = books.prepare(`SELECT ${columns} FROM ledger WHERE request_id = ? ORDER BY rowid`).all(id) as Row[]
  books.close()
  const last = events.at(-1)?.slice('data: '.length) ?? ''
  return { error: last === '[DONE]' ? undefined : JSON.parse(last).error, rows }
}

test('what was said counts towards the length of the answer', async () => {
  await ask('going')
  const [first, second] = provider.received.map(({ body }) => body)
  expect([first.max_tokens, second.max_tokens, second.messages.at(-1).content]).toEqual([50, 49, 'One'])
})

test('what was said is a part of the prompt that is reserved for the next target', async () => {
  const store = await storeIn(router.folder)
  onTestFinished(() => store.close())
  // A prompt of five tokens is charged for the first one; what the second one gets has 31,090 at most, 1,000 nano-USD each.
  const limitNano = 5_000n + 31_090_000n
  const short = await ask('longer', (await newKey(store, { monthlyLimitNano: limitNano - 1n })).secret)
  expect(short.error).toMatchObject({ code: 'provider_cut' })
  expect(short.rows.at(-1)).toMatchObject({ model: 'long', outcome: 'partial' })
  expect(provider.received).toHaveLength(1)
  const enough = await ask('longer', (await newKey(store, { monthlyLimitNano: limitNano })).secret)
  expect(enough.error).toBeUndefined()
  expect(enough.rows.at(-1)).toMatchObject({ model: 'ok', outcome: 'complete', attempts: 2 })
})

test('what was said is reserved as well where the prompt was counted, since its bytes did not fit', async () => {
  const store = await storeIn(router.folder)
  onTestFinished(() => store.close())
  const prompt = 'The quick brown fox jumps over the lazy dog. '.repeat(1_000)
  // 45,000 bytes do not fit into 0.04 USD, at most 20,000 tokens do; what is charged for them and 30,000 bytes more do not.
  // The first count waits for a thread that starts.
  await eventually(async () => {
    provider.received.length = 0
    const short = await ask('longer', (await newKey(store, { monthlyLimitNano: 40_000_000n })).secret, prompt)
    expect(short.error).toMatchObject({ code: 'provider_cut' })
    expect(provider.received).toHaveLength(1)
  })
  const enough = await ask('longer', (await newKey(store, { monthlyLimitNano: 100_000_000n })).secret, prompt)
  expect(enough.error).toBeUndefined()
})

test('after six attempts no other one follows', async () => {
  const { error, rows } = await ask('six')
  expect(error).toMatchObject({ code: 'provider_cut', provider: 'maker' })
  expect(provider.received).toHaveLength(6)
  expect(rows.at(-1)).toMatchObject({ model: 'cut', outcome: 'partial', attempts: 6, attempt_of: null })
  expect(rows).toHaveLength(6)
})

test('when the time of the call is up no other one follows', async () => {
  const { error, rows } = await ask('late')
  expect(error).toMatchObject({ code: 'provider_timeout' })
  expect(rows).toEqual([
    { model: 'stalls', outcome: 'partial', error: 'provider_timeout', attempts: 1, attempt_of: null },
  ])
})

test('where the others fail as well, the call has made all their attempts', async () => {
  const { error, rows } = await ask('down')
  expect(error).toMatchObject({ code: 'provider_cut' })
  expect(rows.map(({ model, attempts, attempt_of }) => [model, attempts, attempt_of !== null])).toEqual([
    ['cut', 1, true],
    ['fails1', 2, true],
    ['fails2', 3, true],
    ['cut', 3, false],
  ])
})

async function degraded(): Promise<string[]> {
  const health = (await (await router.call('/v1/manage/health')).json()) as { degraded: { name: string }[] }
  return health.degraded.map(({ name }) => name)
}

test('a stream that broke off counts once against its target', async () => {
  await ask('twice')
  await ask('twice')
  expect(await degraded()).not.toContain('maker/cut2')
  await ask('twice')
  expect(await degraded()).toContain('maker/cut2')
})

test('another answer is no failure of the target that gives it', async () => {
  for (let call = 0; call < 3; call++) {
    const { error } = await ask('other')
    expect(error).toMatchObject({ code: 'provider_cut', origin: 'router' })
  }
  expect(await degraded()).not.toContain('maker/differs')
})
