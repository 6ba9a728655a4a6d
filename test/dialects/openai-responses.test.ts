import { describe, expect, test } from 'vitest'
import type { ErrorCode } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { errorFor, reportedFailure } from '../../src/upstream/provider-error.ts'
import { type Recording, recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { eventsIn, framesOf, isStream, readResponse, streamedOf, wholeOf } from './openai-responses-reader.ts'
import { benchDialect, type Frame } from './replay.ts'
import { publishedEvents, responsesSchemaMissing } from './responses-schema.ts'

const bench = benchDialect('openai-responses')
const recorded = recordings('openai-responses')
const failing = recorded.filter(({ case: name }) => name.includes('/error-mid-stream'))
const refused = recorded.filter(({ response }) => response.status !== 200)
const complete = recorded.filter((recording) => !failing.includes(recording) && !refused.includes(recording))

/** Recordings whose text deltas differ from the finished item: they were shortened. */
const shortened: { [start: string]: string } = { 'openai-responses/shell-call-stream': 'The command ran successfully.' }

describe.skipIf(recordingsMissing)('every recorded answer', () => {
  for (const recording of complete) {
    const { case: name } = recording
    test(`${name} is read correctly`, async () => {
      const { reply, error } = await bench.reply(wholeOf(recording))
      expect(error).toBeUndefined()
      expect(factsOf(reply)).toEqual(readResponse(wholeOf(recording)))
    })

    test(`${name} means the same streamed`, async () => {
      const frames = isStream(recording) ? recordedEvents(recording) : framesOf(wholeOf(recording))
      const { reply, error, complete: whole } = await bench.stream(frames)
      expect(error).toBeUndefined()
      expect(whole).toBe(true)
      const expected = readResponse(isStream(recording) ? streamedOf(recording) : wholeOf(recording))
      const [, text] = Object.entries(shortened).find(([start]) => name.startsWith(start)) ?? []
      const expectedText = expected.text.map((part) => ({ ...part, text: text ?? part.text }))
      expect(factsOf(reply)).toEqual({ ...expected, text: expectedText })
    })
  }

  test('none is left out', () => {
    expect(complete.length + failing.length + refused.length).toBe(recorded.length)
    expect(recorded.length).toBeGreaterThanOrEqual(56)
  })
})

describe.skipIf(recordingsMissing)('what a stream says only', () => {
  const streams = complete.filter(isStream)
  const typeOf = ({ event = '', data }: Frame): string => {
    if (data === '[DONE]') return 'end'
    const { type = event } = typeof data === 'string' ? JSON.parse(data) : data
    return type
  }
  const isDelta = (frame: Frame) => /delta|_text\.done|_part\.|annotation|arguments|partial_image/.test(typeOf(frame))
  const isItem = (frame: Frame) => /output_item|in_progress|searching|interpreting|generating|_call/.test(typeOf(frame))

  // Log probabilities are in the pieces only.
  test.each(streams)('in its finished items is not lost: $case', async (recording) => {
    const frames = recordedEvents(recording)
    const { reply } = await bench.stream(frames.filter((frame) => !isDelta(frame)))
    const { logprobs: _none, ...expected } = readResponse(streamedOf(recording))
    expect(factsOf(reply)).toMatchObject(expected)
  })

  // What only its provider understands is in finished items only.
  test.each(streams)('in its last event is not lost: $case', async (recording) => {
    const frames = recordedEvents(recording)
    const { reply } = await bench.stream(frames.filter((frame) => !isDelta(frame) && !isItem(frame)))
    const { logprobs: _none, opaque: _own, order, ...expected } = readResponse(wholeOf(recording))
    expect(factsOf(reply)).toMatchObject({ ...expected, order: order.filter((type) => type !== 'opaque') })
  })
})

describe.skipIf(recordingsMissing)('a stream that breaks off reports the reason', () => {
  const codes: { [provider: string]: ErrorCode } = { '418a13': 'rate_limited', '48a0f9': 'quota_exhausted' }

  test.each(failing)('$case', async (recording: Recording) => {
    const { error, complete: whole } = await bench.stream(recordedEvents(recording))
    const failure = eventsIn(recording).find(({ type }) => type === 'error').error
    expect(error).toEqual({ code: failure.code, message: failure.message })
    expect(whole).toBe(false)
    expect(reportedFailure(provider, error as { message: string }).code).toBe(codes[recording.case.slice(-6)])
    const last = await bench.stream(recordedEvents(recording).filter(({ event }) => event !== 'error'))
    expect(last.error).toEqual({ code: failure.code, message: failure.message })
    expect((await bench.reply(wholeOf(recording))).error).toEqual({
      code: failure.code,
      message: failure.message,
    })
  })
})

const provider = { slug: 'p', auth: { scheme: 'none' }, headers: {}, errors: bench.errors } as unknown as Provider

describe.skipIf(recordingsMissing)('every recorded refusal has its error', () => {
  const meanings: { [piece: string]: ErrorCode } = {
    'refused the credential': 'provider_refused',
    'file type you uploaded': 'invalid_request',
  }

  test.each(refused)('$case', ({ response: { status, headers, body } }) => {
    const error = errorFor(provider, { status, headers, text: JSON.stringify(body) })
    const expected = Object.entries(meanings).find(([piece]) => error.message.includes(piece))
    expect(error.code).toBe(expected?.[1])
  })
})

/** Events that repeat others, or report progress of provider tools, whose items come whole. */
const ignored = [
  /^response\.(queued|in_progress|content_part\.done)$/,
  /^response\.(output_text|refusal|reasoning_text|reasoning_summary_text|reasoning_summary_part)\.done$/,
  /^response\.(function_call_arguments|custom_tool_call_input)\.done$/,
  /^response\.audio\./,
  /^response\.(code_interpreter|file_search|image_generation|mcp)_call\./,
  /^response\.(code_interpreter_call_code|mcp_call_arguments|mcp_list_tools)\./,
  /^response\.shell_call_(command|output_content)\./,
]

test.skipIf(responsesSchemaMissing)('every published event is read or ignored on purpose', () => {
  const named = [...bench.chat.events.keys()]
  const others = publishedEvents().filter((name) => !named.includes(name))
  expect(others.filter((name) => !ignored.some((pattern) => pattern.test(name)))).toEqual([])
})

describe('streams', () => {
  const item = (output_index: number, item: JsonObject, step = 'done'): Frame => ({
    data: { type: `response.output_item.${step}`, output_index, item },
  })
  const delta = (output_index: number, text: string, more: JsonObject = {}): Frame => ({
    data: { type: 'response.output_text.delta', output_index, content_index: 0, delta: text, ...more },
  })
  const end = (response: JsonObject = { status: 'completed' }): Frame => ({
    data: { type: `response.${response.status}`, response },
  })

  test('are cut without a last event, whatever came before', async () => {
    expect((await bench.stream([delta(0, 'a'), { data: { type: 'response.output_text.done' } }])).complete).toBe(false)
  })

  test('report failures flat, nested, without a type, and by the status alone', async () => {
    const failures = [
      [{ type: 'error', code: 'server_error', message: 'no' }, 'server_error', 'no'],
      [{ type: 'error', code: null, message: 'no' }, undefined, 'no'],
      [{ type: 'error', error: { type: 'tokens', code: null, message: 'no' } }, 'tokens', 'no'],
      [{ error: { code: 502, message: 'no' } }, '502', 'no'],
      [{ type: 'response.failed', response: { status: 'failed', error: null } }, undefined, /status failed/],
    ] as const
    for (const [data, code, message] of failures) {
      const { error } = await bench.stream([{ data: data as unknown as JsonObject }])
      expect(error?.code).toBe(code)
      expect(error?.message).toMatch(message)
    }
  })

  test('separate items whose deltas are interleaved, and calls whose names come first', async () => {
    const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '' })
    const grow = (output_index: number, text: string): Frame => ({
      data: {
        type: 'response.function_call_arguments.delta',
        output_index,
        item_id: 'another every time',
        delta: text,
      },
    })
    const { reply } = await bench.stream([
      item(0, call('a'), 'added'),
      item(1, call('b'), 'added'),
      grow(0, '{"x"'),
      grow(1, '{"y"'),
      grow(0, ':1}'),
      grow(1, ':2}'),
      end(),
    ])
    expect(reply).toMatchObject({
      parts: [{ arguments: '{"x":1}' }, { arguments: '{"y":2}' }],
      finish: 'tool_calls',
      finish_raw: 'completed',
    })
  })

  test('take encrypted reasoning from the finished item, not from the added one', async () => {
    const thought = (encrypted_content: string) => ({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content })
    const { reply } = await bench.stream([item(0, thought('early'), 'added'), item(0, thought('final')), end()])
    expect(reply.parts).toEqual([{ type: 'reasoning', by: 'maker', id: 'rs_1', encrypted: 'final' }])
  })

  test('give back the mark of a message on each of its texts', async () => {
    const content = [
      { type: 'output_text', text: 'a' },
      { type: 'refusal', refusal: 'b' },
      { type: 'output_text', text: '' },
      { type: 'output_text', text: 'c' },
    ]
    const message = { type: 'message', phase: 'commentary', content }
    const { reply } = await bench.stream([
      delta(0, 'a'),
      { data: { type: 'response.refusal.delta', output_index: 0, content_index: 1, delta: 'b' } },
      delta(0, 'c', { content_index: 3 }),
      item(0, message),
      end(),
    ])
    const expected = [
      { type: 'text', text: 'a', signature: 'commentary', by: 'maker' },
      { type: 'refusal', text: 'b' },
      { type: 'text', text: 'c', signature: 'commentary', by: 'maker' },
    ]
    expect(reply.parts).toEqual(expected)
    expect((await bench.reply({ status: 'completed', output: [message] })).reply.parts).toEqual(expected)
  })

  test('and whole replies name every reason to end', async () => {
    const reasons = { max_output_tokens: 'length', content_filter: 'content_filter', novelty: 'length' }
    for (const [reason, finish] of Object.entries(reasons)) {
      const response = { id: 'r', status: 'incomplete', incomplete_details: { reason }, output: [] }
      expect((await bench.stream([end(response)])).reply).toMatchObject({ finish, finish_raw: reason })
      expect((await bench.reply(response)).reply).toMatchObject({ finish, finish_raw: reason })
    }
  })
})

describe('differences between servers of this format', () => {
  test('a response that is not done is a failure', async () => {
    for (const status of ['queued', 'in_progress', 'cancelled']) {
      const { error } = await bench.reply({ id: 'r', status, output: [] })
      expect(error?.message).toContain(status)
    }
  })

  test('searches may have their query in JSON, or be page visits that are not billed', async () => {
    const output = [
      { type: 'web_search_call', id: 'a', status: 'completed', name: 'web_search', arguments: '{"query":"q"}' },
      { type: 'web_search_call', id: 'b', status: 'completed', action: { type: 'open_page', url: 'https://a' } },
      { type: 'web_search_call', id: 'c', status: 'failed', action: { type: 'search', query: 'r' } },
      { type: 'web_search_call', id: 'd', action: { type: 'search', query: 's' } },
    ]
    const { reply } = await bench.reply({ status: 'completed', output, usage: { input_tokens: 1, output_tokens: 1 } })
    expect(reply.parts).toMatchObject([
      { query: 'q' },
      { results: { type: 'open_page' } },
      { status: 'failed' },
      { query: 's' },
    ])
    expect(reply.usage.searches).toBe(2)
  })

  test('the tier and moderation results are reported, and nothing where there are none', async () => {
    const judgement = { type: 'moderation_result', model: 'omni', flagged: false }
    const facts = { status: 'completed', output: [], service_tier: 'flex' }
    const extensionsOf = async (response: JsonObject) => {
      const frames = [{ data: { type: 'response.completed', response } }]
      const [whole, streamed] = [await bench.reply(response), await bench.stream(frames)]
      expect(streamed.reply.extensions).toEqual(whole.reply.extensions)
      return whole.reply.extensions
    }
    expect(await extensionsOf({ ...facts, moderation: null })).toEqual({ service_tier: 'flex' })
    expect(await extensionsOf({ ...facts, service_tier: null, moderation: null })).toBeUndefined()
    const results = { type: 'moderation_results', model: 'omni', results: [judgement] }
    expect(await extensionsOf({ ...facts, moderation: { input: judgement, output: null } })).toEqual({
      service_tier: 'flex',
      moderation: { input: results, output: null },
    })
  })

  test('a failed image is kept as it is', async () => {
    const body = { type: 'image_generation_call', id: 'ig_1', status: 'failed', result: null }
    const { reply } = await bench.reply({ status: 'completed', output: [body] })
    expect(reply.parts).toEqual([{ type: 'opaque', by: 'maker', body }])
  })
})

type Facts = ReturnType<typeof readResponse>

/** The contents of a reply, in the form of the independent reader. */
function factsOf({ parts, usage, logprobs, ...reply }: Reply): Facts {
  const of = <T extends Part['type']>(type: T) => parts.filter((part): part is Part & { type: T } => part.type === type)
  const probabilities = (logprobs as { content?: { token: string }[] } | undefined)?.content ?? []
  return {
    id: reply.id,
    model: reply.model,
    created: reply.created,
    finish: reply.finish,
    raw: reply.finish_raw,
    text: of('text').map(({ text, signature, citations = [] }) => ({ text, phase: signature, citations })),
    refusal: of('refusal').map(({ text }) => text),
    calls: of('tool_call').map((call) => ({
      id: call.id,
      name: call.name,
      arguments: call.arguments,
      custom: call.kind === 'custom',
    })),
    reasoning: of('reasoning').map(({ id, summary, text, encrypted }) => ({ id, summary, text, encrypted })),
    searches: of('search').map(({ id, status, query, results }) => ({ id, status, query, action: results })),
    images: of('image').map(({ id, data, media_type }) => ({ id, data, type: media_type as string })),
    opaque: of('opaque').map(({ body }) => body),
    logprobs: probabilities.map(({ token }) => token),
    usage: Object.fromEntries(Object.entries(usage).filter(([name, count]) => name !== 'modes' && count !== 0)),
    order: parts.map(({ type }) => type),
  }
}
