import { describe, expect, it, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { Fold } from '../../src/core/fold.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Finish } from '../../src/core/reply.ts'

const finishes: { [word: string]: Finish } = { eos: 'stop', model_length: 'length', sensitive: 'content_filter' }
const finishOf = (word: string) => finishes[word]
const model = 'maker/model'
const hi = [{ role: 'user', content: 'hi' }]
const facts = { model, usage: { input: 10, output: 5 }, finishOf }
const streamFacts = { model, id: 'call-1', finishOf }

describe('messages of a provider of the same format', () => {
  const text = { type: 'text', text: 'a' }
  const call = { type: 'tool_use', id: 'a', name: 'f', input: {} }
  const request = messages.read({ model, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] })

  function streamed(block: JsonObject, ...last: JsonObject[]): JsonObject[] {
    const writer = messages.openStream(request, streamFacts)
    const frames = [{ type: 'content_block_start', index: 0, content_block: block }, ...last]
    const written = frames.map((frame) => writer.edit(frame)).join('') + writer.end(facts)
    return [...written.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  }
  const delta = (stop_reason: string | null): JsonObject => {
    return { type: 'message_delta', delta: { stop_reason, stop_sequence: null, odd: 1 }, usage: { output_tokens: 5 } }
  }

  it.each([
    ['eos', text, 'end_turn'],
    ['eos', call, 'tool_use'],
    ['model_length', call, 'max_tokens'],
    ['sensitive', text, 'refusal'],
    ['model_context_window_exceeded', text, 'model_context_window_exceeded'],
    ['compaction', text, 'compaction'],
    ['unheard_of', text, 'unheard_of'],
    [null, text, 'end_turn'],
    [null, call, 'tool_use'],
  ])('that stop with %j after %j stop with %s', (word, block, stop_reason) => {
    const body = { type: 'message', content: [block], stop_reason: word, stop_sequence: null, usage: {} }
    expect(messages.editReply(body, facts)).toEqual({ ...body, model, stop_reason })
    const [, last, end] = streamed(block, delta(word))
    expect(last).toEqual({ ...delta(word), delta: { stop_reason, stop_sequence: null, odd: 1 } })
    expect(end).toEqual({ type: 'message_stop' })
  })

  it('stop with a reason when the stream has none', () => {
    for (const [block, stop_reason] of [
      [text, 'end_turn'],
      [call, 'tool_use'],
    ] as const) {
      const [, last, end] = streamed(block)
      expect(last).toMatchObject({ type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 5 } })
      expect(end).toEqual({ type: 'message_stop' })
    }
  })
})

describe('responses of a provider of the same format', () => {
  const request = responses.read({ model, input: 'hi' })
  const response = { id: 'resp_1', object: 'response', output: [], odd: 1, usage: { output_tokens: 5 } }
  const item = { type: 'message', id: 'msg_1', content: [{ type: 'output_text', text: 'a' }] }

  function streamed(...frames: JsonObject[]): JsonObject[] {
    const writer = responses.openStream(request, streamFacts)
    const written = frames.map((frame) => writer.edit(frame)).join('') + writer.end(facts)
    return [...written.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  }
  const incomplete = (reason: string) => ({ status: 'incomplete', incomplete_details: { reason } })

  it.each<[JsonObject, JsonObject]>([
    [incomplete('model_length'), incomplete('max_output_tokens')],
    [incomplete('sensitive'), incomplete('content_filter')],
    [incomplete('eos'), { status: 'completed', incomplete_details: null }],
    [{ status: 'eos' }, { status: 'completed' }],
    [{ status: 'model_length' }, incomplete('max_output_tokens')],
    [incomplete('max_output_tokens'), incomplete('max_output_tokens')],
    [incomplete('steered'), incomplete('steered')],
    [incomplete('unheard_of'), incomplete('unheard_of')],
    [{ status: 'completed' }, { status: 'completed' }],
  ])('that end with %j end with %j', (given, ending) => {
    expect(responses.editReply({ ...response, ...given }, facts)).toMatchObject({ ...response, model, ...ending })
    const terminal = { type: 'response.incomplete', sequence_number: 7, response: { ...response, ...given } }
    expect(streamed(terminal)).toMatchObject([
      { type: `response.${ending.status}`, sequence_number: 7, response: { ...response, model, ...ending } },
    ])
  })

  test('are completed, with the items that were done, when the stream has no last event', () => {
    const begun = { ...response, status: 'in_progress' }
    const events = streamed(
      { type: 'response.created', sequence_number: 0, response: begun },
      { type: 'response.output_item.done', sequence_number: 1, output_index: 0, item },
    )
    expect(events.at(-1)).toMatchObject({
      type: 'response.completed',
      sequence_number: 2,
      response: { id: 'resp_1', model, odd: 1, status: 'completed', output: [item], usage: { output_tokens: 5 } },
    })
  })
})

describe.each([
  [chat, { messages: hi }, '"finish_reason":"length"'],
  [messages, { max_tokens: 9, messages: hi }, '"stop_reason":"max_tokens"'],
  [responses, { input: 'hi' }, '"status":"incomplete"'],
])('a translated stream that its provider ended with an error', (api, body, ending) => {
  test(`does not look complete in the ${api.api} API`, () => {
    const writer = api.openStream(api.read({ model, ...body }), streamFacts)
    const folding = new Fold({ signer: 'm', newId: () => 'id-1', now: () => 1 })
    const events = [{ text: 'a' }, { finish: 'error' as const }].flatMap((event) => folding.take(event))
    const text = writer.events(events) + writer.events(folding.end()) + writer.end(facts)
    expect(text).toContain(ending)
  })
})
