import fc from 'fast-check'
import { afterAll, beforeAll, expect } from 'vitest'
import { isObject, type JsonObject } from '../../../src/core/json.ts'
import type { Store } from '../../../src/store/open.ts'
import { type TestRouter, testRouter } from '../../helpers/router.ts'
import { testInRuns } from '../../helpers/slow.ts'
import { newKey, storeIn } from './budget-world.ts'
import { contextWindow, dearestProvider, longestReply, tokensPerImage } from './dearest-provider.ts'

// Whatever is asked, on whatever API and format, together or one after the other, read to the end or left: no key spends
// more than its limit, although the provider bills the most that each request lets it.

let provider: Awaited<ReturnType<typeof dearestProvider>>
let router: TestRouter
let store: Store

const manifest = (slug: string, dialect: string) => `slug: ${slug}
name: ${slug}
base_url: ${provider.url}
auth: { scheme: none }
dialect: ${dialect}
traits: [{ match: '.', facts: { image_tokens: ${tokensPerImage}, thinking: budget } }]
models:
  m1:
    api: chat
    context_window: ${contextWindow}
    max_output_tokens: ${longestReply}
    pricing:
      - { prompt_tokens_threshold: 0, input_price: 1e-6, output_price: 4e-6 }
      - { prompt_tokens_threshold: 5000, input_price: 2e-6, output_price: 6e-6 }
    multipliers: { flex: 0.5, priority: 2, fast: 2.5 }
    other_prices: { web_search_per_call: 0.01 }
`
const dialects = {
  chat: 'openai-chat',
  messages: 'anthropic-messages',
  responses: 'openai-responses',
  gemini: 'gemini',
}

beforeAll(async () => {
  provider = await dearestProvider()
  const files = Object.entries(dialects).map(([slug, dialect]) => [`providers/${slug}.yaml`, manifest(slug, dialect)])
  router = await testRouter({ files: Object.fromEntries(files), settings: { budget: { default_output_tokens: 50 } } })
  store = await storeIn(router.folder)
})

afterAll(async () => {
  await store.close()
  await router.end()
  await provider.close()
})

const text = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', ' ', 'é', '漢', '🙂', '"', '\n'), maxLength: 400 }),
  fc.nat({ max: 12_000 }).map((length) => 'x'.repeat(length)),
)
const length = fc.option(fc.integer({ min: 1, max: 6_000 }), { nil: undefined })
const picture = 'data:image/png;base64,iVBORw0KGgo='
const document = 'data:application/pdf;base64,JVBERi0='

/** What a request asks for, in the words of no API. */
const wish = fc.record({
  text,
  system: fc.option(text, { nil: undefined, freq: 4 }),
  schema: fc.option(text, { nil: undefined, freq: 4 }),
  length,
  otherLength: fc.option(fc.integer({ min: 1, max: 6_000 }), { nil: undefined, freq: 3 }),
  n: fc.constantFrom(1, 1, 1, 3),
  image: fc.constantFrom(false, false, true),
  file: fc.constantFrom(false, false, false, true),
  effort: fc.constantFrom(undefined, undefined, 'low', 'high'),
  tier: fc.constantFrom(undefined, undefined, 'flex', 'priority', 'fast'),
  search: fc.constantFrom(undefined, undefined, undefined, {}, { max_uses: 2 }),
  remote: fc.constantFrom(false, false, false, true),
  stream: fc.boolean(),
  end: fc.constantFrom('whole', 'whole', 'whole', 'cut', 'error-with-usage'),
  leaves: fc.constantFrom(false, false, false, true),
})
type Wish = typeof wish extends fc.Arbitrary<infer One> ? One : never

const apis = {
  '/v1/chat/completions': (w: Wish, model: string): JsonObject => ({
    model,
    stream: w.stream,
    messages: [
      ...(w.system === undefined ? [] : [{ role: 'system', content: w.system }]),
      {
        role: 'user',
        content: [
          { type: 'text', text: `end:${w.end} ${w.text}` },
          ...(w.image ? [{ type: 'image_url', image_url: { url: picture } }] : []),
          ...(w.file ? [{ type: 'file', file: { filename: 'a.pdf', file_data: document } }] : []),
        ],
      },
    ],
    n: w.n,
    ...given({
      max_tokens: w.length,
      max_completion_tokens: w.otherLength,
      reasoning_effort: w.effort,
      service_tier: w.tier,
      web_search_options: w.search && {},
      tools: w.schema === undefined ? undefined : [{ type: 'function', function: toolOf(w.schema) }],
    }),
  }),
  '/v1/messages': (w: Wish, model: string): JsonObject => ({
    model,
    stream: w.stream,
    max_tokens: w.length ?? 500,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: `end:${w.end} ${w.text}` },
          ...(w.image
            ? [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }]
            : []),
          ...(w.file
            ? [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } }]
            : []),
        ],
      },
    ],
    ...given({
      system: w.system,
      service_tier: w.tier,
      thinking: w.effort === 'high' ? { type: 'enabled', budget_tokens: 1_024 } : undefined,
      tools: [
        ...(w.search ? [{ type: 'web_search_20250305', name: 'web_search', ...w.search }] : []),
        ...(w.remote ? [{ type: 'code_execution_20250825', name: 'code_execution' }] : []),
        ...(w.schema === undefined
          ? []
          : [{ ...toolOf(w.schema), parameters: undefined, input_schema: { type: 'object' } }]),
      ],
    }),
  }),
  '/v1/responses': (w: Wish, model: string): JsonObject => ({
    model,
    stream: w.stream,
    store: false,
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: `end:${w.end} ${w.text}` },
          ...(w.image ? [{ type: 'input_image', image_url: picture, detail: 'auto' }] : []),
          ...(w.file ? [{ type: 'input_file', filename: 'a.pdf', file_data: document }] : []),
        ],
      },
    ],
    ...given({
      instructions: w.system,
      max_output_tokens: w.length && Math.max(w.length, 16),
      reasoning: w.effort && { effort: w.effort },
      service_tier: w.tier,
      max_tool_calls: w.search?.max_uses,
      tools: [
        ...(w.search ? [{ type: 'web_search' }] : []),
        ...(w.remote ? [{ type: 'code_interpreter', container: { type: 'auto' } }] : []),
        ...(w.schema === undefined ? [] : [{ type: 'function', ...toolOf(w.schema) }]),
      ],
    }),
  }),
}

function toolOf(description: string): JsonObject {
  return {
    name: 'look',
    description,
    parameters: { type: 'object', properties: { q: { type: 'string', description } } },
  }
}

function given(members: { [name: string]: unknown }): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as JsonObject
}

const call = fc.record({
  wish,
  path: fc.constantFrom(...(Object.keys(apis) as (keyof typeof apis)[])),
  slug: fc.constantFrom(...Object.keys(dialects)),
})
type Call = typeof call extends fc.Arbitrary<infer One> ? One : never

/** What became of a call: why it was refused, and whether it has a row. */
type Made = { refused?: string; hasRow: boolean }

async function make({ wish: wished, path, slug }: Call, secret: string): Promise<Made> {
  const leaving = new AbortController()
  const response = await fetch(router.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(apis[path](wished, `${slug}/m1`)),
    signal: leaving.signal,
  })
  if (response.status === 400) throw new Error(await response.text())
  if (wished.leaves && response.status === 200) {
    await response.body?.getReader().read()
    leaving.abort()
    return { hasRow: true }
  }
  const answer = await response.text().catch(() => '')
  if (response.status !== 402) return { hasRow: true }
  const { error } = JSON.parse(answer)
  return { refused: String(isObject(error) && error.message), hasRow: response.headers.has('x-router-attempts') }
}

const sums = /is ([\d.]+) USD: ([\d.]+) USD spent, ([\d.]+) USD reserved .* could cost up to ([\d.]+) USD/

const runs = { fast: 20, slow: Number(process.env.SPEND_RUNS ?? 100) }

testInRuns('no key spends more than its limit, and none is refused what fits', runs, async (numRuns) => {
  const batches = fc.array(fc.array(call, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 })
  let passed = 0
  let refused = 0
  const property = fc.asyncProperty(batches, fc.integer({ min: 1, max: 600 }), async (groups, thousandths) => {
    const limit = BigInt(thousandths) * 1_000_000n
    const key = await newKey(store, { monthlyLimitNano: limit })
    let rows = 0
    for (const group of groups) {
      const all = await Promise.all(group.map((one) => make(one, key.secret)))
      rows += all.filter(({ hasRow }) => hasRow).length
      for (const { refused: message } of all) {
        if (message === undefined) passed++
        else refused++
        if (message === undefined) continue
        const [, limited, spent, reserved, most] = (sums.exec(message) ?? []).map(Number)
        expect(Number(spent) + Number(reserved) + Number(most), message).toBeGreaterThan(Number(limited))
      }
    }
    // Clients that left do not wait for their rows.
    await expect
      .poll(async () => (await Array.fromAsync(store.ledger.each({ key: key.id }))).length, { interval: 1 })
      .toBe(rows)
    expect(await store.spend.ofKey(key.id, Date.now())).toBeLessThanOrEqual(limit)
  })
  await fc.assert(property, { numRuns, seed: 20_261_122, endOnFailure: false })
  // Neither all nor nothing.
  expect(passed).toBeGreaterThan(numRuns)
  expect(refused).toBeGreaterThan(numRuns / 4)
})
