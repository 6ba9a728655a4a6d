import { describe, expect, test } from 'vitest'
import { findingsIn } from '../../src/catalog/findings.ts'
import { otherPrices } from '../../src/catalog/other-prices.ts'
import type { ModelEntry } from '../../src/core/models/model.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { mergeUsage } from '../../src/core/usage.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { priceOf } from '../../src/money/price.ts'
import { tariffOf } from '../../src/money/rates.ts'
import { reportedUses } from '../../src/money/remote-tools.ts'
import { benchDialect } from '../dialects/replay.ts'
import { maxCost } from './max-cost.ts'

const at = Date.UTC(2026, 10, 22)
const pricing = [{ prompt_tokens_threshold: 0, input_price: 0, output_price: 0 }]
const priced = (other_prices: ModelEntry['other_prices']): ModelEntry => ({
  api: 'chat',
  context_window: 1_000,
  pricing,
  other_prices: other_prices ?? {},
})

describe('prices beside those of tokens', () => {
  test.each(otherPrices)('%s is read', (name) => {
    const [rates] = tariffOf(priced({ [name]: 0.5 }))?.tiers ?? []
    const read = [
      ...Object.values(rates?.pico ?? {}),
      ...[...(rates?.byMode ?? [])].flatMap(([, prices]) => Object.values(prices)),
    ]
    expect(read).toContain(500_000_000_000n)
  })

  test('that nothing reads are refused, now and at another time', () => {
    const prices = { web_search_per_call: 1, per_input_minute: 1 }
    const entry = {
      ...priced(prices),
      price_changes: [{ from: '2026-12-01T00:00:00Z', other_prices: { cache_storage_per_token_hour: 1 } }],
    }
    expect(findingsIn({ m: entry }).map(({ path, message }) => `${path.join('.')}: ${message.slice(0, 50)}`)).toEqual([
      'm.other_prices.per_input_minute: no usage is billed at `per_input_minute`; the name',
      'm.price_changes.0.other_prices.cache_storage_per_token_hour: no usage is billed at `cache_storage_per_token_hou',
    ])
  })

  test('leave the digest of other prices as it was', () => {
    const version = (other: ModelEntry['other_prices']) => priceOf({}, priced(other), at).priceVersion
    expect(version({})).toBe('f109c2b4b95d')
    expect(version({ container_per_gb: 1 })).not.toBe(version({}))
    expect(version({ container_per_gb: 1 })).not.toBe(version({ x_search_per_call: 1 }))
    const units = ['per_megapixel', 'per_query', 'per_input_image'].map((name) => version({ [name]: 1 }))
    expect(new Set([version({}), ...units]).size).toBe(4)
  })
})

const openai = priced({ container_per_gb: 0.03, drawing_input_token: 10e-6, drawing_output_token: 40e-6 })

describe('tools of the Responses API cost what they cost', () => {
  const bench = benchDialect('openai-responses')
  const answered = async (output: object[], more: object = {}) => {
    const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }
    const { reply } = await bench.reply({
      id: 'r',
      object: 'response',
      created_at: 1,
      model: 'm',
      status: 'completed',
      output,
      usage,
      ...more,
    })
    return reply.usage
  }
  const drawing = {
    type: 'image_generation_call',
    id: 'ig_1',
    status: 'completed',
    result: 'aGk=',
    quality: 'high',
    size: '1024x1536',
  }

  test('a drawing, by the tokens that are told', async () => {
    const image_gen = { input_tokens: 50, output_tokens: 4_160, total_tokens: 4_210 }
    const usage = await answered([drawing], { tool_usage: { image_gen, web_search: { num_requests: 0 } } })
    expect(usage).toMatchObject({ drawing_input: 50, drawing_output: 4_160 })
    expect(priceOf(usage, openai, at).nanoUsd).toBe(50 * 10_000 + 4_160 * 40_000)
  })

  test('a drawing, by its size and quality', async () => {
    const small = { ...drawing, quality: 'low', size: '1024x1024' }
    expect(await answered([drawing, small])).toMatchObject({ drawing_output: 6_240 + 272 })
    expect(await answered([{ ...drawing, quality: 'auto' }])).toMatchObject({ drawing_output: 6_240 })
  })

  test('a container, by its memory, once; one of the client’s own costs nothing', async () => {
    const run = {
      type: 'code_interpreter_call',
      id: 'ci_1',
      status: 'completed',
      code: '1',
      container_id: 'cntr_1',
      outputs: [],
    }
    const tool = (container: unknown) => ({ tools: [{ type: 'code_interpreter', container }] })
    expect(await answered([run, { ...run, id: 'ci_2' }], tool({ type: 'auto' }))).toMatchObject({ containers: 1 })
    expect(await answered([run], tool({ type: 'auto', memory_limit: '16g' }))).toMatchObject({ containers: 16 })
    expect((await answered([run], tool('cntr_1'))).containers).toBeUndefined()
    expect(priceOf({ containers: 16 }, openai, at).nanoUsd).toBe(480_000_000)
  })

  test('and they are held', () => {
    const provider = { slug: 'openai', sameAs: 'responses' } as Provider
    const ask = (definition: { type: string; [name: string]: unknown }, more: object = {}) => {
      const tools = [{ kind: definition.type, by: 'responses', definition }]
      const request = { model: 'm', messages: [], tools, extensions: more, origin: { api: 'responses', body: {} } }
      return Number(
        maxCost(request as unknown as NeutralRequest, [{ entry: openai, provider }], { defaultOutputTokens: 1, at })
          .nanoUsd,
      )
    }
    const one = 32_000 * 10_000 + 7_000 * 40_000
    expect(ask({ type: 'image_generation' })).toBe(10 * one)
    expect(ask({ type: 'image_generation' }, { max_tool_calls: 2 })).toBe(2 * one)
    expect(ask({ type: 'code_interpreter', container: { type: 'auto', memory_limit: '4g' } })).toBe(120_000_000)
    expect(ask({ type: 'code_interpreter', container: 'cntr_1' })).toBe(0)
  })
})

test('groundings on maps and tools of xAI are counted', async () => {
  const gemini = await benchDialect('gemini').reply({
    candidates: [
      {
        content: { parts: [{ text: 'Hi' }] },
        finishReason: 'STOP',
        groundingMetadata: { groundingChunks: [{ maps: { uri: 'https://maps.example' } }] },
      },
    ],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1, totalTokenCount: 6 },
  })
  expect(gemini.reply.usage).toMatchObject({ input: 5, output: 1, maps_groundings: 1 })
  const grok = await benchDialect('openai-chat').reply({
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: 5,
      completion_tokens: 1,
      total_tokens: 6,
      server_side_tool_usage_details: { x_search_calls: 2, code_interpreter_calls: 1 },
    },
  })
  expect(grok.reply.usage).toMatchObject({ x_searches: 2, code_runs: 1 })
  const entry = priced({ x_search_per_call: 0.005, code_execution_per_call: 0.005, maps_grounding_per_call: 0.014 })
  expect(priceOf(mergeUsage(grok.reply.usage, { maps_groundings: 1 }), entry, at).nanoUsd).toBe(29_000_000)
})

describe('uses of tools that an answer reports', () => {
  const body = (type: string, more = {}) => ({ type: 'opaque' as const, by: 'maker', body: { type, ...more } })

  test('are searches, but no opened pages and none that failed', () => {
    const search = (status: string, type?: string) => ({
      ...{ type: 'search' as const, by: 'maker', status },
      ...(type !== undefined && { results: { type } }),
    })
    const parts = [
      search('completed', 'search'),
      search('in_progress'),
      search('failed', 'search'),
      search('completed', 'open_page'),
      search('completed', 'find_in_page'),
    ]
    expect(reportedUses(parts, { containers: 0 })).toEqual({ searches: 2 })
  })

  test('are what else is priced by use, and containers as many as the call can open', () => {
    const parts = [
      body('file_search_call'),
      body('file_search_call', { status: 'failed' }),
      body('code_interpreter_call', { container_id: 'one' }),
      body('code_interpreter_call', { container_id: 'one' }),
      body('code_interpreter_call', { container_id: 'two' }),
      body('x_search_call'),
      { type: 'image' as const, id: 'ig_1' },
      { type: 'image' as const, id: 'other' },
      { type: 'text' as const, text: 'Hello' },
    ]
    const uses = { file_searches: 1, code_runs: 3, x_searches: 1, drawing_output: 7_000 }
    expect(reportedUses(parts, { containers: 1 })).toEqual({ ...uses, containers: 1 })
    expect(reportedUses(parts, { containers: 0 })).toEqual(uses)
  })
})
