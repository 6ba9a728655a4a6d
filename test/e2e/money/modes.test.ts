import { afterAll, beforeAll, expect, test } from 'vitest'
import { priceOf } from '../../../src/money/price.ts'
import { awsEvent } from '../../helpers/aws-frames.ts'
import type { Recording } from '../../helpers/recordings.ts'
import { testEach } from '../../helpers/slow.ts'
import { shippedEntry } from '../../money/catalog.ts'
import { type ClientApi, clientApis, type Folder, openStage, type Stage } from '../recordings/replay.ts'
import { type Answer, type Body, framed, streamOf, wholeOf } from '../recordings/replay-answers.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage(['openai', 'openai-responses', 'anthropic', 'google', 'bedrock', 'perplexity'])
})
afterAll(async () => {
  await stage.end()
})

type Served = {
  what: string
  dialect: Folder
  model: string
  whole: Body
  stream: Answer
  modes: string[] | undefined
  /** 1,000 tokens in, 100 out, in nano-USD. */
  nanoUsd: number
}

/** How providers report the mode in which they served a call. Prices in nano-USD per token. */
const table: Served[] = [
  chat('OpenAI, at priority', 'gpt-5', { service_tier: 'priority' }, ['priority'], 2 * (1_000 * 1_250 + 100 * 10_000)),
  chat('OpenAI, flexibly', 'gpt-5', { service_tier: 'flex' }, ['flex'], (1_000 * 1_250 + 100 * 10_000) / 2),
  chat('OpenAI, as usual', 'gpt-5', { service_tier: 'default' }, undefined, 1_000 * 1_250 + 100 * 10_000),
  responses(
    'OpenAI, at priority',
    'gpt-5.5',
    { service_tier: 'priority' },
    ['priority'],
    2.5 * (5_000_000 + 3_000_000),
  ),
  responses('OpenAI, as usual', 'gpt-5.5', { service_tier: 'default' }, undefined, 5_000_000 + 3_000_000),
  messages('Anthropic, fast', { speed: 'fast', service_tier: 'standard' }, ['fast'], 2 * (4_000_000 + 2_000_000)),
  messages('Anthropic, in the US', { inference_geo: 'us' }, ['us'], 6_600_000),
  messages('Anthropic, fast and in the US', { speed: 'fast', inference_geo: 'us' }, ['fast', 'us'], 13_200_000),
  messages('Anthropic, with capacity of its own', { service_tier: 'priority' }, ['priority'], 6_000_000),
  messages('Anthropic, as usual', { service_tier: 'standard', inference_geo: 'not_available' }, undefined, 6_000_000),
  gemini('Google, at priority', { serviceTier: 'priority' }, ['priority'], 1.8 * (500_000 + 300_000)),
  gemini('Google, flexibly', { serviceTier: 'flex' }, ['flex'], 400_000),
  gemini('Vertex, at priority', { trafficType: 'ON_DEMAND_PRIORITY' }, ['priority'], 1_440_000),
  gemini('Vertex, with throughput of its own', { trafficType: 'PROVISIONED_THROUGHPUT' }, ['provisioned'], 800_000),
  gemini('Vertex, as usual', { trafficType: 'ON_DEMAND', serviceTier: 'standard' }, undefined, 800_000),
  converse('Bedrock, flexibly', { type: 'flex' }, ['flex'], 2_200_000 + 1_100_000),
  converse('Bedrock, as usual', { type: 'default' }, undefined, 2_200_000 + 1_100_000),
  perplexity('Perplexity, with a small search', 'low', 1_100_000 + 5_000_000),
  perplexity('Perplexity, with a large search', 'high', 1_100_000 + 12_000_000),
]

const cases = table.flatMap((served) =>
  (Object.keys(clientApis) as ClientApi[]).flatMap((api) =>
    [false, true].map((stream) => [served.what, api, stream ? 'streamed' : 'whole', served, stream] as const),
  ),
)

testEach(cases, { slowIf: (_, index) => index % 4 !== 0 })('%s: through %s, %s', async (_, api, __, served, stream) => {
  const { dialect, model, whole, modes, nanoUsd } = served
  const recording = { dialect, provider: dialect, model } as Recording
  const answer = stream ? served.stream : wholeOf(whole)
  const called = await stage.replay(recording, { api, stream, answer })
  expect([called.status, called.status === 200 ? '' : called.text]).toEqual([200, ''])
  const { at, usage, cost } = await stage.rowOf(called)
  expect(usage.modes).toEqual(modes)
  expect(cost).toMatchObject({ nanoUsd })
  const entry = shippedEntry(`${catalogs[dialect]}/${model}`)
  expect(priceOf(usage, entry, at)).toEqual(cost)
})

test('a stream that is cut was served in the mode that its beginning reports', async () => {
  const first = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-5', service_tier: 'priority' }
  const choice = { index: 0, delta: { role: 'assistant', content: 'Hello there, and' } }
  const answer = streamOf([{ data: { ...first, choices: [choice] } }])
  const called = await stage.replay({ dialect: 'openai-chat', model: 'gpt-5' } as Recording, {
    api: 'chat',
    stream: true,
    answer,
  })
  const { usage, cost, outcome } = await stage.rowOf(called)
  expect([outcome, usage.modes, cost.estimated]).toEqual(['partial', ['priority'], true])
})

/** Whose prices hold for the answers of a format here. */
const catalogs: { [dialect: string]: string } = {
  'openai-chat': 'openai',
  'openai-responses': 'openai',
  'anthropic-messages': 'anthropic',
  gemini: 'google',
  'bedrock-converse': 'bedrock',
  perplexity: 'perplexity',
}

function chat(what: string, model: string, reported: Body, modes: string[] | undefined, nanoUsd: number): Served {
  const facts = { id: 'c', created: 1, model }
  const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 }
  const chunk = (choices: Body[], more: Body = {}) => ({
    data: { ...facts, object: 'chat.completion.chunk', ...reported, choices, ...more },
  })
  return {
    what,
    dialect: 'openai-chat',
    model,
    whole: {
      ...facts,
      object: 'chat.completion',
      ...reported,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage,
    },
    stream: streamOf(
      [
        chunk([{ index: 0, delta: { role: 'assistant', content: '' } }], { service_tier: 'auto' }),
        chunk([{ index: 0, delta: { content: 'Hi' } }]),
        chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
        chunk([], { usage }),
      ],
      'data: [DONE]\n\n',
    ),
    modes,
    nanoUsd,
  }
}

function responses(what: string, model: string, reported: Body, modes: string[] | undefined, nanoUsd: number): Served {
  const usage = { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 }
  const item = {
    type: 'message',
    id: 'm',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
  }
  const begun = { id: 'resp_1', object: 'response', created_at: 1, model, status: 'in_progress', output: [] }
  const whole = { ...begun, ...reported, status: 'completed', output: [item], usage }
  return {
    what,
    dialect: 'openai-responses',
    model,
    whole,
    stream: streamOf([
      { event: 'response.created', data: { type: 'response.created', response: { ...begun, service_tier: 'auto' } } },
      { event: 'response.completed', data: { type: 'response.completed', response: whole } },
    ]),
    modes,
    nanoUsd,
  }
}

function messages(what: string, reported: Body, modes: string[] | undefined, nanoUsd: number): Served {
  const model = 'claude-opus-5-5'
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model }
  const usage = { input_tokens: 1_000, ...reported }
  const end = { stop_reason: 'end_turn', stop_sequence: null }
  return {
    what,
    dialect: 'anthropic-messages',
    model,
    whole: { ...head, content: [{ type: 'text', text: 'Hi' }], ...end, usage: { ...usage, output_tokens: 100 } },
    stream: streamOf(
      [
        { type: 'message_start', message: { ...head, content: [], usage: { ...usage, output_tokens: 1 } } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: end, usage: { output_tokens: 100 } },
        { type: 'message_stop' },
      ].map((data) => ({ event: data.type, data })),
    ),
    modes,
    nanoUsd,
  }
}

function gemini(what: string, reported: Body, modes: string[] | undefined, nanoUsd: number): Served {
  const model = 'gemini-3-flash-preview'
  const candidate = (text: string, more: Body = {}) => ({ content: { role: 'model', parts: [{ text }] }, ...more })
  const usageMetadata = { promptTokenCount: 1_000, candidatesTokenCount: 100, totalTokenCount: 1_100, ...reported }
  const whole = { candidates: [candidate('Hi', { finishReason: 'STOP' })], usageMetadata, modelVersion: model }
  const first = {
    candidates: [candidate('H')],
    usageMetadata: { ...usageMetadata, candidatesTokenCount: 1 },
    modelVersion: model,
  }
  const stream = streamOf([
    { data: first },
    { data: { ...whole, candidates: [candidate('i', { finishReason: 'STOP' })] } },
  ])
  return { what, dialect: 'gemini', model, whole, stream, modes, nanoUsd }
}

function converse(what: string, serviceTier: Body, modes: string[] | undefined, nanoUsd: number): Served {
  const usage = { inputTokens: 1_000, outputTokens: 100, totalTokens: 1_100 }
  const frames = [
    awsEvent('messageStart', { role: 'assistant' }),
    awsEvent('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hi' } }),
    awsEvent('contentBlockStop', { contentBlockIndex: 0 }),
    awsEvent('messageStop', { stopReason: 'end_turn' }),
    awsEvent('metadata', { usage, metrics: { latencyMs: 1 }, serviceTier }),
  ]
  return {
    what,
    dialect: 'bedrock-converse',
    model: 'us.anthropic.claude-sonnet-5',
    whole: {
      output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } },
      stopReason: 'end_turn',
      usage,
      serviceTier,
    },
    stream: framed(Buffer.concat(frames)),
    modes,
    nanoUsd,
  }
}

function perplexity(what: string, search_context_size: string, nanoUsd: number): Served {
  const made = chat(what, 'sonar', {}, [`search_${search_context_size}`], nanoUsd)
  const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100, search_context_size }
  const choice = {
    index: 0,
    delta: { content: 'Hi' },
    message: { role: 'assistant', content: 'Hi' },
    finish_reason: 'stop',
  }
  const done = { id: 'p', created: 1, model: 'sonar', object: 'chat.completion.done', choices: [choice], usage }
  return { ...made, dialect: 'perplexity', whole: { ...made.whole, usage }, stream: streamOf([{ data: done }]) }
}
