import { describe, expect, test } from 'vitest'
import { wireNames } from '../../src/api/chat/fields.ts'
import { readRequest } from '../../src/api/chat/read.ts'
import type { Json, JsonObject } from '../../src/core/json.ts'
import type { Part, ToolCallPart } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Message, NeutralRequest } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { unsupportedByMapping } from '../../src/manifest/run/inferred-support.ts'
import { errorFor } from '../../src/upstream/provider-error.ts'
import { recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import {
  cacheBeside,
  chunksOf,
  type Facts,
  isStream,
  joined,
  nonZero,
  readIndependently,
  speakers,
} from './openai-chat-reader.ts'
import { benchDialect, type Frame, traitsOf } from './replay.ts'

const dialect = benchDialect('openai-chat')

const recorded = speakers.flatMap((name) => recordings(name))
const answered = recorded.filter(({ response }) => response.status === 200)
const refused = recorded.filter(({ response }) => response.status !== 200)
const failing = answered.filter(({ case: name }) => name.includes('/error-mid-stream'))
const complete = answered.filter((recording) => !failing.includes(recording))

describe.skipIf(recordingsMissing)('every recorded answer', () => {
  for (const recording of complete.filter((one) => !cacheBeside.test(one.case))) {
    test(`${recording.case} is read correctly`, async () => {
      const replayed = isStream(recording)
        ? await dialect.stream(recordedEvents(recording))
        : await dialect.reply(recording.response.body)
      expect(replayed.error).toBeUndefined()
      expect(replayed.complete).toBe(true)
      expect(factsOf(replayed.reply)).toEqual(readIndependently(recording))
    })
  }

  for (const recording of complete.filter(isStream)) {
    test(`${recording.case} means the same whole`, async () => {
      const streamed = await dialect.stream(recordedEvents(recording))
      const whole = await dialect.reply(joined(chunksOf(recording)))
      expect(factsOf(whole.reply)).toEqual(factsOf(streamed.reply))
    })
  }

  test('none is left out', () => {
    expect(complete.length + failing.length + refused.length).toBe(recorded.length)
    expect(recorded.length).toBeGreaterThanOrEqual(168)
  })
})

describe.skipIf(recordingsMissing)('a stream that breaks off reports the reason', () => {
  test.each(failing)('$case', async (recording) => {
    const { error } = await dialect.stream(recordedEvents(recording))
    const failure = chunksOf(recording).find(({ error }) => error).error
    expect(error).toEqual({ status: 400, code: String(failure.code), message: failure.message })
  })

  test.each([
    ['an error that is a text', { error: 'out of memory' }, { message: 'out of memory' }],
    ['an error without a wrapper', { object: 'error', message: 'no', code: 3051 }, { code: '3051', message: 'no' }],
    ['a message that is a list', { error: { message: [{ msg: 'bad' }] } }, { message: '[{"msg":"bad"}]' }],
  ])('%s', async (_, data, expected) => {
    expect((await dialect.stream([{ data }])).error).toEqual(expected)
    expect((await dialect.reply(data)).error).toEqual(expected)
  })
})

/** The catalogue's name for each recorded refusal. */
const refusals: { [start: string]: string } = {
  'openai-chat/error-400': 'invalid_request',
  'openai-chat/error-404': 'model_not_found',
  'groq/error-400': 'invalid_request',
  'groq/error-404': 'model_not_found',
  'deepseek/error-400': 'context_length',
  'mistral/error-400': 'invalid_request',
  'openrouter/error-400': 'context_length',
  'openrouter/error-429': 'rate_limited',
  'azure-openai/error-404': 'model_not_found',
  'azure-openai/error-429': 'rate_limited',
  'openai-compatible/error-404': 'model_not_found',
  'openai-compatible/error-500': 'provider_failed',
  'perplexity/error-400': 'context_length',
}

describe.skipIf(recordingsMissing)('every recorded refusal has its error', () => {
  const provider = { slug: 'x', auth: { scheme: 'none' }, headers: {}, errors: dialect.errors } as unknown as Provider
  test.each(refused)('$case', ({ case: name, response: { status, headers, body } }) => {
    const start = Object.keys(refusals).find((known) => name.startsWith(known))
    const expected = status === 401 || status === 403 ? 'provider_refused' : refusals[start ?? '']
    expect(errorFor(provider, { status, headers, text: JSON.stringify(body) }).code).toBe(expected)
  })

  test('exhausted credit and quota are not retryable', () => {
    const code = (status: number, error: object) =>
      errorFor(provider, { status, headers: {}, text: JSON.stringify({ error: { message: 'no', ...error } }) }).code
    expect(code(429, { type: 'insufficient_quota', code: 'insufficient_quota' })).toBe('quota_exhausted')
    expect(code(429, { code: 'rate_limit_exceeded' })).toBe('rate_limited')
    expect(code(402, {})).toBe('quota_exhausted')
  })
})

describe('differences between servers of this format', () => {
  const chunk = (delta: JsonObject, others: JsonObject = {}): Frame => {
    return { data: { id: 'c', choices: [{ index: 0, delta, ...others }] } }
  }
  const stop = chunk({}, { finish_reason: 'stop' })
  const partsOf = async (...frames: Frame[]) => {
    const { reply } = await dialect.stream(frames)
    return reply.parts
  }

  test('calls without an index begin with their name', async () => {
    const parts = await partsOf(
      chunk({ tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{"x"' } }] }),
      chunk({ tool_calls: [{ function: { arguments: ':1}' } }] }),
      chunk({ tool_calls: [{ id: 'b', function: { name: 'g', arguments: '{}' } }] }),
      stop,
    )
    expect(parts).toEqual([
      { type: 'tool_call', id: 'a', name: 'f', arguments: '{"x":1}' },
      { type: 'tool_call', id: 'b', name: 'g', arguments: '{}' },
    ])
  })

  test('an empty id and a missing name in later deltas change nothing', async () => {
    const parts = await partsOf(
      chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] }),
      chunk({ tool_calls: [{ index: 0, id: '', function: { name: null, arguments: '{}' } }] }),
      chunk({ tool_calls: [{ index: 0, id: null, function: { arguments: null } }] }),
      stop,
    )
    expect(parts).toEqual([{ type: 'tool_call', id: 'a', name: 'f', arguments: '{}' }])
  })

  test('calls that come whole are told apart by their ids, even when all have the same index', async () => {
    const whole = (id: string, name: string, args: Json) => ({ index: 0, id, function: { name, arguments: args } })
    const calls = [
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { id: 'b', name: 'f', arguments: '{}' },
      { id: 'c', name: 'g', arguments: '{"y":2}' },
    ]
    const { reply } = await dialect.stream([
      chunk({ tool_calls: [whole('a', 'f', '{"x":1}'), whole('b', 'f', '{}')] }),
      chunk({ tool_calls: [whole('c', 'g', { y: 2 })] }),
      // Some end with a piece that says nothing.
      chunk({ tool_calls: [{ index: 0, function: { arguments: '' } }] }, { finish_reason: 'tool_calls' }),
    ])
    expect(reply.parts).toEqual(calls.map((call) => ({ type: 'tool_call', ...call })))
  })

  test('calls that come in pieces are told apart by their ids, even when all have the same index', async () => {
    const piece = (args: string, names: JsonObject = {}) =>
      chunk({
        tool_calls: [{ index: 0, ...names, function: { ...(names.id && { name: 'f' }), arguments: args } } as Json],
      })
    const parts = await partsOf(
      piece('{"x"', { id: 'a' }),
      piece(':1}'),
      piece('{"x"', { id: 'b' }),
      piece(':2}'),
      stop,
    )
    expect(parts).toEqual([
      { type: 'tool_call', id: 'a', name: 'f', arguments: '{"x":1}' },
      { type: 'tool_call', id: 'b', name: 'f', arguments: '{"x":2}' },
    ])
  })

  test('calls of two indexes may take turns, and arguments may be an object', async () => {
    const parts = await partsOf(
      chunk({
        tool_calls: [
          { index: 0, id: 'a', function: { name: 'f', arguments: '{' } },
          { index: 1, id: 'b', function: { name: 'g' } },
        ],
      }),
      chunk({
        tool_calls: [
          { index: 1, function: { arguments: { y: 2 } } },
          { index: 0, function: { arguments: '}' } },
        ],
      }),
      stop,
    )
    expect(parts.map((part) => (part as ToolCallPart).arguments)).toEqual(['{}', '{"y":2}'])
  })

  test('a custom tool takes free text', async () => {
    const parts = await partsOf(
      chunk({ tool_calls: [{ index: 0, id: 'a', type: 'custom', custom: { name: 'sql', input: 'select' } }] }),
      chunk({ tool_calls: [{ index: 0, custom: { input: ' 1' } }] }),
      stop,
    )
    expect(parts).toEqual([{ type: 'tool_call', id: 'a', name: 'sql', arguments: 'select 1', kind: 'custom' }])
  })

  test('a function call of the former kind is a tool call', async () => {
    const { reply } = await dialect.stream([
      chunk({ function_call: { name: 'f', arguments: '{' } }),
      chunk({ function_call: { arguments: '}' } }),
      chunk({}, { finish_reason: 'function_call' }),
    ])
    expect(reply.parts).toMatchObject([{ type: 'tool_call', name: 'f', arguments: '{}' }])
    expect(reply.finish).toBe('tool_calls')
  })

  test('only the first choice makes parts', async () => {
    const other = { data: { choices: [{ index: 1, delta: { content: 'no' } }] } }
    expect(await partsOf(chunk({ content: 'yes' }), other, stop)).toEqual([{ type: 'text', text: 'yes' }])
  })

  test('null members mean nothing', async () => {
    const message = {
      content: null,
      refusal: null,
      audio: null,
      annotations: null,
      tool_calls: null,
      function_call: null,
    }
    const silent = { ...message, reasoning: null, reasoning_content: null, reasoning_details: null, images: null }
    expect(await partsOf(chunk(silent), stop)).toEqual([])
    expect(
      (await dialect.reply({ choices: [{ index: 0, message: silent, finish_reason: 'stop' }] })).reply.parts,
    ).toEqual([])
  })

  test('a signature keeps the kind of its reasoning', async () => {
    const details = [
      { type: 'reasoning.text', text: 'Hm', index: 0 },
      { type: 'reasoning.text', signature: 's', index: 0 },
      { type: 'reasoning.encrypted', data: 'x==', format: 'google-gemini-v1', id: 'tool_1', index: 1 },
    ]
    const parts = await partsOf(
      ...details.map((detail) => chunk({ reasoning: detail.text, reasoning_details: [detail] })),
      stop,
    )
    expect(parts).toEqual([
      { type: 'reasoning', text: 'Hm', signature: 's', by: 'maker' },
      { type: 'reasoning', encrypted: 'google-gemini-v1:x==', id: 'tool_1', by: 'maker' },
    ])
  })

  test('a citation is nested or flat, and one of no length has no place', async () => {
    const { reply } = await dialect.stream([
      chunk({ content: 'See it.' }),
      chunk({
        annotations: [{ type: 'url_citation', url_citation: { url: 'a', title: 'A', start_index: 0, end_index: 3 } }],
      }),
      chunk({
        annotations: [
          { type: 'url_citation', url: 'b', title: '', start_index: 0, end_index: 0 },
          { type: 'file', file: {} },
        ],
      }),
      stop,
    ])
    expect(reply.parts).toEqual([
      { type: 'text', text: 'See it.', citations: [{ url: 'a', title: 'A', start: 0, end: 3 }, { url: 'b' }] },
    ])
  })

  test('an image that a model made is media', async () => {
    const images = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }]
    const image = { type: 'image', data: 'aGk=', media_type: 'image/png' }
    expect(await partsOf(chunk({ content: '', images }), stop)).toEqual([image])
    expect((await dialect.reply({ choices: [{ message: { images }, finish_reason: 'stop' }] })).reply.parts).toEqual([
      image,
    ])
  })

  test('a provider’s own finish reason becomes the closest neutral one, and stays available raw', async () => {
    const finish = async (reason: string) => (await dialect.stream([chunk({}, { finish_reason: reason })])).reply
    expect(await finish('model_length')).toMatchObject({ finish: 'length', finish_raw: 'model_length' })
    expect(await finish('sensitive')).toMatchObject({ finish: 'content_filter' })
    expect(await finish('eos')).toMatchObject({ finish: 'stop', finish_raw: 'eos' })
    expect(await finish('insufficient_system_resource')).toMatchObject({ finish: 'error' })
    expect(await finish('novelty')).toMatchObject({ finish: 'error', finish_raw: 'novelty' })
  })

  test('a stream without a finish reason is cut', async () => {
    expect((await dialect.stream([chunk({ content: 'Half' })])).complete).toBe(false)
  })

  test('a provider names its price as a number, in an object or in ticks; with own keys both bills count', async () => {
    const cost = async (usage: object) => {
      const counts = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      return (await dialect.reply({ choices: [], usage: { ...counts, ...usage } })).reply.usage.reported_cost
    }
    expect(await cost({ cost: 0.5 })).toBe(0.5)
    expect(await cost({ cost: 0 })).toBe(0)
    expect(await cost({ cost: { total_cost: 0.25 } })).toBe(0.25)
    expect(await cost({ cost_in_usd_ticks: 5_000_000_000 })).toBe(0.5)
    expect(await cost({ cost_in_usd_ticks: 0 })).toBeUndefined()
    expect(await cost({ cost: 0.5, is_byok: true, cost_details: { upstream_inference_cost: 2 } })).toBe(2.5)
    expect(await cost({})).toBeUndefined()
  })
})

describe('a request', () => {
  test('begins with one message of all leading instructions', async () => {
    const system = ['Be brief.', 'Be kind.'].map((text) => ({ type: 'text' as const, text }))
    expect((await sent({ system, messages: [user('Hi')] })).messages).toEqual([
      { role: 'system', content: 'Be brief.\n\nBe kind.' },
      { role: 'user', content: 'Hi' },
    ])
  })

  test('uses the family’s names of instructions and the length limit', async () => {
    const requested = {
      system: [{ type: 'text' as const, text: 'Be brief.' }],
      messages: [user('Hi')],
      max_output_tokens: 9,
    }
    expect(await sent(requested)).toMatchObject({ messages: [{ role: 'system' }, {}], max_tokens: 9 })
    const { max_tokens, ...body } = await sent(requested, traitsOf('openai', 'o3'))
    expect(body).toMatchObject({ messages: [{ role: 'developer' }, {}], max_completion_tokens: 9 })
    expect(max_tokens).toBeUndefined()
  })

  test('keeps instructions in the middle at their position', async () => {
    const messages: Message[] = [
      user('Hi'),
      { role: 'system', parts: [{ type: 'text', text: 'Now in French.' }] },
      user('Go on'),
    ]
    expect((await sent({ messages })).messages[1]).toEqual({ role: 'system', content: 'Now in French.' })
  })

  test('shows images, audio, files and video as content parts', async () => {
    const parts: Part[] = [
      { type: 'text', text: 'Look:' },
      { type: 'image', url: 'https://example.com/a.png', detail: 'low' },
      { type: 'image', data: 'aGk=', media_type: 'image/png' },
      { type: 'audio', data: 'aGk=', media_type: 'audio/mpeg' },
      { type: 'audio', data: 'aGk=', media_type: 'audio/x-wav' },
      { type: 'file', data: 'aGk=', media_type: 'application/pdf', filename: 'a.pdf' },
      { type: 'file', file_id: 'file-1' },
      { type: 'video', url: 'https://example.com/a.mp4' },
    ]
    const content = [
      { type: 'text', text: 'Look:' },
      { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
      { type: 'input_audio', input_audio: { data: 'aGk=', format: 'mp3' } },
      { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' } },
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } },
    ]
    expect((await sent({ messages: [{ role: 'user', parts }] }, { video: true })).messages[0].content).toEqual(content)
    expect((await sent({ messages: [{ role: 'user', parts }] })).messages[0].content).toEqual(content.slice(0, -1))
    const alone = {
      messages: [{ role: 'user' as const, parts: [{ type: 'image' as const, url: 'https://example.com/a.png' }] }],
    }
    expect((await sent(alone)).messages[0].content).toHaveLength(1)
  })

  test('puts each result directly after its call, and media of results into a user message', async () => {
    const image: Part = { type: 'image', data: 'aGk=', media_type: 'image/png' }
    const { messages } = await sent({
      messages: [
        user('Go'),
        { role: 'assistant', parts: [call('a'), call('b', ''), call('c')] },
        { role: 'user', parts: [{ type: 'text', text: 'And?' }, result('c'), result('a', image), result('b')] },
      ],
    })
    expect(messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
          { id: 'b', type: 'function', function: { name: 'f', arguments: '{}' } },
          { id: 'c', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'The result follows in the next message.' },
      { role: 'tool', tool_call_id: 'b', content: 'result of b' },
      { role: 'tool', tool_call_id: 'c', content: 'result of c' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Returned by the tool call a:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
        ],
      },
      { role: 'user', content: 'And?' },
    ])
  })

  test('writes failed tools, refusals and audio replies as text', async () => {
    const failed: Part = {
      type: 'tool_result',
      id: 'a',
      is_error: true,
      parts: [{ type: 'text', text: 'no such city' }],
    }
    const parts: Part[] = [
      { type: 'audio', id: 'audio_1', transcript: 'Yes.' },
      { type: 'refusal', text: ' No.' },
    ]
    const requested: Message[] = [
      user('Hi'),
      { role: 'assistant', parts },
      user('Go'),
      { role: 'assistant', parts: [call('a')] },
    ]
    const history = { messages: [...requested, { role: 'user' as const, parts: [failed] }] }
    const { messages } = await sent(history)
    expect(messages[1]).toEqual({ role: 'assistant', content: 'Yes. No.' })
    expect(messages[4]).toEqual({ role: 'tool', tool_call_id: 'a', content: 'Error: no such city' })
    const speaking = await sent({ ...history, modalities: ['text', 'audio'] })
    expect(speaking.messages[1]).toEqual({ role: 'assistant', content: ' No.', audio: { id: 'audio_1' } })
  })

  test('returns reasoning only where the family accepts it, and signatures only to their provider', async () => {
    const parts: Part[] = [
      { type: 'reasoning', text: 'Hm.', signature: 's', by: 'maker' },
      { type: 'reasoning', encrypted: 'openai-responses-v1:x==', id: 'rs_1', by: 'maker' },
      { type: 'reasoning', summary: 'Thought.', by: 'another', encrypted: 'y' },
      { type: 'text', text: 'Yes.' },
      { ...call('a'), signature: 'mine', by: 'maker' },
      { ...call('b'), signature: 'foreign', by: 'another' },
    ]
    const sentMessages = async (traits: object) =>
      (await sent({ messages: [user('Hi'), { role: 'assistant', parts }] }, traits)).messages[1]
    const plain = await sentMessages({})
    expect(plain).toMatchObject({ role: 'assistant', content: 'Yes.' })
    expect(Object.keys(plain)).toEqual(['role', 'content', 'tool_calls'])
    expect(plain.tool_calls[0].extra_content).toEqual({ google: { thought_signature: 'mine' } })
    expect(plain.tool_calls[1].extra_content).toBeUndefined()
    expect(await sentMessages({ reasoning_replay: 'reasoning_content' })).toMatchObject({
      reasoning_content: 'Hm.\nThought.',
    })
    expect(await sentMessages({ reasoning_replay: 'reasoning' })).toMatchObject({ reasoning: 'Hm.\nThought.' })
    expect((await sentMessages({ reasoning_replay: 'reasoning_details' })).reasoning_details).toEqual([
      { type: 'reasoning.text', text: 'Hm.', signature: 's', format: 'anthropic-claude-v1' },
      { type: 'reasoning.encrypted', id: 'rs_1', data: 'x==', format: 'openai-responses-v1' },
    ])
  })

  test('offers functions and custom tools, and names the one that must be called', async () => {
    const tools: NeutralRequest['tools'] = [
      { kind: 'function', name: 'f', description: 'F', parameters: { type: 'object' }, strict: true },
      { kind: 'custom', name: 'sql', format: { type: 'text' } },
    ]
    expect(await sent({ tools, tool_choice: { name: 'sql' }, parallel_tool_calls: false })).toMatchObject({
      tools: [
        { type: 'function', function: { name: 'f', description: 'F', parameters: { type: 'object' }, strict: true } },
        { type: 'custom', custom: { name: 'sql', format: { type: 'text' } } },
      ],
      tool_choice: { type: 'custom', custom: { name: 'sql' } },
      parallel_tool_calls: false,
    })
    expect(await sent({ tools, tool_choice: 'required' })).toMatchObject({ tool_choice: 'required' })
    expect(await sent({ parallel_tool_calls: true })).not.toHaveProperty('parallel_tool_calls')
  })

  test('narrows to some tools, by name or by leaving the others out', async () => {
    const tools: NeutralRequest['tools'] = ['f', 'g', 'h'].map((name) => ({ kind: 'function', name }))
    const requested = { tools, tool_choice: { allowed: ['g'], mode: 'required' as const } }
    const narrowed = await sent(requested)
    expect(narrowed).toMatchObject({ tools: [{ function: { name: 'g' } }], tool_choice: 'required' })
    expect(narrowed.tools).toHaveLength(1)
    expect(await sent(requested, traitsOf('openai', 'gpt-5'))).toMatchObject({
      tools: [{}, {}, {}],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'g' } }] },
      },
    })
  })

  test('requests reasoning by effort; a budget becomes the closest effort, or stays a number where numbers are supported', async () => {
    expect(await sent({ reasoning: { effort: 'xhigh' } })).toMatchObject({ reasoning_effort: 'xhigh' })
    const words = await Promise.all([0, 1024, 8000, 50_000].map((budget) => sent({ reasoning: { budget } })))
    expect(words.map(({ reasoning_effort }) => reasoning_effort)).toEqual(['none', 'low', 'medium', 'high'])
    const object = { reasoning_form: 'object' }
    expect((await sent({ reasoning: { effort: 'low', summary: 'auto' } }, object)).reasoning).toEqual({
      effort: 'low',
      summary: 'auto',
    })
    expect((await sent({ reasoning: { budget: 2000 } }, object)).reasoning).toEqual({ max_tokens: 2000 })
    expect(await sent({}, object)).not.toHaveProperty('reasoning')
  })

  test('writes cache hints in the form of the family', async () => {
    const hinted: Part = { type: 'text', text: 'Long.', cache: { ttl: '1h' } }
    const requested = { system: [hinted], messages: [{ role: 'user' as const, parts: [{ ...hinted, cache: {} }] }] }
    expect((await sent(requested)).messages).toEqual([
      { role: 'system', content: 'Long.' },
      { role: 'user', content: 'Long.' },
    ])
    expect((await sent(requested, { cache_marks: 'cache_control' })).messages).toEqual([
      { role: 'system', content: [{ type: 'text', text: 'Long.', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
      { role: 'user', content: [{ type: 'text', text: 'Long.', cache_control: { type: 'ephemeral' } }] },
    ])
    expect((await sent(requested, { cache_marks: 'breakpoint' })).messages[1].content).toEqual([
      { type: 'text', text: 'Long.', prompt_cache_breakpoint: { mode: 'explicit' } },
    ])
  })

  test('keeps all other fields', async () => {
    const plain = {
      temperature: 0,
      top_p: 0.5,
      top_k: 4,
      seed: 0,
      stop: ['END'],
      frequency_penalty: 0.1,
      presence_penalty: 0.2,
      logit_bias: { 5: -100 },
      n: 2,
      modalities: ['text', 'audio'],
      audio: { voice: 'alloy', format: 'wav' },
      prediction: { type: 'content', content: 'x' },
      service_tier: 'flex',
      verbosity: 'low',
      user: 'u',
      safety_identifier: 's',
      metadata: { a: 'b' },
      store: false,
      moderation: { model: 'm' },
    }
    const cache = { key: 'k', retention: '24h', options: { mode: 'explicit' } }
    const place = { city: 'Berlin', country: 'DE' }
    const body = await sent({
      ...plain,
      cache,
      logprobs: { top: 3 },
      web_search: { context_size: 'low', user_location: place },
    })
    expect(body).toMatchObject({
      ...plain,
      logprobs: true,
      top_logprobs: 3,
      prompt_cache_key: 'k',
      prompt_cache_retention: '24h',
      prompt_cache_options: { mode: 'explicit' },
      web_search_options: {
        search_context_size: 'low',
        user_location: { type: 'approximate', approximate: place },
      },
    })
  })

  test('counts its stream', async () => {
    expect(await sent({ stream: true })).toMatchObject({ stream: true, stream_options: { include_usage: true } })
    expect(await sent({ stream: false })).not.toHaveProperty('stream_options')
  })

  test('requests text, JSON, or JSON of a schema', async () => {
    const format = async (response_format: NeutralRequest['response_format']) =>
      (await sent(response_format ? { response_format } : {})).response_format
    expect(await format({ type: 'text' })).toEqual({ type: 'text' })
    expect(await format({ type: 'json' })).toEqual({ type: 'json_object' })
    expect(await format({ type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true })).toEqual({
      type: 'json_schema',
      json_schema: { name: 'n', schema: { type: 'object' }, strict: true },
    })
    expect(await format(undefined)).toBeUndefined()
  })

  test('has a place for every neutral field', () => {
    expect(unsupportedByMapping(dialect.chat.request.support)).toEqual(['parts.search', 'parts.opaque'])
  })

  test('refers to uploaded documents by id, and has no such place for other media', async () => {
    const parts: Part[] = ['image', 'audio', 'file'].map((type) => ({ type: type as 'image', file_id: `${type}-1` }))
    const { body, dropped } = await written({ messages: [{ role: 'user', parts }] })
    expect(body.messages[0].content).toEqual([{ type: 'file', file: { file_id: 'file-1' } }])
    expect(dropped).toEqual(['parts.image.file_id', 'parts.audio.file_id'])
  })

  test('offers tools of the same client API as they came, and no others', async () => {
    const definition = { type: 'code_runner', code_runner: { image: 'python' } }
    const mine = { kind: 'code_runner', by: 'chat', definition } as const
    const other = { kind: 'mcp', by: 'responses', definition: { type: 'mcp', server_label: 's' } } as const
    const f = { kind: 'function', name: 'f' } as const
    const offered = { type: 'function', function: { name: 'f' } }
    expect(await written({ tools: [mine, f], tool_choice: mine })).toMatchObject({
      body: { tools: [definition, offered], tool_choice: definition },
      dropped: [],
    })
    const { body, dropped } = await written({ tools: [f, other], tool_choice: other })
    expect([body.tools, body.tool_choice, dropped]).toEqual([[offered], undefined, ['tools.mcp', 'tool_choice']])
  })
})

describe('a request loses', () => {
  const assistant = (...parts: Part[]): Partial<NeutralRequest> => ({
    messages: [user('Hi'), { role: 'assistant', parts }, user('On')],
  })
  const cached: Partial<NeutralRequest> = {
    system: [{ type: 'text', text: 'Long.', cache: {} }],
    tools: [{ kind: 'function', name: 'f', cache: {} }],
  }
  const lost = async (requested: Partial<NeutralRequest>, traits = {}) => (await written(requested, traits)).dropped

  test('marks for the cache, where the family knows none or not in this place', async () => {
    expect(await lost(cached)).toEqual(['parts.cache', 'tools.cache'])
    expect(await lost(cached, { cache_marks: 'breakpoint' })).toEqual(['tools.cache'])
    expect(await lost(cached, { cache_marks: 'cache_control' })).toEqual([])
    const hintedReply = assistant({ type: 'text', text: 'Yes.', cache: {} })
    expect(await lost(hintedReply, { cache_marks: 'cache_control' })).toEqual(['parts.cache'])
  })

  test('options of another kind of cache', async () => {
    expect(await lost({ cache: { key: 'k', options: { type: 'ephemeral' } } })).toEqual(['cache.options'])
    expect(await lost({ cache: { key: 'k', options: { mode: 'explicit' } } })).toEqual([])
  })

  test('reasoning that is not returned: all of it, signatures of others, or parts without text', async () => {
    const signed = assistant({ type: 'reasoning', encrypted: 'x', by: 'another' }, { type: 'text', text: 'Yes.' })
    const plainReasoning = assistant({ type: 'reasoning', text: 'Hm.', by: 'maker' })
    expect(await lost(plainReasoning)).toEqual(['parts.reasoning'])
    for (const reasoning_replay of ['reasoning_content', 'reasoning', 'reasoning_details']) {
      expect(await lost(signed, { reasoning_replay }), reasoning_replay).toEqual(['parts.reasoning'])
      expect(await lost(plainReasoning, { reasoning_replay }), reasoning_replay).toEqual([])
    }
  })

  test('audio without a transcript or without an id', async () => {
    const audioById = assistant({ type: 'audio', id: 'audio_1' }, { type: 'text', text: 'Yes.' })
    const audioWithData = assistant({ type: 'audio', data: 'AA==', transcript: 'Yes.' })
    expect([await lost(audioById), await lost(audioWithData)]).toEqual([['parts.audio'], []])
    const modalities = ['text', 'audio']
    expect([await lost({ ...audioById, modalities }), await lost({ ...audioWithData, modalities })]).toEqual([
      [],
      ['parts.audio'],
    ])
  })

  test('the effort or the budget, where both are requested and one is supported', async () => {
    const reasoning = { effort: 'high', budget: 1000 } as const
    expect(await lost({ reasoning })).toEqual(['reasoning.budget'])
    expect(await lost({ reasoning }, { reasoning_form: 'object' })).toEqual(['reasoning.effort'])
    expect(await lost({ reasoning: { effort: 'low', summary: 'auto' } })).toEqual(['reasoning.summary'])
  })

  test('unknown fields, and details of a search', async () => {
    expect(
      await lost({
        extensions: { top_a: 1 },
        web_search: { max_uses: 1, context_size: 'low', blocked_domains: ['a'] },
      }),
    ).toEqual(['web_search.max_uses', 'web_search.blocked_domains', 'extensions.top_a'])
  })
})

test('counts mean the same whole and streamed, beside the tier that the first chunk reports', async () => {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 50,
    total_tokens: 150,
    prompt_tokens_details: { cached_tokens: 10, cache_write_tokens: 5, audio_tokens: 7 },
    completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 3, image_tokens: 2 },
  }
  const facts = { id: 'c', model: 'gpt-4o-search-preview', service_tier: 'flex' }
  const whole = { ...facts, usage, choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] }
  const pieces = [
    { ...facts, choices: [{ index: 0, delta: { role: 'assistant' } }] },
    { ...facts, choices: [{ index: 0, delta: { content: 'Hi' } }] },
    { ...facts, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { ...facts, choices: [], usage },
  ]
  const streamed = (await dialect.stream(pieces.map((data) => ({ data })))).reply
  const read = (await dialect.reply(whole)).reply
  expect(read.usage).toEqual({
    ...{ input: 78, cache_read: 10, cache_write_5m: 5, input_audio: 7, output: 25, reasoning: 20 },
    ...{ output_audio: 3, output_image: 2, searches: 1, modes: ['flex'] },
  })
  expect(streamed.usage).toEqual(read.usage)
  const { usage: _counts, ...uncounted } = whole
  expect((await dialect.reply(uncounted)).reply.usage).toEqual({ modes: ['flex'] })
  expect((await dialect.stream([{ data: pieces[0] as JsonObject }])).reply.usage).toEqual({ modes: ['flex'] })
})

/** Normalizes what the neutral form writes differently from the recorded client. */
const respelled: { [field: string]: (value: Body) => unknown } = {
  stop: (stop) => [stop].flat(),
  max_tokens: () => undefined,
  functions: () => undefined,
  function_call: () => undefined,
}

describe.skipIf(recordingsMissing)('a recorded request survives being rebuilt', () => {
  const requests = recordings('openai-chat').filter(({ request }) => request?.body && !request.body.functions)
  test.each(requests)('$case', async ({ request }) => {
    const { body } = request as { body: Body }
    const { body: rebuilt, dropped } = await dialect.written(readRequest(body), {
      traits: traitsOf('openai', body.model),
    })
    const { stream_options, ...original } = body
    for (const name of dropped.flatMap((field) => wireNames(field))) delete original[name]
    for (const [field, spell] of Object.entries(respelled))
      if (field in original) original[field] = spell(original[field])
    if (body.max_tokens) original.max_completion_tokens ??= body.max_tokens
    original.messages = original.messages.map((message: Body) => respell(message, traitsOf('openai', body.model)))
    expect(dropped.filter((field) => field !== 'logprobs')).toEqual([])
    expect(rebuilt).toMatchObject(JSON.parse(JSON.stringify(original)))
    expect(rebuilt.stream_options).toEqual(body.stream ? { include_usage: true } : undefined)
  })
})

/** One text as a list of one is the text; instructions have the role of the family; a result needs no name beside its id. */
function respell({ role, content, name, ...others }: Body, { system_role = 'system' }: Body): Body {
  const single =
    Array.isArray(content) && content.length === 1 && content[0].type === 'text' ? content[0].text : content
  const calls = others.tool_calls && !single ? null : single
  const speaker = role === 'system' || role === 'developer' ? system_role : role
  return { ...others, ...(name && role !== 'tool' && { name }), role: speaker, content: calls }
}

// ---------------------------------------------------------------------------------------------------------------------
// Requests

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of their sender.
type Body = any

function user(text: string): Message {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

function call(id: string, args = '{"x":1}'): ToolCallPart {
  return { type: 'tool_call', id, name: 'f', arguments: args }
}

function result(id: string, ...parts: Part[]): Part {
  return { type: 'tool_result', id, parts: parts.length > 0 ? parts : [{ type: 'text', text: `result of ${id}` }] }
}

async function written(
  requested: Partial<NeutralRequest>,
  traits: object = {},
): Promise<{ body: Body; dropped: string[] }> {
  const request = { model: 'm', messages: [user('Hi')], origin: { api: 'messages' as const, body: {} }, ...requested }
  return await dialect.written(request, { traits: traits as { [name: string]: string } })
}

async function sent(requested: Partial<NeutralRequest>, traits: object = {}): Promise<Body> {
  return (await written(requested, traits)).body
}

/** The same facts out of a folded reply. */
function factsOf({ id, model, parts, finish, finish_raw = '', usage, logprobs }: Reply): Facts {
  const of = <T extends Part['type']>(type: T) =>
    parts.filter((part): part is Extract<Part, { type: T }> => part.type === type)
  const content = (logprobs as { content?: unknown[] } | undefined)?.content ?? []
  return {
    id,
    model,
    text: of('text')
      .map(({ text }) => text)
      .join(''),
    reasoning: of('reasoning')
      .map(({ text, summary }) => text ?? summary ?? '')
      .join(''),
    refusal: of('refusal')
      .map(({ text }) => text)
      .join(''),
    calls: of('tool_call').map(({ id, name, arguments: args }) => ({
      id: /^call_madeup/.test(id) ? 'made up' : id,
      name,
      arguments: args,
    })),
    signatures: of('reasoning').flatMap(
      ({ signature, encrypted }) => signature ?? encrypted?.replace(/^[a-z0-9-]+:/, '') ?? [],
    ),
    citations: of('text').flatMap(({ citations = [] }) =>
      citations.map(({ url = '', title = '', start = 0, end = 0 }) => ({ url, title, start, end })),
    ),
    audio: of('audio').flatMap(({ data }) => data ?? []),
    logprobs: content.length,
    finish,
    raw: finish_raw,
    usage: nonZero(usage),
  }
}
