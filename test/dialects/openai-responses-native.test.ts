import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import type OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { answerJson, beginStream, type LoopbackProvider, loopbackProvider } from '../helpers/provider.ts'
import { type TestRouter, testRouter } from '../helpers/router.ts'
import { framesOf } from './openai-responses-reader.ts'

// Through the whole router: a chat client, and OpenAI as it speaks its native API.

const shipped = [
  'providers/openai.yaml',
  'providers/openai-responses.yaml',
  'providers/dialects/openai-chat.yaml',
  'providers/dialects/openai-responses.yaml',
  'catalog/openai.yaml',
]

let provider: LoopbackProvider
let router: TestRouter
let client: OpenAI
let answer: (response: ServerResponse, stream: boolean) => void

beforeAll(async () => {
  provider = await loopbackProvider(({ body }, response) => answer(response, body.stream === true))
  const read = (path: string) => [path, readFileSync(join(import.meta.dirname, '../..', path), 'utf8')]
  router = await testRouter({
    files: Object.fromEntries(shipped.map(read)),
    providers: { openai: { base_url: provider.url }, 'openai-responses': { base_url: provider.url } },
    env: { OPENAI_API_KEY: 'sk-native' },
  })
  client = router.openai()
})

afterAll(async () => {
  await router.end()
  await provider.close()
})

beforeEach(() => {
  provider.received.length = 0
})

const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: '{"city": "Graz"}' }
const thought = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [{ type: 'summary_text', text: 'Look it up.' }],
  encrypted_content: 'gAAAA+/=_-'.repeat(20),
}

function responded(output: JsonObject[]): JsonObject {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1_795_219_200,
    status: 'completed',
    model: 'gpt-5.4-2026-03-05',
    error: null,
    incomplete_details: null,
    output,
    usage: {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60, cache_write_tokens: 0 },
      output_tokens: 30,
      output_tokens_details: { reasoning_tokens: 20 },
      total_tokens: 130,
    },
  }
}

function answers(output: JsonObject[]): void {
  answer = (response, stream) => {
    const whole = responded(output)
    if (!stream) return answerJson(response, whole)
    beginStream(response)
    for (const { event, data } of framesOf(whole)) response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    response.end()
  }
}

const asked: OpenAI.ChatCompletionCreateParamsNonStreaming = {
  model: 'openai-responses/gpt-5.4',
  messages: [{ role: 'user', content: 'Weather in Graz?' }],
  tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }],
}

/** The parts of a message that a client keeps without knowing them. */
async function firstTurn(stream: boolean): Promise<OpenAI.ChatCompletionMessage> {
  if (!stream) {
    const { choices } = await client.chat.completions.create(asked)
    expect(choices[0]?.finish_reason).toBe('tool_calls')
    return choices[0]?.message as OpenAI.ChatCompletionMessage
  }
  const message: JsonObject = { role: 'assistant', content: null }
  const calls: JsonObject[] = []
  const details: JsonObject[] = []
  let finish: string | null | undefined
  for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true })) {
    const { delta, finish_reason } = choices[0] ?? {}
    details.push(...((delta as { reasoning_details?: JsonObject[] })?.reasoning_details ?? []))
    for (const piece of delta?.tool_calls ?? []) {
      calls[piece.index] ??= { id: piece.id, type: 'function', function: { name: piece.function?.name, arguments: '' } }
      const { function: called } = calls[piece.index] as { function: { arguments: string } }
      called.arguments += piece.function?.arguments ?? ''
    }
    finish = finish_reason ?? finish
  }
  expect(finish).toBe('tool_calls')
  return { ...message, tool_calls: calls, reasoning_details: details } as unknown as OpenAI.ChatCompletionMessage
}

test('the prefix chooses the API, with one key for both', async () => {
  answers([{ type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] }])
  const { choices, usage } = await client.chat.completions.create({ ...asked, tools: [] })
  expect(choices[0]).toMatchObject({ message: { content: 'Hello' }, finish_reason: 'stop' })
  expect(usage).toMatchObject({
    prompt_tokens: 100,
    completion_tokens: 30,
    prompt_tokens_details: { cached_tokens: 60 },
    completion_tokens_details: { reasoning_tokens: 20 },
    cost: 40 * 2.5e-6 + 60 * 0.25e-6 + 30 * 15e-6,
  })
  answer = (response) => answerJson(response, { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] })
  await client.chat.completions.create({ ...asked, model: 'openai/gpt-5.4' })
  expect(provider.received.map(({ path }) => path)).toEqual(['/responses', '/chat/completions'])
  expect(provider.received.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer sk-native',
    'Bearer sk-native',
  ])
})

describe.each([false, true])('a tool loop of a chat client (streamed: %s)', (stream) => {
  test('returns encrypted reasoning byte for byte, directly before its call', async () => {
    answers([thought, call])
    const message = await firstTurn(stream)
    answers([{ type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Rain.' }] }])
    const result = { role: 'tool', tool_call_id: 'call_1', content: 'rain' } as const
    await client.chat.completions.create({ ...asked, messages: [...asked.messages, message, result] })
    const { id, ...called } = call
    expect(provider.received[1]?.body.input).toEqual([
      { role: 'user', content: 'Weather in Graz?' },
      thought,
      called,
      { type: 'function_call_output', call_id: 'call_1', output: 'rain' },
    ])
    expect(provider.received[1]?.body).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
  })
})

test('a failure in the middle of a stream reaches the client, with the provider’s message', async () => {
  answer = (response) => {
    beginStream(response)
    const failed = { id: 'resp_1', status: 'failed', error: { code: 'server_error', message: 'Out of order' } }
    for (const data of [
      { type: 'response.created', response: { id: 'resp_1', model: 'gpt-5.4', created_at: 1 } },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hel', logprobs: [] },
      { type: 'error', error: { code: 'server_error', message: 'Out of order' } },
      { type: 'response.failed', response: failed },
    ])
      response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
    response.end()
  }
  const said: string[] = []
  const reading = async () => {
    for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true }))
      said.push(choices[0]?.delta.content ?? '')
  }
  await expect(reading()).rejects.toThrow('Out of order')
  expect(said.join('')).toBe('Hel')
})
