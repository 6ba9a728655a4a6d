import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { errorFor, reportedFailure } from '../../src/upstream/provider-error.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { type Facts, framesFrom, framesOf, joined, nonZero, readIndependently } from './bedrock-converse-reader.ts'
import { violations } from './converse-model.ts'
import { benchDialect, type Replayed } from './replay.ts'

const converse = benchDialect('bedrock-converse')
const recorded = recordings('bedrock-converse')
const answered = recorded.filter(({ response }) => response.status === 200)
const refused = recorded.filter(({ response }) => response.status !== 200)

describe.skipIf(recordingsMissing)('every recorded answer', () => {
  for (const recording of answered) {
    const frames = framesOf(recording)
    test(`${recording.case} is read correctly`, async () => {
      const expectedReply = readIndependently(frames ? joined(frames) : recording.response.body)
      const { reply, complete, error } = frames
        ? await converse.stream(frames)
        : await converse.reply(recording.response.body)
      expect(complete).toBe(true)
      expect(error).toBeUndefined()
      expect(factsOf(reply)).toEqual(expectedReply)
    })

    test(`${recording.case} means the same whole and streamed`, async () => {
      const answer = frames ? joined(frames) : recording.response.body
      const whole = await converse.reply(answer)
      const streamed = await converse.stream(frames ?? framesFrom(answer))
      expect(factsOf(streamed.reply)).toEqual(factsOf(whole.reply))
      expect(streamed.reply.extensions).toEqual(whole.reply.extensions)
    })
  }

  test('none is left out', () => {
    expect(answered.length + refused.length).toBe(recorded.length)
    expect(recorded.length).toBeGreaterThanOrEqual(35)
  })
})

describe.skipIf(recordingsMissing)('every recorded refusal has its error', () => {
  const codes: { [name: string]: string } = {
    'error-400__bedrock.us.amazon': 'context_length',
    'error-400__bedrock.us.anthropic': 'invalid_request',
    'error-403__bedrock': 'provider_refused',
    'error-404__bedrock': 'model_not_found',
  }
  for (const recording of refused) {
    test(recording.case, () => {
      const { status, headers, body } = recording.response
      const error = errorFor(provider, { status, headers, text: JSON.stringify(body) })
      const name = Object.keys(codes).find((start) => recording.case.startsWith(`bedrock-converse/${start}`))
      expect(error.code).toBe(codes[name ?? ''])
      // What a provider says about the router's own credential is for the operator.
      const isOwn = error.code === 'provider_refused'
      expect(isOwn ? error.forLog : error.message).toContain(body.message)
    })
  }
})

const provider = { slug: 'x', auth: { scheme: 'none' }, headers: {}, errors: converse.errors } as unknown as Provider

describe('an answer', () => {
  test('with a call without arguments has an empty object', async () => {
    const content = [{ toolUse: { toolUseId: 'a', name: 'roll', input: {} } }]
    for (const { reply } of await bothWays(answer(content, 'tool_use'))) {
      expect(reply.parts).toEqual([{ type: 'tool_call', id: 'a', name: 'roll', arguments: '{}' }])
      expect(reply.finish).toBe('tool_calls')
    }
  })

  test('keeps a signature and redacted reasoning byte for byte', async () => {
    const content = [
      { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2VhbA==' } } },
      { reasoningContent: { redactedContent: 'cmVkYWN0ZWQ=' } },
      { text: 'Yes.' },
    ]
    for (const { reply } of await bothWays(answer(content))) {
      expect(reply.parts).toEqual([
        { type: 'reasoning', by: 'maker', text: 'Hm.', signature: 'c2VhbA==' },
        { type: 'reasoning', by: 'maker', encrypted: 'cmVkYWN0ZWQ=' },
        { type: 'text', text: 'Yes.' },
      ])
    }
  })

  test('counts cache writes by lifetime', async () => {
    const usage = {
      inputTokens: 10,
      outputTokens: 5,
      totalTokens: 78,
      cacheReadInputTokens: 3,
      cacheWriteInputTokens: 60,
      cacheDetails: [
        { ttl: '1h', inputTokens: 40 },
        { ttl: '5m', inputTokens: 20 },
      ],
    }
    for (const { reply } of await bothWays({ ...answer([{ text: 'Hi' }]), usage })) {
      expect(reply.usage).toEqual({ input: 10, output: 5, cache_read: 3, cache_write_5m: 20, cache_write_1h: 40 })
    }
    const oneHour = { ...usage, cacheDetails: [{ ttl: '1h', inputTokens: 60 }] }
    for (const { reply } of await bothWays({ ...answer([{ text: 'Hi' }]), usage: oneHour })) {
      expect(nonZero(reply.usage)).toEqual({ input: 10, output: 5, cache_read: 3, cache_write_1h: 60 })
    }
  })

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['guardrail_intervened', 'content_filter'],
    ['content_filtered', 'content_filter'],
    ['brand_new', 'stop'],
  ])('that ends by %s has the finish %s', async (reason, finish) => {
    for (const { reply, complete, error } of await bothWays(answer([{ text: 'Hm' }], reason))) {
      expect(reply).toMatchObject({ finish, finish_raw: reason })
      expect(complete).toBe(true)
      expect(error).toBeUndefined()
    }
  })

  test.each(['malformed_model_output', 'malformed_tool_use'])('%s is a failure worth another try', async (reason) => {
    for (const { error } of await bothWays(answer([], reason))) {
      expect(error).toMatchObject({ code: reason, retryable: true })
      expect(reportedFailure(provider, error ?? { message: '' }).code).toBe('provider_failed')
    }
  })

  test('reports the stop sequence, the tier and the guardrail’s findings', async () => {
    const whole = {
      ...answer([{ text: 'Hm' }], 'stop_sequence'),
      additionalModelResponseFields: { delta: { stop_sequence: 'END' } },
      serviceTier: { type: 'flex' },
      trace: { guardrail: { actionReason: 'none' } },
    }
    for (const { reply } of await bothWays(whole)) {
      expect(reply.stop_sequence).toBe('END')
      expect(reply.extensions).toMatchObject({ service_tier: 'flex', trace: whole.trace })
    }
  })

  test('without a reason is cut, whatever its content', async () => {
    const { complete } = await converse.stream([
      { event: 'messageStart', data: { role: 'assistant' } },
      { event: 'contentBlockDelta', data: { contentBlockIndex: 0, delta: { text: 'Once' } } },
    ])
    expect(complete).toBe(false)
  })

  test('may report its usage before its end', async () => {
    const frames = framesFrom(answer([{ text: 'Hi' }]))
    const { reply, complete } = await converse.stream([...frames.slice(0, -2), ...frames.slice(-2).reverse()])
    expect(complete).toBe(true)
    expect(reply).toMatchObject({ finish: 'stop', usage: { input: 1, output: 2 } })
  })

  test('draws pictures, whole and streamed', async () => {
    const image = { format: 'jpeg', source: { bytes: '/9j/4AAQ' } }
    const drawn = { type: 'image', data: '/9j/4AAQ', media_type: 'image/jpeg' }
    const whole = await converse.reply(answer([{ image }]))
    expect(whole.reply.parts).toEqual([drawn])
    const { reply } = await converse.stream([
      { event: 'contentBlockStart', data: { contentBlockIndex: 0, start: { image: { format: 'jpeg' } } } },
      { event: 'contentBlockDelta', data: { contentBlockIndex: 0, delta: { image: { source: image.source } } } },
      ...framesFrom(answer([])),
    ])
    expect(reply.parts).toEqual([drawn])
  })

  test('keeps unknown blocks whole, to be sent back', async () => {
    const body = { guardContent: { text: { text: 'x' } } }
    const { reply } = await converse.reply(answer([body]))
    expect(reply.parts).toEqual([{ type: 'opaque', by: 'maker', body }])
  })

  test('of a failed search is marked as failed', async () => {
    const content = [
      { toolUse: { toolUseId: 's', name: 'nova_grounding', input: { query: 'ruby' }, type: 'server_tool_use' } },
      { toolResult: { toolUseId: 's', content: [], status: 'error', type: 'nova_grounding_result' } },
    ]
    for (const { reply } of await bothWays(answer(content))) {
      expect(reply.parts).toEqual([{ type: 'search', by: 'maker', id: 's', query: 'ruby', status: 'failed' }])
      expect(reply.usage.searches).toBe(1)
    }
  })
})

describe('a stream that fails', () => {
  test.each([
    ['throttlingException', {}, 429, 'rate_limited'],
    ['validationException', {}, 400, 'invalid_request'],
    ['internalServerException', {}, 500, 'provider_failed'],
    ['serviceUnavailableException', {}, 503, 'provider_overloaded'],
    ['modelStreamErrorException', { originalStatusCode: 529, originalMessage: 'busy' }, 529, 'provider_overloaded'],
    ['modelStreamErrorException', {}, 424, 'provider_failed'],
    ['someNewException', {}, 502, 'provider_failed'],
  ])('by %s %j says so', async (event, more, status, code) => {
    const begun = framesFrom(answer([{ text: 'Once' }])).slice(0, 2)
    const { error, complete } = await converse.stream([...begun, { event, data: { message: 'No.', ...more } }])
    expect(error).toMatchObject({ status, message: 'originalMessage' in more ? 'No.: busy' : 'No.' })
    expect(complete).toBe(false)
    expect(reportedFailure(provider, error ?? { message: '' }).code).toBe(code)
  })

  test('knows the exceptions of the published model', () => {
    expect(violations({ throttlingException: { message: 'x' } }, 'ConverseStreamOutput')).toEqual([])
  })
})

test.each([
  ['Input is too long for requested model.', 'context_length'],
  ['The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum', 'context_length'],
  ['Too many tokens per day, please wait before trying again.', 'quota_exhausted'],
])('%s is %s', (message, code) => {
  expect(errorFor(provider, { status: 400, headers: {}, text: JSON.stringify({ message }) }).code).toBe(code)
})

/** A whole answer with these blocks. */
function answer(content: object[], stopReason = 'end_turn'): JsonObject {
  const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 }
  return { output: { message: { role: 'assistant', content } }, stopReason, usage } as unknown as JsonObject
}

async function bothWays(whole: JsonObject): Promise<Replayed[]> {
  return [await converse.reply(whole), await converse.stream(framesFrom(whole))]
}

/** The same facts out of a folded reply. */
function factsOf({ parts, usage, finish, finish_raw }: Reply): Facts {
  const texts = parts.filter((part) => part.type === 'text')
  return {
    texts: texts.map(({ text }) => text),
    reasoning: parts.flatMap((part) =>
      part.type === 'reasoning' ? [{ text: part.text ?? '', seal: part.signature ?? part.encrypted }] : [],
    ),
    calls: parts.flatMap((part) =>
      part.type === 'tool_call' ? [{ name: part.name, arguments: JSON.parse(part.arguments), id: part.id }] : [],
    ),
    citations: texts.flatMap(({ text, citations = [] }) => citations.map((citation) => ({ text, citation }))),
    searches: parts.flatMap((part) => (part.type === 'search' ? [part.query ?? ''] : [])),
    finish,
    raw: finish_raw ?? '',
    usage: nonZero(usage),
  }
}
