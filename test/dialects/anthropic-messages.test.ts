import { describe, expect, test } from 'vitest'
import type { ErrorCode } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { errorFor } from '../../src/upstream/provider-error.ts'
import { recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { assembled, framesOf, readMessage } from './anthropic-messages-reader.ts'
import { benchDialect } from './replay.ts'

const bench = benchDialect('anthropic-messages')
const answered = recordings('anthropic-messages').filter(({ response }) => response.status === 200)

describe.skipIf(recordingsMissing)('recorded answers', () => {
  test.each(answered.map((recording) => [recording.case, recording] as const))('%s', async (_, recording) => {
    const message = assembled(recording)
    const expected = readMessage(message)
    const streamed = recording.response.sse !== undefined
    const frames = streamed ? recordedEvents(recording) : framesOf(message)
    const fromStream = await bench.stream(frames)
    const fromWhole = await bench.reply(message)
    expect(fromStream.complete).toBe(true)
    expect(viewOf(fromWhole.reply)).toEqual(expected)
    expect(viewOf(fromStream.reply)).toEqual(expected)
    expect(kindsOf(fromStream.reply)).toEqual(kindsOf(fromWhole.reply))
  })
})

describe('streams', () => {
  const begun = {
    type: 'message_start',
    message: { id: 'm', model: 'c', usage: { input_tokens: 5, output_tokens: 1 } },
  }
  const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } }
  const stream = (...frames: JsonObject[]) => bench.stream([begun, ...frames].map((data) => ({ data })))

  test('that report an error have its type, its status and its message', async () => {
    const { error, complete } = await stream(delta, {
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
    })
    expect(error).toEqual({ status: 529, code: 'overloaded_error', message: 'Overloaded' })
    expect(complete).toBe(false)
  })

  test('that end without a reason are cut', async () => {
    expect((await stream(delta, { type: 'message_stop' })).complete).toBe(false)
  })

  test('ignore pings and unknown events', async () => {
    const { reply } = await stream(
      { type: 'ping' },
      { type: 'something_new', index: 3 },
      { type: 'content_block_delta', index: 0, delta: { type: 'something_newer', text: 'x' } },
      delta,
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: {} },
    )
    expect(reply).toMatchObject({ parts: [{ type: 'text', text: 'a' }], finish: 'stop' })
  })

  test('keep the earlier count where the last one is null', async () => {
    const usage = { input_tokens: null, output_tokens: 9, output_tokens_details: null, server_tool_use: null }
    const { reply } = await stream(delta, { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })
    expect(reply.usage).toEqual({ input: 5, output: 9 })
  })

  test('and whole replies name every reason to stop, and take a new one for an ordinary stop', async () => {
    const reasons = ['end_turn', 'max_tokens', 'model_context_window_exceeded', 'pause_turn', 'refusal', 'novelty']
    for (const [index, finish] of ['stop', 'length', 'length', 'pause', 'refusal', 'stop'].entries()) {
      const stop_reason = reasons[index] as string
      const { reply } = await stream({ type: 'message_delta', delta: { stop_reason }, usage: {} })
      expect(reply).toMatchObject({ finish, finish_raw: stop_reason })
      const whole = await bench.reply({ id: 'm', content: [], stop_reason, usage: {} })
      expect(whole.reply).toMatchObject({ finish, finish_raw: stop_reason })
    }
  })
})

test('cache writes that the last event only sums up keep the lifetimes of the first event', async () => {
  const cache_creation = { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 500 }
  const { reply } = await bench.stream([
    { data: { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, cache_creation } } } },
    {
      data: { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { cache_creation_input_tokens: 650 } },
    },
  ])
  expect(reply.usage).toEqual({ input: 1, cache_write_5m: 150, cache_write_1h: 500 })
})

test('a failed search is marked as failed and keeps the error', async () => {
  const results = { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' }
  const content = [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: results },
  ]
  const { reply } = await bench.reply({ id: 'm', content, stop_reason: 'end_turn', usage: {} })
  expect(reply.parts).toEqual([
    { type: 'search', by: 'maker', id: 'srvtoolu_1', query: 'q', status: 'failed', results },
  ])
})

describe.skipIf(recordingsMissing)('recorded errors', () => {
  const refused = recordings('anthropic-messages').filter(({ response }) => response.status !== 200)
  const meanings: Record<string, ErrorCode> = {
    'prompt is too long': 'context_length',
    'does not support effort level': 'invalid_request',
    'does not match the expected shape': 'invalid_request',
    'refused the credential': 'provider_refused',
    'model: claude-sonet-4-5': 'model_not_found',
  }

  test.each(refused.map((recording) => [recording.case, recording.response] as const))('%s', (_, { status, body }) => {
    const provider = { slug: 'p', auth: { scheme: 'none' }, headers: {}, errors: bench.errors } as unknown as Provider
    const error = errorFor(provider, { status, headers: {}, text: JSON.stringify(body) })
    const expected = Object.entries(meanings).find(([piece]) => error.message.includes(piece))
    expect([error.code, error.providerCode]).toEqual([expected?.[1], body.error.type])
  })
})

/** The contents of a reply, independent of the neutral form. */
function viewOf({ parts, usage, ...facts }: Reply) {
  const of = <T extends Part['type']>(type: T) => parts.filter((part): part is Part & { type: T } => part.type === type)
  return {
    id: facts.id,
    model: facts.model,
    finish: facts.finish,
    raw: facts.finish_raw,
    stop: facts.stop_sequence,
    text: of('text').map(({ text, citations = [] }) => ({ text, citations })),
    calls: of('tool_call').map((call) => ({ id: call.id, name: call.name, input: JSON.parse(call.arguments) })),
    reasoning: of('reasoning').map(({ text, signature, encrypted }) => ({ text, signature, encrypted })),
    searches: of('search').map(({ id, query, status, results }) => ({ id, query, status, results })),
    opaque: of('opaque').map(({ body }) => body),
    refusal: of('refusal').map(({ text }) => text),
    usage: Object.fromEntries(Object.entries(usage).filter(([name, count]) => name !== 'modes' && count !== 0)),
  }
}

function kindsOf({ parts }: Reply): string[] {
  return parts.map(({ type }) => type)
}
