import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import type { Citation, SearchPart } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { errorFor } from '../../src/upstream/provider-error.ts'
import { recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { chunksOf, type Facts, isStream, joined, nonZero, readIndependently } from './gemini-reader.ts'
import { benchDialect, type Frame, type Replayed } from './replay.ts'

const gemini = benchDialect('gemini')
const recorded = recordings('gemini')
const answered = recorded.filter(({ response }) => response.status === 200)
const refused = recorded.filter(({ response }) => response.status !== 200)

/** Recordings whose answer is a failure inside an HTTP success: they are tested separately, not skipped. */
const failing = new Set(['UNEXPECTED_TOOL_CALL'])

describe.skipIf(recordingsMissing)('every recorded answer', () => {
  for (const recording of answered) {
    test(`${recording.case} is read correctly`, async () => {
      const chunks = chunksOf(recording)
      const expectedReply = readIndependently(chunks)
      const streamed = isStream(recording)
      const { reply, complete, error } = streamed
        ? await gemini.stream(recordedEvents(recording))
        : await gemini.reply(chunks[0])
      expect(complete).toBe(true)
      expect(error?.code).toBe(failing.has(expectedReply.raw ?? '') ? expectedReply.raw : undefined)
      expect(factsOf(reply)).toEqual(expectedReply)
      for (const { text, citation } of citedTexts(reply)) {
        expect([...text].slice(citation.start, citation.end).join('')).toBe(citation.cited_text)
      }
    })

    test(`${recording.case} means the same whole and streamed`, async () => {
      const whole = await gemini.reply(joined(chunksOf(recording)))
      const streamed = await gemini.stream(chunksOf(recording).map((data) => ({ data: JSON.stringify(data) })))
      expect(factsOf(streamed.reply)).toEqual(factsOf(whole.reply))
      expect(streamed.error).toEqual(whole.error)
    })
  }

  test('none is left out', () => {
    expect(answered.length + refused.length).toBe(recorded.length)
    expect(recorded.length).toBeGreaterThanOrEqual(49)
  })
})

describe.skipIf(recordingsMissing)('every recorded refusal has its error', () => {
  const codes: { [name: string]: string } = {
    'error-400__google': 'provider_refused',
    'error-400__vertex': 'invalid_request',
    'error-403__google': 'provider_refused',
    'error-404__google': 'model_not_found',
    'error-429__google': 'rate_limited',
  }
  for (const recording of refused) {
    test(recording.case, () => {
      const { status, headers, body } = recording.response
      const error = errorFor(provider, { status, headers, text: JSON.stringify(body) })
      const name = Object.keys(codes).find((start) => recording.case.startsWith(`gemini/${start}`))
      expect(error.code).toBe(codes[name ?? ''])
      if (status === 429) expect(error.retryAfterMs).toBe(48_000)
    })
  }
})

const provider = { slug: 'x', auth: { scheme: 'none' }, headers: {}, errors: gemini.errors } as unknown as Provider

describe('an answer', () => {
  test('with two calls of one function and no ids is two calls, without arguments an empty object', async () => {
    const answer = replyBody([{ functionCall: { name: 'roll' } }, { functionCall: { name: 'roll', args: { n: 2 } } }])
    const called = [
      { name: 'roll', arguments: '{}' },
      { name: 'roll', arguments: '{"n":2}' },
    ]
    for (const { reply } of await bothWays(answer)) {
      expect(reply.parts).toMatchObject(called)
      expect(reply.finish).toBe('tool_calls')
    }
  })

  test('keeps a signature that comes after the text, or alone', async () => {
    const { reply } = await gemini.stream([
      { data: replyBody([{ text: 'Hi' }], {}) },
      { data: replyBody([{ thoughtSignature: 'late' }]) },
    ])
    expect(reply.parts).toEqual([{ type: 'text', text: 'Hi', signature: 'late', by: 'maker' }])
  })

  test('keeps blocks of its own tools, drafts and unknown blocks whole, to be sent back', async () => {
    const blocks = [
      { toolCall: { id: 'x', toolType: 'GOOGLE_SEARCH_WEB' }, thoughtSignature: 's' },
      { inlineData: { mimeType: 'image/png', data: 'aGk=' }, thought: true },
      { somethingNew: 1 },
    ]
    for (const { reply } of await bothWays(replyBody(blocks))) {
      expect(reply.parts).toEqual(blocks.map((body) => ({ type: 'opaque', by: 'maker', body })))
    }
  })

  test('of an unknown reason is a stop with the raw reason', async () => {
    for (const { reply, complete } of await bothWays(replyBody([{ text: 'Hm' }], { finishReason: 'BRAND_NEW' }))) {
      expect(reply).toMatchObject({ finish: 'stop', finish_raw: 'BRAND_NEW' })
      expect(complete).toBe(true)
    }
  })

  test('that could not be read as a call is a failure worth another try', async () => {
    const answer = replyBody([], {
      finishReason: 'MALFORMED_FUNCTION_CALL',
      finishMessage: 'Malformed function call: f(',
    })
    for (const { error } of await bothWays(answer)) {
      expect(error).toEqual({
        code: 'MALFORMED_FUNCTION_CALL',
        message: 'Malformed function call: f(',
        retryable: true,
      })
    }
  })

  test('without a reason is cut, whatever its content', async () => {
    const { complete } = await gemini.stream([{ data: replyBody([{ text: 'Once upon' }], {}) }])
    expect(complete).toBe(false)
  })

  test('that breaks in the middle of a stream reports the error', async () => {
    const failed = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }
    const { error, complete } = await gemini.stream([{ data: replyBody([{ text: 'Once' }], {}) }, { data: failed }])
    expect(error).toEqual({ status: 503, code: 'UNAVAILABLE', message: 'The model is overloaded.' })
    expect(complete).toBe(false)
  })

  test('counts cached audio once, and nothing before it was counted', async () => {
    const usageMetadata = {
      promptTokenCount: 100,
      cachedContentTokenCount: 60,
      promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 50 }],
      cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 20 }],
    }
    for (const { reply } of await bothWays({ ...replyBody([{ text: 'Hi' }]), usageMetadata })) {
      expect(reply.usage).toEqual({ input: 10, cache_read: 40, cache_read_audio: 20, input_audio: 30 })
    }
    const early = await gemini.stream([{ data: { usageMetadata: { trafficType: 'ON_DEMAND' } } }])
    expect(early.reply.usage).toEqual({})
  })

  test('counts searches by query, for the older families once', async () => {
    const groundingMetadata = { webSearchQueries: ['a', 'b'] }
    for (const [modelVersion, searches] of [['gemini-3.5-flash', 2] as const, ['gemini-2.5-flash', 1] as const]) {
      const answer = { ...replyBody([{ text: 'Hi' }], { finishReason: 'STOP', groundingMetadata }), modelVersion }
      for (const { reply } of await bothWays({ ...answer, usageMetadata: { promptTokenCount: 1 } })) {
        expect(reply.usage.searches).toBe(searches)
        const results = { type: 'search', query: 'a', queries: ['a', 'b'] }
        expect(reply.parts).toMatchObject([
          { type: 'search', query: 'a', status: 'completed', results },
          { type: 'text' },
        ])
      }
    }
  })

  test('cites the text that contains the quote, wherever the offsets point', async () => {
    const support = (text: string, startIndex: number) => ({
      segment: { text, startIndex },
      groundingChunkIndices: [0],
    })
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: 'https://example.com', title: 'Example' } }],
      groundingSupports: [support('two', 6), support('one', 999), support('nowhere', 0)],
    }
    const parts = [{ text: 'é one' }, { executableCode: { language: 'PYTHON', code: '1' } }, { text: 'two, ü two' }]
    const { reply } = await gemini.reply(replyBody(parts, { finishReason: 'STOP', groundingMetadata }))
    const source = { url: 'https://example.com', title: 'Example' }
    expect(citedTexts(reply).map(({ text, citation }) => [text, citation])).toEqual([
      ['é one', { ...source, cited_text: 'one', start: 2, end: 5 }],
      ['é one', { ...source, cited_text: 'nowhere' }],
      ['two, ü two', { ...source, cited_text: 'two', start: 0, end: 3 }],
    ])
  })

  test('names the works it recites', async () => {
    const citationMetadata = { citationSources: [{ startIndex: 3, endIndex: 6, uri: 'https://example.com/poem' }] }
    const { reply } = await gemini.reply(
      replyBody([{ text: 'ü poem' }], { finishReason: 'RECITATION', citationMetadata }),
    )
    expect(citedTexts(reply)[0]?.citation).toEqual({ url: 'https://example.com/poem', start: 2, end: 5 })
    expect(reply.finish).toBe('content_filter')
  })
})

/** An answer with these parts; without a candidate's other members it goes on. */
function replyBody(parts: object[], candidate: object = { finishReason: 'STOP' }): JsonObject {
  return { candidates: [{ content: { role: 'model', parts }, ...candidate }] } as unknown as JsonObject
}

describe('a search', () => {
  const grounding = {
    webSearchQueries: ['rain'],
    groundingChunks: [{ web: { uri: 'https://a.at', title: 'A' } }],
    groundingSupports: [{ segment: { text: 'It rains.' }, groundingChunkIndices: [0] }],
  }
  const chunk = (text: string, groundingMetadata?: JsonObject, finishReason?: string): Frame => ({
    data: {
      candidates: [
        {
          content: { parts: [{ text }] },
          ...(groundingMetadata && { groundingMetadata }),
          ...(finishReason && { finishReason }),
        },
      ],
      usageMetadata: { promptTokenCount: 5, ...(groundingMetadata && { toolUsePromptTokenCount: 9 }) },
    },
  })
  const typesOf = ({ reply }: Replayed) => reply.parts.map(({ type }) => type)
  const found = [
    { type: 'search', query: 'rain', status: 'completed' },
    { type: 'text', text: 'It rains.', citations: [{ url: 'https://a.at', start: 0, end: 9 }] },
  ]

  test('comes after the thoughts and before what it found', async () => {
    const parts = [{ text: 'Hm.', thought: true }, { text: 'It rains.' }]
    const answer = { ...replyBody(parts, { finishReason: 'STOP', groundingMetadata: grounding }) }
    for (const replayed of await bothWays(answer)) {
      expect(typesOf(replayed)).toEqual(expect.arrayContaining(['reasoning', 'search', 'text']))
      expect(replayed.reply.parts.filter(({ type }) => type !== 'reasoning')).toMatchObject(found)
    }
  })

  test('of a stream is told from its beginning, and what it was for in its end', async () => {
    const { reply, emitted } = await gemini.stream([
      chunk('It ', {}),
      chunk('rains', {}),
      chunk('.', grounding, 'STOP'),
    ])
    expect(reply.parts).toMatchObject(found)
    expect(emitted.map((event) => ('index' in event ? `${event.type} ${event.index}` : event.type))).toEqual([
      ...['start', 'open 0', 'open 1', 'delta 1', 'delta 1', 'close 0', 'delta 1', 'citation 1', 'close 1'],
      ...['finish', 'usage'],
    ])
  })

  test('of a stream that tells it only in its end does not tear the text', async () => {
    const { reply } = await gemini.stream([chunk('It '), chunk('rains'), chunk('.', grounding, 'STOP')])
    expect(reply.parts).toMatchObject([found[1], found[0]])
    const nothing = await gemini.stream([chunk('It '), chunk('rains.', undefined, 'STOP')])
    expect(typesOf(nothing)).toEqual(['text'])
    // Grounding alone, for instance in a page that was read, is no search.
    const { webSearchQueries: _none, ...read } = grounding
    expect(typesOf(await gemini.stream([chunk('It rains.', read, 'STOP')]))).toEqual(['text'])
  })
})

async function bothWays(answer: JsonObject): Promise<Replayed[]> {
  return [await gemini.reply(answer), await gemini.stream([{ data: answer }])]
}

/** The same facts out of a folded reply. */
function factsOf(reply: Reply): Facts {
  const { parts } = reply
  const calls = parts.filter((part) => part.type === 'tool_call')
  const content = (reply.logprobs as { content?: { token: string; logprob: number }[] } | undefined)?.content ?? []
  return {
    text: parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''),
    reasoning: parts.flatMap((part) => (part.type === 'reasoning' ? (part.text ?? '') : [])).join(''),
    calls: calls.map(({ name, arguments: text, id }) => ({
      name,
      arguments: JSON.parse(text),
      id: id === madeUpId ? undefined : id,
    })),
    signatures: parts.flatMap((part) => ('signature' in part && part.signature ? part.signature : [])),
    citations: citedTexts(reply).map(({ citation }) => citation),
    searches: parts.flatMap((part) => (part.type === 'search' ? queriesOf(part) : [])),
    media: parts.flatMap((part) => ('media_type' in part ? { data: part.data, media_type: part.media_type } : [])),
    opaque: parts.flatMap((part) => (part.type === 'opaque' ? [part.body] : [])),
    finish: reply.finish,
    raw: reply.finish_raw,
    usage: nonZero(reply.usage),
    logprobs: content.map(({ token, logprob }) => [token, logprob]),
    model: reply.model ?? '',
    id: reply.id,
  }
}

function queriesOf({ query = '', results }: SearchPart): string[] {
  return (results as { queries?: string[] } | undefined)?.queries ?? [query]
}

/** The id the kernel makes for a call without one, on the bench. */
const madeUpId = 'call_madeupid'

function citedTexts({ parts }: Reply): { text: string; citation: Citation }[] {
  return parts.flatMap((part) =>
    part.type === 'text' ? (part.citations ?? []).map((citation) => ({ text: part.text, citation })) : [],
  )
}
