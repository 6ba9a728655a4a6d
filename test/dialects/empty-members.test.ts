import { describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../src/core/json.ts'
import { benchDialect, type Frame } from './replay.ts'

/** An answer of one text with these counts, whole and streamed; gateways fill in null for what is not there. */
type Case = { whole(usage: Json): JsonObject; frames(usage: Json): Frame[] }

const data = (value: JsonObject): Frame => ({ data: value })
const dialects: { [name: string]: Case } = {
  'openai-chat': {
    whole: (usage) => ({
      choices: [
        {
          index: 0,
          message: {
            content: [null, { type: 'text', text: 'Hi' }],
            tool_calls: [null],
            annotations: [null],
            images: null,
          },
          finish_reason: 'stop',
        },
      ],
      usage,
    }),
    frames: (usage) => [
      data({ choices: [{ index: 0, delta: { content: 'Hi', tool_calls: null, reasoning_details: [null] } }], usage }),
      data({ choices: [{ index: 0, delta: { tool_calls: [null], content: null }, finish_reason: 'stop' }], usage }),
      data({ choices: [], usage }),
    ],
  },
  'openai-responses': {
    whole: (usage) => ({
      status: 'completed',
      output: [null, { type: 'message', content: [null, { type: 'output_text', text: 'Hi', annotations: null }] }],
      usage,
    }),
    frames: (usage) => [
      data({ type: 'response.created', response: { status: 'in_progress', output: null, usage } }),
      data({ type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hi', logprobs: null }),
      data({ type: 'response.completed', response: { status: 'completed', output: null, usage } }),
    ],
  },
  'anthropic-messages': {
    whole: (usage) => ({
      content: [null, { type: 'text', text: 'Hi', citations: null }],
      stop_reason: 'end_turn',
      usage,
    }),
    frames: (usage) => [
      data({ type: 'message_start', message: { content: null, usage } }),
      data({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hi', citations: null } }),
      data({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_details: null }, usage }),
    ],
  },
  gemini: {
    whole: (usageMetadata) => ({
      candidates: [{ content: { parts: [null, { text: 'Hi', functionCall: null }] }, finishReason: 'STOP' }],
      usageMetadata,
    }),
    frames: (usageMetadata) => [
      data({ candidates: [{ content: { parts: [null, { text: 'Hi' }] } }], usageMetadata }),
      data({ candidates: [{ content: { parts: null }, finishReason: 'STOP' }], usageMetadata }),
    ],
  },
  'cohere-v2': {
    whole: (usage) => ({
      message: { content: [null, { type: 'text', text: 'Hi' }], tool_calls: [null], citations: null },
      finish_reason: 'COMPLETE',
      usage,
    }),
    frames: (usage) => [
      data({ type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hi' } } } }),
      data({ type: 'message-end', delta: { finish_reason: 'COMPLETE', usage } }),
    ],
  },
  ollama: {
    whole: (count) => ({
      message: { content: 'Hi', tool_calls: [null], images: null },
      done: true,
      done_reason: 'stop',
      eval_count: count,
    }),
    frames: (count) => [
      data({ message: { content: 'Hi', tool_calls: null }, done: false, eval_count: count }),
      data({ message: { content: '', tool_calls: [null] }, done: true, done_reason: 'stop', eval_count: count }),
    ],
  },
  'bedrock-converse': {
    whole: (usage) => ({
      output: { message: { content: [null, { text: 'Hi', toolUse: null }] } },
      stopReason: 'end_turn',
      usage,
    }),
    frames: (usage) => [
      { event: 'contentBlockDelta', data: { contentBlockIndex: 0, delta: { text: 'Hi' } } },
      { event: 'messageStop', data: { stopReason: 'end_turn' } },
      { event: 'metadata', data: { usage } },
    ],
  },
}

describe.each(Object.entries(dialects))('%s: nothing is read into members that are null', (name, { whole, frames }) => {
  const bench = benchDialect(name)

  test.each([{ usage: null }, { usage: {} }])('with the counts $usage', async ({ usage }) => {
    const counts = name === 'ollama' ? null : usage
    const written = { parts: [{ type: 'text', text: 'Hi' }], finish: 'stop', usage: {} }
    expect((await bench.reply(whole(counts))).reply).toMatchObject(written)
    expect((await bench.stream(frames(counts))).reply).toMatchObject(written)
  })
})

test('a call beside a text that is null is read', async () => {
  const call = { type: 'tool_call', id: 't', name: 'f', arguments: '{}' }
  const gemini = { text: null, functionCall: { id: 't', name: 'f', args: null } }
  expect(
    (await benchDialect('gemini').reply({ candidates: [{ content: { parts: [gemini] }, finishReason: 'STOP' }] }))
      .reply,
  ).toMatchObject({ parts: [call] })
  const converse = { text: null, toolUse: { toolUseId: 't', name: 'f', input: null } }
  expect(
    (
      await benchDialect('bedrock-converse').reply({
        output: { message: { content: [converse] } },
        stopReason: 'tool_use',
      })
    ).reply,
  ).toMatchObject({ parts: [call] })
})
