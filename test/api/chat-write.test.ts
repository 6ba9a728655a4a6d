import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { StreamWriter } from '../../src/api/client-api.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { ProviderEvent } from '../../src/core/events.ts'
import { Fold, type FoldFacts, fold } from '../../src/core/fold.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Finish, Reply } from '../../src/core/reply.ts'
import { eventsOf } from '../../src/core/reply-events.ts'
import { testInRuns } from '../helpers/slow.ts'
import { schemaMissing, violations } from './chatSchema.ts'

const model = 'maker/model'
const question = { role: 'user', content: 'hello' }
const facts = { model, usage: { input: 10, output: 5 }, costUsd: 0.25 }
const foldFacts: FoldFacts = { signer: 'maker', newId: () => '0b1c', now: () => 1_700_000_000 }

function replyOf(parts: Part[], members: Partial<Reply> = {}): Reply {
  return { id: 'msg_1', created: 1_700_000_000, parts, finish: 'stop', usage: {}, ...members }
}

const completion = (reply: Reply, members: object = {}) => chat.writeReply(reply, { ...facts, ...members })
const choiceOf = (body: JsonObject) => (body.choices as JsonObject[])[0] as JsonObject
const messageOf = (reply: Reply, members: object = {}) => choiceOf(completion(reply, members)).message as JsonObject
const readBack = (message: JsonObject) => {
  return chat.read({ model, messages: [question, message] as Json[] }).messages[1]?.parts ?? []
}

describe('a reply written as a chat completion', () => {
  it('is complete', () => {
    const reply = replyOf(
      [
        { type: 'text', text: 'Hi ' },
        { type: 'text', text: 'there' },
      ],
      { finish_raw: 'end_turn' },
    )
    expect(completion(reply)).toEqual({
      id: 'msg_1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hi there', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
          native_finish_reason: 'end_turn',
        },
      ],
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 15,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
        cost: 0.25,
      },
    })
  })

  it.each([
    ['chatcmpl-9', 'chatcmpl-9'],
    ['gen-1762', 'gen-1762'],
    ['msg_01', 'msg_01'],
    ['028e638f-d1c1', 'chatcmpl-028e638f-d1c1'],
    ['0b1c', 'chatcmpl-0b1c'],
  ])('with the id %s is called %s', (id, written) => {
    expect(completion(replyOf([], { id })).id).toBe(written)
  })

  it.each<[Finish, string]>([
    ['stop', 'stop'],
    ['length', 'length'],
    ['tool_calls', 'tool_calls'],
    ['content_filter', 'content_filter'],
    ['refusal', 'content_filter'],
    ['pause', 'stop'],
  ])('that ended by %s says %s', (finish, reason) => {
    expect(choiceOf(completion(replyOf([], { finish }))).finish_reason).toBe(reason)
  })

  it('counts its totals from the disjoint classes', () => {
    const usage = {
      input: 1,
      cache_read: 20,
      cache_write_5m: 300,
      cache_write_1h: 4_000,
      input_audio: 50_000,
      input_image: 2,
      output: 5,
      reasoning: 60,
      output_audio: 700,
      searches: 3,
    }
    expect(chat.writeReply(replyOf([]), { model, usage }).usage).toEqual({
      prompt_tokens: 54_323,
      completion_tokens: 765,
      total_tokens: 55_088,
      prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 4_300, audio_tokens: 50_000, image_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 60, audio_tokens: 700 },
      server_tool_use_details: { web_search_requests: 3 },
    })
  })

  it('has null content when it only declines or only calls tools', () => {
    expect(messageOf(replyOf([{ type: 'refusal', text: 'No.' }]))).toEqual({
      role: 'assistant',
      content: null,
      refusal: 'No.',
    })
    const calls: Part[] = [
      { type: 'tool_call', id: '1', name: 'f', arguments: '{"a": 1}', signature: 'S', by: 'maker' },
      { type: 'tool_call', id: '2', name: 'shell', arguments: 'ls', kind: 'custom' },
      { type: 'tool_call', id: '3', name: 'g', arguments: '{}' },
    ]
    expect(messageOf(replyOf(calls, { finish: 'tool_calls' }))).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [
        {
          id: '1',
          type: 'function',
          function: { name: 'f', arguments: '{"a": 1}' },
          extra_content: { maker: { thought_signature: 'S' } },
        },
        { id: '2', type: 'custom', custom: { name: 'shell', input: 'ls' } },
        { id: '3', type: 'function', function: { name: 'g', arguments: '{}' } },
      ],
    })
  })

  it('answers the former kind of function request in the former way', () => {
    const request = chat.read({ model, messages: [question], functions: [{ name: 'f' }] })
    const reply = replyOf([{ type: 'tool_call', id: '1', name: 'f', arguments: '{}' }], { finish: 'tool_calls' })
    expect(choiceOf(completion(reply, { request }))).toMatchObject({
      message: { content: null, function_call: { name: 'f', arguments: '{}' } },
      finish_reason: 'function_call',
    })
    expect(streamed(reply, { functions: [{ name: 'f' }] })).toMatchObject({
      message: { content: null, function_call: { name: 'f', arguments: '{}' } },
      finish_reason: 'function_call',
    })
  })

  it('has one call in the former way, the first, whole or in pieces', () => {
    const functions = [{ name: 'f' }, { name: 'g' }]
    const request = chat.read({ model, messages: [question], functions })
    const reply = replyOf(
      [
        { type: 'tool_call', id: '1', name: 'f', arguments: '{"a":1}' },
        { type: 'tool_call', id: '2', name: 'g', arguments: '{"b":2}' },
      ],
      { finish: 'tool_calls' },
    )
    const function_call = { name: 'f', arguments: '{"a":1}' }
    expect(choiceOf(completion(reply, { request })).message).toMatchObject({ function_call })
    expect(streamed(reply, { functions })).toMatchObject({ message: { function_call } })
    const interleaved: ProviderEvent[] = [
      { at: 0, tool: { id: 'a', name: 'f' } },
      { at: 1, tool: { id: 'b', name: 'g' } },
      { at: 0, tool: { arguments: '{"a"' } },
      { at: 1, tool: { arguments: '{"b":2}' } },
      { at: 0, tool: { arguments: ':1}' } },
      { finish: 'tool_calls' },
    ]
    const { chunks } = dataOf(streamText(interleaved, writerFor({ functions })))
    expect(gathered(chunks)).toMatchObject({ message: { function_call } })
  })

  it('places citations in the joined content, in code points', () => {
    const parts: Part[] = [
      { type: 'text', text: '😀 ' },
      {
        type: 'text',
        text: 'Rome is old.',
        citations: [
          { url: 'https://a.example', title: 'A', cited_text: 'old', start: 0, end: 4 },
          { url: 'https://b.example' },
          { title: 'a document without an address' },
        ],
      },
    ]
    expect(messageOf(replyOf(parts)).annotations).toEqual([
      {
        type: 'url_citation',
        url_citation: { url: 'https://a.example', title: 'A', content: 'old', start_index: 2, end_index: 6 },
      },
      {
        type: 'url_citation',
        url_citation: { url: 'https://b.example', title: 'https://b.example', start_index: 2, end_index: 14 },
      },
    ])
  })

  it('carries audio, images, log probabilities and other members of the provider', () => {
    const reply = replyOf(
      [
        { type: 'audio', id: 'audio_1', data: 'AAAA', media_type: 'audio/wav', transcript: 'beep' },
        { type: 'image', data: 'BBBB', media_type: 'image/png' },
      ],
      {
        logprobs: { content: [{ token: 'a', logprob: -0.5, top_logprobs: [{ token: 'b', logprob: -1 }] }] },
        extensions: { service_tier: 'on_demand', system_fingerprint: 'fp_1' },
      },
    )
    expect(completion(reply)).toMatchObject({
      system_fingerprint: 'fp_1',
      choices: [
        {
          message: {
            content: null,
            audio: { id: 'audio_1', data: 'AAAA', transcript: 'beep', expires_at: 1_700_003_600 },
            images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,BBBB' } }],
          },
          logprobs: {
            content: [
              { token: 'a', logprob: -0.5, bytes: null, top_logprobs: [{ token: 'b', logprob: -1, bytes: null }] },
            ],
            refusal: null,
          },
        },
      ],
    })
    expect(completion(reply)).not.toHaveProperty('service_tier')
  })

  it('has reasoning as text, and its signatures in a form that clients send back', () => {
    const parts: Part[] = [
      { type: 'reasoning', text: 'First.', signature: 'S1', by: 'maker' },
      { type: 'text', text: 'Well, ' },
      { type: 'reasoning', summary: 'Second.', encrypted: 'E2', id: 'rs_2', by: 'maker' },
      { type: 'tool_call', id: '1', name: 'f', arguments: '{}' },
    ]
    const message = messageOf(replyOf(parts, { finish: 'tool_calls' }))
    expect(message.reasoning_content).toBe('First.\n\nSecond.')
    expect(message.reasoning_details).toEqual([
      {
        type: 'reasoning.text',
        text: 'First.',
        signature: 'S1',
        format: 'maker',
        index: 0,
        after: { content: 0, tool_calls: 0 },
      },
      {
        type: 'reasoning.summary',
        summary: 'Second.',
        id: 'rs_2',
        format: 'maker',
        index: 2,
        after: { content: 6, tool_calls: 0 },
      },
      {
        type: 'reasoning.encrypted',
        data: 'E2',
        id: 'rs_2',
        format: 'maker',
        index: 2,
        after: { content: 6, tool_calls: 0 },
      },
    ])
    expect(readBack(message)).toEqual(parts)
  })
})

const word = fc.constantFrom('', 'a', 'Rome ', '😀', 'naïve\n', '{"x":', '漢字')
const filledWord = word.filter((text) => text !== '')
const by = 'maker'
const signatureMembers = fc.constantFrom({}, { signature: 'sealed', by })
const arbitraryPart: fc.Arbitrary<Part> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('text' as const), text: filledWord }) },
  fc.record({
    type: fc.constant('text' as const),
    text: filledWord,
    signature: fc.constant('sealed'),
    by: fc.constant(by),
  }),
  fc
    .record({
      type: fc.constant('reasoning' as const),
      text: word,
      summary: word,
      signature: word,
      encrypted: word,
      id: fc.constantFrom('', 'rs_1'),
    })
    .filter(({ type, ...members }) => Object.values(members).some(Boolean))
    .map((part) => ({ ...Object.fromEntries(Object.entries(part).filter(([, value]) => value)), by }) as Part),
  fc
    .record({ id: fc.uuid(), name: fc.constantFrom('f', 'g'), arguments: fc.json(), signatureMembers })
    .map(({ signatureMembers, ...call }) => ({ type: 'tool_call' as const, ...call, ...signatureMembers })),
  fc
    .record({ id: fc.uuid(), query: word, results: fc.constantFrom<Json>([{ encrypted_content: 'E' }], []) })
    .map((search): Part => ({ type: 'search', status: 'completed', ...search, by })),
  fc.jsonValue().map((body): Part => ({ type: 'opaque', by, body: (body ?? 0) as Json })),
)
const arbitraryParts = fc.array(arbitraryPart, { maxLength: 9 })

/** Every part that is not plain text, with the amount of text and the number of calls before it. */
function landmarks(parts: readonly Part[]) {
  let content = 0
  let calls = 0
  const found: object[] = []
  for (const part of parts) {
    if (part.type !== 'tool_call' && !(part.type === 'text' && !part.signature)) found.push({ part, content, calls })
    if (part.type === 'tool_call') calls++
    if (part.type === 'text') content += [...part.text].length
  }
  const texts = parts.filter((part) => part.type === 'text').map(({ text }) => text)
  return { found, calls: parts.filter((part) => part.type === 'tool_call'), text: texts.join('') }
}

describe('a message that a client echoes', () => {
  testInRuns(
    'returns every part in order with its signature; only boundaries of plain texts are lost',
    { fast: 50, slow: 200 },
    (numRuns) => {
      fc.assert(
        fc.property(arbitraryParts, (parts) => {
          const message = JSON.parse(JSON.stringify(messageOf(replyOf(parts))))
          expect(landmarks(readBack(message))).toEqual(landmarks(JSON.parse(JSON.stringify(parts))))
        }),
        { numRuns, seed: 7 },
      )
    },
  )

  it('survives having been edited on the way: places beyond its end are its end', () => {
    const message = messageOf(
      replyOf([
        { type: 'text', text: 'a long answer' },
        { type: 'reasoning', text: 'then', by },
        { type: 'text', text: 'more', signature: 'S', by },
      ]),
    )
    expect(readBack({ ...message, content: 'short' })).toEqual([
      { type: 'text', text: 'short' },
      { type: 'reasoning', text: 'then', by },
      { type: 'text', text: '', signature: 'S', by },
    ])
    expect(
      readBack({ ...message, reasoning_details: [{ type: 'reasoning.text', text: 'x', index: -1, after: 'y' }] })[0],
    ).toEqual({ type: 'reasoning', text: 'x' })
  })
})

/** The JSON of all data lines, and the last line. */
function dataOf(text: string): { chunks: JsonObject[]; last: string } {
  const lines = text.split('\n\n').filter((line) => line !== '')
  expect(lines.every((line) => line.startsWith('data: '))).toBe(true)
  const payloads = lines.map((line) => line.slice('data: '.length))
  return {
    chunks: payloads.filter((line) => line !== '[DONE]').map((line) => JSON.parse(line)),
    last: payloads.at(-1) ?? '',
  }
}

/** The message that a client accumulates from the chunks of the first choice. */
function gathered(chunks: readonly JsonObject[]): JsonObject {
  const message: JsonObject = {}
  const calls: JsonObject[] = []
  let ending: JsonObject = {}
  for (const chunk of chunks) {
    const choice = (chunk.choices as JsonObject[])[0]
    if (!choice) continue
    const { delta, index, logprobs, ...rest } = choice
    if (rest.finish_reason) ending = rest
    const { tool_calls = [], ...members } = delta as JsonObject
    for (const { index, ...call } of tool_calls as JsonObject[]) {
      calls[Number(index)] = grown(calls[Number(index)] ?? {}, call)
    }
    Object.assign(message, grown(message, members))
  }
  return { message: { ...message, ...(calls.length > 0 && { tool_calls: calls }) }, ...ending }
}

/** Texts grow, objects grow by member, anything else is replaced. */
function grown(before: JsonObject, delta: JsonObject): JsonObject {
  const after = { ...before }
  for (const [name, value] of Object.entries(delta)) {
    const old = before[name]
    if (typeof old === 'string' && typeof value === 'string' && name !== 'role') after[name] = old + value
    else after[name] = isObject(old) && isObject(value) ? grown(old, value) : (value as Json)
  }
  return after
}

function writerFor(members: object = {}): StreamWriter {
  return chat.openStream(chat.read({ model, messages: [question], stream: true, ...members }), { model, id: 'call-1' })
}

function streamText(events: readonly ProviderEvent[], writer: StreamWriter): string {
  const folding = new Fold(foldFacts)
  const text = events.map((event) => writer.events(folding.take(event))).join('')
  return text + writer.events(folding.end()) + writer.end(facts)
}

function streamed(reply: Reply, members: object = {}): JsonObject {
  return gathered(dataOf(streamText(eventsOf(reply), writerFor(members))).chunks)
}

/** The same events with their texts in pieces, as providers send them. */
function inPieces(events: readonly ProviderEvent[]): ProviderEvent[] {
  return events.flatMap((event) => {
    const { text, reasoning, tool } = event
    if (text !== undefined) return [...text].map((piece) => ({ ...event, text: piece }))
    if (reasoning?.text) {
      const { text: thought, ...signatures } = reasoning
      const pieces = [...thought].map((piece) => ({ ...event, reasoning: { text: piece } }))
      return [...pieces, { ...event, reasoning: signatures }]
    }
    if (typeof tool?.arguments !== 'string') return [event]
    const pieces = [...tool.arguments].map((piece) => ({ ...event, tool: { arguments: piece } }))
    return [{ ...event, tool: { ...tool, arguments: '' } }, ...pieces]
  })
}

describe('a streamed reply', () => {
  it('begins with the role, ends with why and the terminator, and shows no usage unasked', () => {
    const events: ProviderEvent[] = [
      { id: 'msg_1', created: 5 },
      { text: 'Hi' },
      { text: ' there' },
      { finish: 'stop', raw: 'end_turn' },
    ]
    const { chunks, last } = dataOf(streamText(events, writerFor()))
    const shared = { id: 'msg_1', object: 'chat.completion.chunk', created: 5, model }
    const chunk = (delta: object, ending: object = { finish_reason: null }) => ({
      ...shared,
      choices: [{ index: 0, delta, logprobs: null, ...ending }],
    })
    expect(chunks).toEqual([
      chunk({ role: 'assistant', content: '', refusal: null }),
      chunk({ content: 'Hi' }),
      chunk({ content: ' there' }),
      chunk({}, { finish_reason: 'stop', native_finish_reason: 'end_turn' }),
    ])
    expect(last).toBe('[DONE]')
  })

  it('reports usage and cost last when the client requested them, and nothing of it before', () => {
    const writer = writerFor({ stream_options: { include_usage: true } })
    const { chunks } = dataOf(streamText([{ text: 'Hi' }, { finish: 'stop' }], writer))
    // There are clients for which a null is not a missing count.
    expect(chunks.slice(0, -1).some((chunk) => 'usage' in chunk)).toBe(false)
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      model,
      usage: { prompt_tokens: 10, total_tokens: 15, cost: 0.25 },
    })
    expect(chunks.at(-1)?.id).toBe(chunks[0]?.id)
  })

  it('numbers tool calls consecutively, with other parts between them', () => {
    const reply = replyOf([
      { type: 'reasoning', text: 'hm', by },
      { type: 'tool_call', id: 'a', name: 'f', arguments: '{"a":1}' },
      { type: 'text', text: 'and' },
      { type: 'tool_call', id: 'b', name: 'g', arguments: '', signature: 'S', by },
      { type: 'tool_call', id: 'c', name: 'shell', arguments: 'ls', kind: 'custom' },
    ])
    expect(streamed(reply)).toMatchObject({
      message: {
        content: 'and',
        reasoning_content: 'hm',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
          {
            id: 'b',
            type: 'function',
            function: { name: 'g', arguments: '{}' },
            extra_content: { maker: { thought_signature: 'S' } },
          },
          { id: 'c', type: 'custom', custom: { name: 'shell', input: 'ls' } },
        ],
      },
      finish_reason: 'tool_calls',
    })
  })

  const piecesOf = (events: readonly ProviderEvent[]) => {
    return dataOf(streamText(events, writerFor())).chunks.flatMap(({ choices }) => {
      const { delta } = (choices as JsonObject[])[0] as { delta: JsonObject }
      return (delta.tool_calls ?? []) as JsonObject[]
    })
  }

  it('has a text of arguments in every piece of a call, the one with a late signature included', () => {
    const pieces = piecesOf([
      { at: 0, tool: { id: 'a', name: 'f', arguments: '{"a":1}' } },
      { at: 0, tool: { signature: 'S' } },
      { at: 1, tool: { id: 'b', name: 'shell', arguments: 'ls', kind: 'custom' } },
      { at: 1, tool: { signature: 'T' } },
      { finish: 'tool_calls' },
    ])
    expect(pieces).toHaveLength(6)
    for (const piece of pieces) {
      expect(piece).toMatchObject(
        piece.index === 0 ? { function: { arguments: expect.any(String) } } : { custom: { input: expect.any(String) } },
      )
    }
    expect(pieces[2]).toEqual({
      index: 0,
      function: { arguments: '' },
      extra_content: { maker: { thought_signature: 'S' } },
    })
  })

  it('begins a call with its signature, and ends it with its arguments', () => {
    const pieces = piecesOf([{ tool: { id: 'a', name: 'f', arguments: { a: 1 }, signature: 'S' } }, { finish: 'stop' }])
    expect(pieces).toEqual([
      {
        index: 0,
        id: 'a',
        type: 'function',
        function: { name: 'f', arguments: '' },
        extra_content: { maker: { thought_signature: 'S' } },
      },
      { index: 0, function: { arguments: '{"a":1}' } },
    ])
  })

  it('writes interleaved, empty and cut off calls as the whole reply does', () => {
    const calls = (finish: 'tool_calls' | 'length'): ProviderEvent[] => [
      { at: 0, tool: { id: 'a', name: 'f' } },
      { at: 1, tool: { id: 'b', name: 'g' } },
      { at: 0, tool: { arguments: '{"a":1}' } },
      { finish },
    ]
    for (const finish of ['tool_calls', 'length'] as const) {
      const none = finish === 'length' ? '' : '{}'
      const choice = gathered(dataOf(streamText(calls(finish), writerFor())).chunks)
      expect(choice).toMatchObject({
        message: { tool_calls: [{ function: { arguments: '{"a":1}' } }, { function: { arguments: none } }] },
      })
      const whole = chat.writeReply(fold(calls(finish), foldFacts), facts)
      expect(choiceOf(whole)).toMatchObject({ message: { tool_calls: [{}, { function: { arguments: none } }] } })
    }
  })

  it('sends log probabilities with their text', () => {
    const logprobs = { content: [{ token: 'Hi', logprob: 0 }] }
    const { chunks } = dataOf(streamText([{ text: 'Hi', logprobs }, { finish: 'stop' }], writerFor()))
    expect(choiceOf(chunks[1] as JsonObject)).toMatchObject({ delta: { content: 'Hi' }, logprobs: { refusal: null } })
  })

  it('sends a late signature and a late citation before the finish reason', () => {
    const events: ProviderEvent[] = [
      { at: 'a', text: 'Rome' },
      { tool: { name: 'f', arguments: '{}' } },
      { at: 'a', citation: { url: 'https://a.example' } },
      { at: 'a', text: '', signature: 'S' },
      { finish: 'stop' },
    ]
    expect(streamed(fold(events, foldFacts))).toEqual(gathered(dataOf(streamText(events, writerFor())).chunks))
    expect(gathered(dataOf(streamText(events, writerFor())).chunks)).toMatchObject({
      message: {
        annotations: [{ url_citation: { start_index: 0, end_index: 4 } }],
        reasoning_details: [{ data: 'S', signed_length: 4 }],
      },
    })
  })

  testInRuns('adds up to the whole reply, however it is split into events', { fast: 50, slow: 200 }, (numRuns) => {
    fc.assert(
      fc.property(arbitraryParts, (parts) => {
        const events = eventsOf(replyOf(parts, { finish_raw: 'stop_sequence', stop_sequence: 'END' }))
        const whole = choiceOf(completion(fold(events, foldFacts)))
        const { index, logprobs, ...withoutLogprobs } = whole
        const expected = JSON.parse(JSON.stringify(withoutLogprobs))
        const message = { ...expected.message, content: expected.message.content || null }
        for (const variant of [events, inPieces(events)]) {
          const streamed = gathered(dataOf(streamText(variant, writerFor())).chunks) as { message: JsonObject }
          const content = streamed.message.content || null
          expect({ ...streamed, message: { ...streamed.message, content } }).toEqual({ ...expected, message })
        }
      }),
      { numRuns, seed: 7 },
    )
  })

  it('that breaks ends with an error and without the terminator', () => {
    const writer = writerFor()
    const folding = new Fold(foldFacts)
    const text =
      writer.events(folding.take({ text: 'Hi' })) +
      writer.fail(new RouterError('provider_cut', 'It broke off.', { provider: 'p' }))
    const { chunks, last } = dataOf(text)
    expect(last).not.toBe('[DONE]')
    expect(chunks.at(-1)).toEqual({
      error: {
        origin: 'provider',
        message: 'It broke off.',
        type: 'api_error',
        code: 'provider_cut',
        param: null,
        doc_url: '/docs/errors.html#provider_cut',
        provider: 'p',
      },
    })
  })
})

describe('reasoning for a client that uses the words of OpenRouter', () => {
  const reply = replyOf([
    { type: 'reasoning', text: 'First.', by },
    { type: 'reasoning', summary: 'Then.', by },
    { type: 'text', text: 'Yes' },
  ])
  const both = { reasoning_content: 'First.\n\nThen.', reasoning: 'First.\n\nThen.' }
  const request = (members: object) => chat.read({ model, messages: [question], ...members })

  it.each([{ reasoning: {} }, { reasoning: { effort: 'low' } }, { include_reasoning: true }])(
    'has both names after %j',
    (members) => {
      expect(messageOf(reply, { request: request(members) })).toMatchObject(both)
      expect(streamed(reply, members)).toMatchObject({ message: both })
    },
  )

  it.each([{}, { reasoning_effort: 'low' }, { reasoning: null }, { thinking: { type: 'enabled' } }])(
    'has one after %j',
    (members) => {
      expect(messageOf(reply, { request: request(members) })).not.toHaveProperty('reasoning')
      expect(streamed(reply, members).message).not.toHaveProperty('reasoning')
    },
  )
})

describe.skipIf(schemaMissing)('by the published schema', () => {
  // The schema of chunks knows only function calls; the same publisher's client library wants the type of custom ones.
  const known = (violation: string) =>
    /tool_calls\/\d+\/type must be equal to one of the allowed values/.test(violation)
  const arbitraryReply = fc.record({
    parts: fc.array(
      fc.oneof(
        { weight: 5, arbitrary: arbitraryPart },
        fc.constant<Part>({ type: 'refusal', text: 'No.' }),
        fc.constant<Part>({ type: 'audio', data: 'AAAA' }),
        fc.constant<Part>({ type: 'text', text: 'cited', citations: [{ url: 'https://a.example' }] }),
        fc.constant<Part>({ type: 'tool_call', id: '1', name: 'shell', arguments: 'ls', kind: 'custom' }),
      ),
      { maxLength: 6 },
    ),
    finish: fc.constantFrom<Finish>('stop', 'length', 'content_filter', 'refusal', 'pause'),
    extensions: fc.constantFrom<JsonObject>({}, { service_tier: 'flex' }, { service_tier: 'batch' }),
    logprobs: fc.constantFrom<Json>(null, { content: [{ token: 'a', logprob: -1 }] }),
  })

  it('written replies are chat completions', () => {
    fc.assert(
      fc.property(arbitraryReply, ({ parts, ...members }) => {
        const written = JSON.parse(JSON.stringify(completion(replyOf(parts, members))))
        expect(violations('CreateChatCompletionResponse', written)).toEqual([])
      }),
      { numRuns: 200, seed: 7 },
    )
  })

  it('written chunks are chat completion chunks', () => {
    fc.assert(
      fc.property(arbitraryReply, fc.boolean(), ({ parts, ...members }, include_usage) => {
        const events = inPieces(eventsOf(replyOf(parts, members)))
        const { chunks } = dataOf(streamText(events, writerFor({ stream_options: { include_usage } })))
        const wrong = chunks.flatMap((chunk) => violations('CreateChatCompletionStreamResponse', chunk))
        expect(wrong.filter((violation) => !known(violation))).toEqual([])
      }),
      { numRuns: 200, seed: 7 },
    )
  })
})
