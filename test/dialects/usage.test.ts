import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { completionTokens, promptTokens } from '../../src/core/usage.ts'
import { measuredUsage } from '../../src/money/meter.ts'
import { testInRuns } from '../helpers/slow.ts'
import { benchDialect, type Frame } from './replay.ts'

/** A provider's usage object, and its form in a whole reply and in events. */
type ReportedCase = {
  usage: fc.Arbitrary<JsonObject>
  whole(usage: JsonObject): JsonObject
  frames(usage: JsonObject): Frame[]
  /** The tokens that all classes add up to: each is counted in one of them. */
  total?(usage: JsonObject): number
}

/** Zero is often the value that is mistaken for a missing one. */
const count = fc.oneof({ weight: 4, arbitrary: fc.nat({ max: 100_000 }) }, fc.constant(0))
const present = (arbitrary: fc.Arbitrary<object>): fc.Arbitrary<JsonObject> =>
  arbitrary.map((value) => JSON.parse(JSON.stringify(value)))
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** Writes to the cache of Messages: always a sum, and sometimes by how long they live. */
const messagesCounts = fc
  .record({
    input_tokens: count,
    output_tokens: count,
    cache_read_input_tokens: count,
    written5m: count,
    written1h: count,
    reported: fc.boolean(),
  })
  .map(({ written5m, written1h, reported, ...counts }) => ({
    ...counts,
    cache_creation_input_tokens: written5m + written1h,
    ...(reported && {
      cache_creation: { ephemeral_5m_input_tokens: written5m, ephemeral_1h_input_tokens: written1h },
    }),
  }))

const messagesUsage = fc
  .record({
    counts: messagesCounts,
    compaction: some(messagesCounts),
    server_tool_use: some(fc.record({ web_search_requests: count })),
    service_tier: fc.constantFrom('standard', 'priority', 'batch', undefined),
    thought: some(fc.nat({ max: 100 })),
    /** Whether only the first event has the counts of the prompt. */
    sparse: fc.boolean(),
  })
  .map(({ counts, compaction, thought, ...reported }) => ({
    ...counts,
    ...reported,
    ...(thought !== undefined && {
      output_tokens: counts.output_tokens + thought,
      output_tokens_details: { thinking_tokens: thought },
    }),
    ...(compaction && {
      iterations: [
        { type: 'compaction', ...compaction },
        { type: 'message', ...counts },
      ],
    }),
  }))

/** Details by modality are shares of the sums; cached tokens are a share of the prompt. */
const geminiUsage = fc
  .record({
    prompt: fc.record({ text: count, sound: some(count) }),
    cached: some(fc.record({ text: count, sound: some(count) })),
    answer: some(fc.record({ text: count, sound: some(count), images: some(count) })),
    toolUsePromptTokenCount: some(count),
    thoughtsTokenCount: some(count),
    trafficType: fc.constantFrom('ON_DEMAND', 'ON_DEMAND_PRIORITY', undefined),
  })
  .map(({ prompt, cached, answer, ...reported }) => ({
    ...reported,
    promptTokenCount: 1 + all(prompt) + all(cached ?? {}),
    promptTokensDetails: details({ AUDIO: all({ sound: prompt.sound, cached: cached?.sound }) }),
    ...(cached && { cachedContentTokenCount: all(cached), cacheTokensDetails: details({ AUDIO: cached.sound }) }),
    ...(answer && {
      candidatesTokenCount: all(answer),
      candidatesTokensDetails: details({ AUDIO: answer.sound, IMAGE: answer.images }),
    }),
  }))

const all = (shares: { [share: string]: number | undefined }) =>
  Object.values(shares).reduce<number>((total, share) => total + (share ?? 0), 0)
const details = (counts: { [modality: string]: number | undefined }) =>
  Object.entries(counts).flatMap(([modality, tokenCount]) => (tokenCount ? { modality, tokenCount } : []))

const geminiAnswer = {
  candidates: [{ finishReason: 'STOP', groundingMetadata: { webSearchQueries: ['a', 'b'] } }],
  modelVersion: 'gemini-3.5-flash',
}

const cohereUsage = fc.record({
  billed_units: some(fc.record({ input_tokens: count, output_tokens: count, search_units: some(count) })),
  tokens: some(
    fc.record({
      input_tokens: count,
      output_tokens: count,
      image_tokens: some(fc.nat({ max: 500 })),
      reasoning_tokens: some(count),
    }),
  ),
})

const ollamaLine = { model: 'm', message: { role: 'assistant', content: '' } }

function sum(usage: Json | undefined, counts: readonly string[]): number {
  return counts.reduce((total, name) => total + (isObject(usage) ? Number(usage[name] ?? 0) : 0), 0)
}

const converseUsage = fc
  .record({
    inputTokens: count,
    outputTokens: count,
    cacheReadInputTokens: some(count),
    written5m: count,
    written1h: count,
    reported: fc.constantFrom('nothing', 'sum', 'details'),
  })
  .map(({ written5m, written1h, reported, ...counts }) => ({
    ...counts,
    ...(reported !== 'nothing' && { cacheWriteInputTokens: written5m + written1h }),
    ...(reported === 'details' && {
      cacheDetails: [
        { ttl: '1h', inputTokens: written1h },
        { ttl: '5m', inputTokens: written5m },
      ],
    }),
  }))

/** Shares of the sums; some servers count reasoning or audio beside them, which only the total shows. */
const chatUsage = fc
  .record({
    prompt: fc.record({ text: count, cached: some(count), written: some(count), heard: some(count) }),
    answer: fc.record({ text: count, thought: some(count), spoken: some(count), drawn: some(count) }),
    beside: fc.constantFrom('thought', 'heard', undefined),
  })
  .map(({ prompt, answer, beside }) => {
    const total = all(prompt) + all(answer)
    const { heard = 0 } = beside === 'heard' ? prompt : {}
    // Equal counts are taken for the same tokens.
    const { thought = 0 } = beside === 'thought' && prompt.heard !== answer.thought ? answer : {}
    return {
      prompt_tokens: all(prompt) - heard,
      completion_tokens: all(answer) - thought,
      total_tokens: total,
      prompt_tokens_details: {
        cached_tokens: prompt.cached,
        cache_write_tokens: prompt.written,
        audio_tokens: prompt.heard,
      },
      completion_tokens_details: {
        reasoning_tokens: beside === 'heard' ? undefined : answer.thought,
        audio_tokens: answer.spoken,
        image_tokens: answer.drawn,
      },
    }
  })

const responsesUsage = fc
  .record({
    prompt: fc.record({ text: count, cached: some(count), written: some(count) }),
    answer: fc.record({ text: count, thought: some(count) }),
    cost: some(fc.constantFrom(0.5, 0)),
  })
  .map(({ prompt, answer, ...reported }) => ({
    ...reported,
    input_tokens: all(prompt),
    output_tokens: all(answer),
    input_tokens_details: { cached_tokens: prompt.cached, cache_write_tokens: prompt.written },
    output_tokens_details: { reasoning_tokens: answer.thought },
  }))

const response = {
  id: 'r',
  status: 'completed',
  service_tier: 'flex',
  prompt_cache_retention: '24h',
  output: [{ type: 'web_search_call', id: 'ws', status: 'completed', action: { type: 'search', query: 'q' } }],
}

const dialects: { [name: string]: ReportedCase } = {
  'openai-chat': {
    usage: present(chatUsage),
    total: ({ total_tokens }) => Number(total_tokens),
    whole: (usage) => ({
      service_tier: 'flex',
      choices: [{ message: { content: '' }, finish_reason: 'stop' }],
      usage,
    }),
    frames: (usage) => [
      { data: { service_tier: 'flex', choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] } },
      { data: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } },
      { data: { service_tier: 'flex', choices: [], usage } },
    ],
  },
  'openai-responses': {
    usage: present(responsesUsage),
    total: (usage) => sum(usage, ['input_tokens', 'output_tokens']),
    whole: (usage) => ({ ...response, usage }),
    frames: (usage) => [
      { data: { type: 'response.created', response: { ...response, status: 'in_progress', output: [], usage: null } } },
      { data: { type: 'response.completed', response: { ...response, usage } } },
    ],
  },
  'bedrock-converse': {
    usage: present(converseUsage),
    whole: (usage) => ({
      output: { message: { role: 'assistant', content: [] } },
      stopReason: 'end_turn',
      usage,
      serviceTier: { type: 'flex' },
    }),
    frames: (usage) => [
      { event: 'messageStop', data: { stopReason: 'end_turn' } },
      { event: 'metadata', data: { usage, serviceTier: { type: 'flex' } } },
    ],
  },
  'anthropic-messages': {
    usage: present(messagesUsage),
    whole: ({ sparse, ...usage }) => ({ id: 'm', content: [], stop_reason: 'end_turn', usage }),
    // The first event has the counts so far; the last one repeats the sums, or some of them, but not the lifetimes of cache writes.
    frames: ({ sparse, ...usage }) => {
      const { output_tokens_details, server_tool_use, iterations, ...early } = usage
      const { cache_creation, service_tier, ...late } = usage
      const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, ...rest } = late
      return [
        {
          data: {
            type: 'message_start',
            message: { id: 'm', usage: { ...early, output_tokens: Math.min(Number(usage.output_tokens), 1) } },
          },
        },
        { data: { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: sparse ? rest : late } },
      ]
    },
  },
  gemini: {
    usage: present(geminiUsage),
    total: (usage) =>
      sum(usage, ['promptTokenCount', 'toolUsePromptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount']),
    whole: (usageMetadata) => ({ ...geminiAnswer, usageMetadata }),
    // Each chunk repeats the counts so far.
    frames: ({ promptTokenCount, ...late }) => [
      { data: { usageMetadata: { promptTokenCount: promptTokenCount ?? 0, trafficType: 'ON_DEMAND' } } },
      { data: { ...geminiAnswer, usageMetadata: { promptTokenCount: promptTokenCount ?? 0, ...late } } },
    ],
  },
  'cohere-v2': {
    usage: present(cohereUsage),
    total: ({ billed_units: billed, tokens }) => sum(billed ?? tokens, ['input_tokens', 'output_tokens']),
    whole: (usage) => ({ id: 'c', message: { content: [] }, finish_reason: 'COMPLETE', usage }),
    frames: (usage) => [
      { data: { type: 'message-start', id: 'c' } },
      { data: { type: 'message-end', delta: { finish_reason: 'COMPLETE', usage } } },
    ],
  },
  ollama: {
    usage: present(fc.record({ prompt_eval_count: some(count), eval_count: some(count) })),
    total: (usage) => sum(usage, ['prompt_eval_count', 'eval_count']),
    whole: (usage) => ({ ...ollamaLine, done: true, ...usage }),
    frames: (usage) => [{ data: { ...ollamaLine, done: false } }, { data: { ...ollamaLine, done: true, ...usage } }],
  },
}

/** Usage of the first and the last event of a stream, the members of the last one that are part of a total, and its details. */
type Totals = { early: JsonObject; late: JsonObject; prompt: string[]; output: string[]; details: string[] }
type Streamed = Totals & { frames(early: JsonObject, late: JsonObject): Frame[] }

const text = 'x'.repeat(100)
const streamed: { [name: string]: Streamed } = {
  'openai-chat': {
    early: { prompt_tokens: 20, completion_tokens: 1 },
    late: { prompt_tokens: 20, completion_tokens: 60, prompt_tokens_details: { cached_tokens: 4 } },
    ...{ prompt: ['prompt_tokens'], output: ['completion_tokens'], details: ['prompt_tokens_details.cached_tokens'] },
    frames: (early, late) => [
      { data: { choices: [{ index: 0, delta: { role: 'assistant', content: text } }], usage: early } },
      { data: { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] } },
      { data: { choices: [], usage: late } },
    ],
  },
  'anthropic-messages': {
    early: { input_tokens: 20, output_tokens: 1 },
    late: {
      ...{ input_tokens: 20, cache_read_input_tokens: 4, cache_creation_input_tokens: 6, output_tokens: 60 },
      output_tokens_details: { thinking_tokens: 30 },
    },
    prompt: ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'],
    ...{ output: ['output_tokens'], details: ['output_tokens_details.thinking_tokens'] },
    frames: (early, late) => [
      { data: { type: 'message_start', message: { id: 'm', usage: early } } },
      { data: { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } },
      { data: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } },
      { data: { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: late } },
    ],
  },
  'openai-responses': {
    early: { input_tokens: 20, output_tokens: 1 },
    late: { input_tokens: 20, output_tokens: 60, input_tokens_details: { cached_tokens: 4 } },
    ...{ prompt: ['input_tokens'], output: ['output_tokens'], details: ['input_tokens_details.cached_tokens'] },
    frames: (early, late) => [
      { data: { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [], usage: early } } },
      { data: { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: text } },
      { data: { type: 'response.completed', response: { id: 'r', status: 'completed', output: [], usage: late } } },
    ],
  },
  gemini: {
    early: { promptTokenCount: 20, candidatesTokenCount: 1 },
    late: { promptTokenCount: 20, candidatesTokenCount: 40, thoughtsTokenCount: 20, cachedContentTokenCount: 4 },
    ...{ prompt: ['promptTokenCount'], output: ['candidatesTokenCount', 'thoughtsTokenCount'] },
    details: ['cachedContentTokenCount'],
    frames: (early, late) => [
      { data: { candidates: [{ content: { role: 'model', parts: [{ text }] } }], usageMetadata: early } },
      { data: { candidates: [{ finishReason: 'STOP' }], usageMetadata: late } },
    ],
  },
  'bedrock-converse': {
    early: { inputTokens: 20, outputTokens: 1 },
    late: { inputTokens: 20, outputTokens: 60, cacheReadInputTokens: 4, cacheWriteInputTokens: 6 },
    ...{ prompt: ['inputTokens', 'cacheReadInputTokens', 'cacheWriteInputTokens'], output: ['outputTokens'] },
    details: [],
    frames: (early, late) => [
      { event: 'contentBlockDelta', data: { contentBlockIndex: 0, delta: { text } } },
      { event: 'metadata', data: { usage: early } },
      { event: 'messageStop', data: { stopReason: 'end_turn' } },
      { event: 'metadata', data: { usage: late } },
    ],
  },
}

describe.each(Object.entries(streamed))('counts of %s that come with the last event', (name, one) => {
  const bench = benchDialect(name)
  const measured = async (late: JsonObject) => {
    const { reply } = await bench.stream(one.frames(one.early, late))
    const bounds = { prompt: 1_000, output: 1_000 }
    const { usage, estimated } = measuredUsage(reply, { promptTokens: 50, complete: true, choices: 1, bounds })
    return { prompt: promptTokens(usage), output: completionTokens(usage), estimated, usage }
  }
  const unreadable = (path: string): JsonObject => {
    const [member = '', inner] = path.split('.')
    if (!inner) return { ...one.late, [member]: 'many' }
    return { ...one.late, [member]: { ...(one.late[member] as JsonObject), [inner]: 'many' } }
  }

  test('are charged where they can be read', async () => {
    const { output, estimated, usage } = await measured(one.late)
    expect([output, estimated]).toEqual([60, false])
    expect(usage).not.toHaveProperty('unread')
  })

  test.each(one.prompt)('%s: the prompt is estimated where it cannot be read', async (member) => {
    const { prompt, output, estimated } = await measured(unreadable(member))
    expect([prompt, output, estimated]).toEqual([50, 60, true])
  })

  test.each(one.output)('%s: the reply is estimated where it cannot be read', async (member) => {
    const { prompt, output, estimated, usage } = await measured(unreadable(member))
    expect([prompt, estimated]).toEqual([(await measured(one.late)).prompt, true])
    expect(output).toBeGreaterThanOrEqual(25)
    expect(usage).not.toHaveProperty('unread')
  })

  test.each(one.details)('%s: totals stay as they are where a detail cannot be read', async (detail) => {
    const { prompt, output } = await measured(unreadable(detail))
    expect([prompt, output]).toEqual([20 + (name === 'anthropic-messages' ? 10 : 0), 60])
  })
})

test('the output that a message begins with is no count: without another one it is estimated', async () => {
  const { early, frames } = streamed['anthropic-messages'] as Streamed
  const { reply } = await benchDialect('anthropic-messages').stream(frames(early, {}))
  const bounds = { prompt: 1_000, output: 1_000 }
  expect(measuredUsage(reply, { promptTokens: 50, complete: true, choices: 1, bounds })).toEqual({
    usage: { input: 20, output: 25 },
    estimated: true,
  })
})

describe.each(Object.entries(dialects))('%s', (name, { usage, whole, frames, total }) => {
  const bench = benchDialect(name)

  testInRuns('counts the same whole and streamed', { fast: 50, slow: 200 }, async (numRuns) => {
    await fc.assert(
      fc.asyncProperty(usage, async (reported) => {
        const { reply } = await bench.stream(frames(reported))
        expect(reply.usage).toEqual((await bench.reply(whole(reported))).reply.usage)
      }),
      { numRuns },
    )
  })

  test.skipIf(!total)('counts each token in one class', async () => {
    await fc.assert(
      fc.asyncProperty(usage, async (reported) => {
        const { modes, searches, reported_cost, corrected, unread, ...tokens } = (await bench.reply(whole(reported)))
          .reply.usage
        expect(all(tokens)).toBe(total?.(reported))
        expect(Object.values(tokens).every((one) => one >= 0)).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})
