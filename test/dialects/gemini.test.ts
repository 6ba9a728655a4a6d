import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { chat } from '../../src/api/chat/face.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Citation, Part, ToolCallPart, ToolResultPart } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { Message, NeutralRequest, TargetFacts, Tool, ToolChoice } from '../../src/core/request.ts'
import type { Provider } from '../../src/manifest/provider.ts'
import { refusal } from '../../src/upstream/failure.ts'
import { type Recording, recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { benchDialect, type Example, type Replayed, traitsOf } from './replay.ts'

const gemini = benchDialect('gemini')
const recorded = recordings('gemini')
const answered = recorded.filter(({ response }) => response.status === 200)
const refused = recorded.filter(({ response }) => response.status !== 200)

/** Recordings whose answer is a failure inside an HTTP success: they are told apart from the others, not skipped. */
const failing = new Set(['UNEXPECTED_TOOL_CALL'])

describe.skipIf(recordingsMissing)('every recorded answer', () => {
  for (const recording of answered) {
    test(`${recording.case} means what it says`, async () => {
      const chunks = chunksOf(recording)
      const said = readIndependently(chunks)
      const streamed = isStream(recording)
      const { reply, complete, error } = streamed
        ? await gemini.stream(recordedEvents(recording))
        : await gemini.reply(chunks[0])
      expect(complete).toBe(true)
      expect(error?.code).toBe(failing.has(said.raw ?? '') ? said.raw : undefined)
      expect(factsOf(reply)).toEqual(streamed ? withoutOffsets(said) : said)
      for (const { text, citation } of citedTexts(reply)) {
        if (citation.start === undefined) expect(streamed).toBe(true)
        else expect([...text].slice(citation.start, citation.end).join('')).toBe(citation.cited_text)
      }
    })

    test(`${recording.case} means the same whole and streamed`, async () => {
      const whole = await gemini.reply(joined(chunksOf(recording)))
      const streamed = await gemini.stream(chunksOf(recording).map((data) => ({ data: JSON.stringify(data) })))
      expect(withoutOffsets(factsOf(streamed.reply))).toEqual(withoutOffsets(factsOf(whole.reply)))
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
    'error-404__google': 'invalid_request',
    'error-429__google': 'rate_limited',
  }
  for (const recording of refused) {
    test(recording.case, () => {
      const { status, headers, body } = recording.response
      const error = refusal(provider, { status, headers, text: JSON.stringify(body) })
      const name = Object.keys(codes).find((start) => recording.case.startsWith(`gemini/${start}`))
      expect(error.code).toBe(codes[name ?? ''])
      if (status === 429) expect(error.retryAfterMs).toBe(48_000)
    })
  }
})

const provider = { slug: 'x', auth: { scheme: 'none' }, errors: gemini.errors } as unknown as Provider

describe('an answer', () => {
  test('with two calls of one function and no ids is two calls, without arguments an empty object', async () => {
    const answer = said([{ functionCall: { name: 'roll' } }, { functionCall: { name: 'roll', args: { n: 2 } } }])
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
      { data: said([{ text: 'Hi' }], {}) },
      { data: said([{ thoughtSignature: 'late' }]) },
    ])
    expect(reply.parts).toEqual([{ type: 'text', text: 'Hi', signature: 'late', by: 'maker' }])
  })

  test('keeps blocks of its own tools, drafts and the unknown whole, for the way back', async () => {
    const blocks = [
      { toolCall: { id: 'x', toolType: 'GOOGLE_SEARCH_WEB' }, thoughtSignature: 's' },
      { inlineData: { mimeType: 'image/png', data: 'aGk=' }, thought: true },
      { somethingNew: 1 },
    ]
    for (const { reply } of await bothWays(said(blocks))) {
      expect(reply.parts).toEqual(blocks.map((body) => ({ type: 'opaque', by: 'maker', body })))
    }
  })

  test('of an unknown reason is a stop that says so', async () => {
    for (const { reply, complete } of await bothWays(said([{ text: 'Hm' }], { finishReason: 'BRAND_NEW' }))) {
      expect(reply).toMatchObject({ finish: 'stop', finish_raw: 'BRAND_NEW' })
      expect(complete).toBe(true)
    }
  })

  test('that could not be read as a call is a failure worth another try', async () => {
    const answer = said([], { finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'Malformed function call: f(' })
    for (const { error } of await bothWays(answer)) {
      expect(error).toEqual({
        code: 'MALFORMED_FUNCTION_CALL',
        message: 'Malformed function call: f(',
        retryable: true,
      })
    }
  })

  test('without a reason is cut, whatever it said', async () => {
    const { complete } = await gemini.stream([{ data: said([{ text: 'Once upon' }], {}) }])
    expect(complete).toBe(false)
  })

  test('that breaks in the middle of a stream says how', async () => {
    const failed = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }
    const { error, complete } = await gemini.stream([{ data: said([{ text: 'Once' }], {}) }, { data: failed }])
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
    for (const { reply } of await bothWays({ ...said([{ text: 'Hi' }]), usageMetadata })) {
      expect(reply.usage).toEqual({ input: 10, cache_read: 60, input_audio: 30 })
    }
    const early = await gemini.stream([{ data: { usageMetadata: { trafficType: 'ON_DEMAND' } } }])
    expect(early.reply.usage).toEqual({})
  })

  test('counts searches by query, for the older families once', async () => {
    const groundingMetadata = { webSearchQueries: ['a', 'b'] }
    for (const [modelVersion, searches] of [['gemini-3.5-flash', 2] as const, ['gemini-2.5-flash', 1] as const]) {
      const answer = { ...said([{ text: 'Hi' }], { finishReason: 'STOP', groundingMetadata }), modelVersion }
      for (const { reply } of await bothWays({ ...answer, usageMetadata: { promptTokenCount: 1 } })) {
        expect(reply.usage.searches).toBe(searches)
        expect(reply.parts.map((part) => part.type === 'search' && part.query)).toEqual([false, 'a', 'b'])
      }
    }
  })

  test('cites the text that holds the words, wherever the offsets point', async () => {
    const support = (text: string, startIndex: number) => ({
      segment: { text, startIndex },
      groundingChunkIndices: [0],
    })
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: 'https://example.com', title: 'Example' } }],
      groundingSupports: [support('two', 6), support('one', 999), support('nowhere', 0)],
    }
    const parts = [{ text: 'é one' }, { executableCode: { language: 'PYTHON', code: '1' } }, { text: 'two, ü two' }]
    const { reply } = await gemini.reply(said(parts, { finishReason: 'STOP', groundingMetadata }))
    const source = { url: 'https://example.com', title: 'Example' }
    expect(citedTexts(reply).map(({ text, citation }) => [text, citation])).toEqual([
      ['é one', { ...source, cited_text: 'one', start: 2, end: 5 }],
      ['é one', { ...source, cited_text: 'nowhere' }],
      ['two, ü two', { ...source, cited_text: 'two', start: 0, end: 3 }],
    ])
  })

  test('names the works it recites', async () => {
    const citationMetadata = { citationSources: [{ startIndex: 3, endIndex: 6, uri: 'https://example.com/poem' }] }
    const { reply } = await gemini.reply(said([{ text: 'ü poem' }], { finishReason: 'RECITATION', citationMetadata }))
    expect(citedTexts(reply)[0]?.citation).toEqual({ url: 'https://example.com/poem', start: 2, end: 5 })
    expect(reply.finish).toBe('content_filter')
  })
})

describe('every example of the files', () => {
  for (const example of [...(gemini.examples as FileExample[]), ...examplesOf('google')]) {
    test(example.name, async () => {
      const { request, sends, answers, events, means } = example
      if (request) {
        const facts = gemini.examples.includes(example) ? {} : target(request.model)
        const body = await gemini.body(whole(request, request.model), example.target ?? facts)
        expect(body).toEqual(sends)
        expectValid(body)
      }
      const frames = events?.map((data) => ({ data }))
      const { reply } = frames ? await gemini.stream(frames) : await gemini.reply(answers ?? {})
      if (means) expect(reply).toMatchObject(means)
      if (means?.usage) expect(reply.usage).toEqual(means.usage)
    })
  }
})

type FileExample = Example & { events?: JsonObject[] }

function examplesOf(slug: string): FileExample[] {
  const text = readFileSync(join(import.meta.dirname, `../../providers/${slug}.yaml`), 'utf8')
  return parse(text).examples
}

/** An answer with these parts; without a candidate's other members it goes on. */
function said(parts: object[], candidate: object = { finishReason: 'STOP' }): JsonObject {
  return { candidates: [{ content: { role: 'model', parts }, ...candidate }] } as unknown as JsonObject
}

async function bothWays(answer: JsonObject): Promise<Replayed[]> {
  return [await gemini.reply(answer), await gemini.stream([{ data: answer }])]
}

describe('a request', () => {
  test('is made of turns of user and model, with instructions apart', async () => {
    const body = await sent({
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [user('Hi'), { role: 'assistant', parts: [{ type: 'text', text: 'Yes?' }] }, user('Sing.')],
    })
    expect(body).toEqual({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ text: 'Yes?' }] },
        { role: 'user', parts: [{ text: 'Sing.' }] },
      ],
      generationConfig: {},
    })
  })

  test('tells instructions to the first user turn where the family has no place for them', async () => {
    const asked = { system: [{ type: 'text' as const, text: 'Be brief.' }], messages: [user('Hi')] }
    const { systemInstruction, contents } = await sent(asked, 'gemma-4-31b-it')
    expect(systemInstruction).toBeUndefined()
    expect(contents).toEqual([{ role: 'user', parts: [{ text: 'Be brief.' }, { text: 'Hi' }] }])
  })

  test('inlines data and names addresses, with the media type their ending tells', async () => {
    const { contents } = await sent({
      messages: [
        {
          role: 'user',
          parts: [
            { type: 'image', data: 'aGk=', media_type: 'image/png' },
            { type: 'image', url: 'https://example.com/Cat.JPG?size=2' },
            { type: 'video', url: 'https://www.youtube.com/watch?v=x' },
            { type: 'file', file_id: 'files/abc', filename: 'a.pdf' },
            { type: 'audio', id: 'audio_1', transcript: 'Said before.' },
          ],
        },
      ],
    })
    expect(contents[0].parts).toEqual([
      { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
      { fileData: { mimeType: 'image/jpeg', fileUri: 'https://example.com/Cat.JPG?size=2' } },
      { fileData: { fileUri: 'https://www.youtube.com/watch?v=x' } },
      { fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/abc' } },
      { text: 'Said before.' },
    ])
  })

  test('returns a signature to its maker only, on the very part it came with', async () => {
    const parts: Part[] = [
      { type: 'reasoning', text: 'Hm.', signature: 'r', by: 'google' },
      { type: 'reasoning', text: 'Private.', signature: 'foreign', by: 'another' },
      { type: 'reasoning', text: 'Unsealed.', by: 'google' },
      { type: 'text', text: '', signature: 't', by: 'google' },
      { type: 'text', text: 'Said.', signature: 'foreign', by: 'another' },
      { type: 'opaque', body: { executableCode: { language: 'PYTHON', code: '1' } }, by: 'google' },
      { type: 'opaque', body: { type: 'thinking' }, by: 'another' },
      { type: 'search', query: 'x', by: 'google' },
    ]
    const { contents } = await sent({ messages: [user('Hi'), { role: 'assistant', parts }, user('On.')] })
    expect(contents[1].parts).toEqual([
      { thought: true, text: 'Hm.', thoughtSignature: 'r' },
      { text: '', thoughtSignature: 't' },
      { text: 'Said.' },
      { executableCode: { language: 'PYTHON', code: '1' } },
    ])
  })

  test('stamps the first unsigned call of a turn where the family refuses it bare', async () => {
    const loop = (first: Partial<ToolCallPart>) => ({
      messages: [user('Go.'), calls({ id: 'a', ...first }, { id: 'b', arguments: '' }), results('a', 'b')],
    })
    const stamps = async (request: Asked, model: string) => {
      const { contents } = await sent(request, model)
      return contents[1].parts.map((part: Chunk) => part.thoughtSignature)
    }
    const standIn = 'skip_thought_signature_validator'
    expect(await stamps(loop({ signature: 's', by: 'google' }), 'gemini-3.5-flash')).toEqual(['s', undefined])
    expect(await stamps(loop({ signature: 's', by: 'another' }), 'gemini-3.5-flash')).toEqual([standIn, undefined])
    expect(await stamps(loop({}), 'gemini-4-argon')).toEqual([standIn, undefined])
    expect(await stamps(loop({}), 'gemini-2.5-pro')).toEqual([undefined, undefined])
  })

  test('answers every call of a turn in one user turn, in their order, each with name and id', async () => {
    const { contents } = await sent({
      messages: [
        user('Go.'),
        calls({ id: 'a', name: 'one' }, { id: 'b', name: 'two', arguments: 'not JSON' }),
        results('b'),
        results('a'),
        user('And?'),
      ],
    })
    expect(contents[1].parts.map(({ functionCall }: Chunk) => functionCall)).toEqual([
      { id: 'a', name: 'one', args: { x: 1 } },
      { id: 'b', name: 'two', args: { input: 'not JSON' } },
    ])
    expect(contents[2].parts).toEqual([
      { functionResponse: { id: 'a', name: 'one', response: { output: 'result of a' } } },
      { functionResponse: { id: 'b', name: 'two', response: { output: 'result of b' } } },
      { text: 'And?' },
    ])
  })

  test('wraps results in an object, says what failed, and puts images where the family takes them', async () => {
    const image = { type: 'image' as const, data: 'aGk=', media_type: 'image/png' }
    const inline = { inlineData: { mimeType: 'image/png', data: 'aGk=' } }
    const result: ToolResultPart = { type: 'tool_result', id: 'a', parts: [{ type: 'text', text: '[1]' }, image] }
    const failed: ToolResultPart = { type: 'tool_result', id: 'b', parts: [], is_error: true }
    const asked: Asked = {
      messages: [user('Go.'), calls({ id: 'a' }, { id: 'b' }), { role: 'user', parts: [result, failed] }],
    }
    const error = { functionResponse: { id: 'b', name: 'f', response: { error: '' } } }
    const newer = await sent(asked, 'gemini-3-flash-preview')
    expect(newer.contents[2].parts).toEqual([
      { functionResponse: { id: 'a', name: 'f', response: { output: '[1]' }, parts: [inline] } },
      error,
    ])
    const older = await sent(asked, 'gemini-2.5-flash')
    expect(older.contents[2].parts).toEqual([
      { functionResponse: { id: 'a', name: 'f', response: { output: '[1]' } } },
      error,
      { text: 'Returned by the tool call a:' },
      inline,
    ])
  })

  test('declares all functions in one tool, without an empty schema', async () => {
    const parameters = { type: 'object', properties: { x: { $ref: '#/$defs/x' } }, $defs: { x: { type: 'number' } } }
    const { tools, toolConfig } = await sent({
      tools: [
        { kind: 'function', name: 'f', description: 'Does it.', parameters },
        { kind: 'function', name: 'g', parameters: { type: 'object', properties: {}, additionalProperties: false } },
      ],
    })
    expect(tools).toEqual([
      {
        functionDeclarations: [
          { name: 'f', description: 'Does it.', parametersJsonSchema: parameters },
          { name: 'g', description: '' },
        ],
      },
    ])
    expect(toolConfig).toBeUndefined()
  })

  test.each<[ToolChoice, object]>([
    ['auto', { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [{ name: 'f' }, { mode: 'ANY', allowedFunctionNames: ['f'] }],
    [
      { allowed: ['f', 'g'], mode: 'required' },
      { mode: 'ANY', allowedFunctionNames: ['f', 'g'] },
    ],
    [
      { allowed: ['f'], mode: 'auto' },
      { mode: 'VALIDATED', allowedFunctionNames: ['f'] },
    ],
  ])('says the tool choice %j as %j', async (tool_choice, functionCallingConfig) => {
    const { toolConfig } = await sent({ tools: [f], tool_choice })
    expect(toolConfig).toEqual({ functionCallingConfig })
  })

  test('keeps calls to their schema where a tool is strict', async () => {
    const { toolConfig } = await sent({ tools: [{ ...f, strict: true }] })
    expect(toolConfig.functionCallingConfig.mode).toBe('VALIDATED')
  })

  test('searches the web beside functions from 3 on, before that alone', async () => {
    const both: Asked = { tools: [f], web_search: {} }
    const newer = await sent(both, 'gemini-3.5-flash')
    expect(newer.tools).toEqual([{ functionDeclarations: [{ name: 'f', description: '' }] }, { googleSearch: {} }])
    expect(newer.toolConfig.includeServerSideToolInvocations).toBe(true)
    expect(await losses(both, 'gemini-3.5-flash')).toEqual([])
    const older = await sent(both, 'gemini-2.5-flash')
    expect(older.tools).toEqual([{ functionDeclarations: [{ name: 'f', description: '' }] }])
    expect(await losses(both, 'gemini-2.5-flash')).toEqual(['web_search'])
    expect((await sent({ web_search: {} }, 'gemini-2.5-flash')).tools).toEqual([{ googleSearch: {} }])
  })

  test('answers in JSON, asked for in words where tools forbid the field', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const asked: Asked = { tools: [f], response_format: { type: 'json_schema', name: 'a', schema } }
    const newer = await sent(asked, 'gemini-3.5-flash')
    expect(newer.generationConfig).toEqual({ responseMimeType: 'application/json', responseJsonSchema: schema })
    const older = await sent(asked, 'gemini-2.5-flash')
    expect(older.generationConfig).toEqual({})
    expect(older.systemInstruction.parts[0].text).toContain(JSON.stringify(schema))
    const free = await sent({ response_format: { type: 'json' } }, 'gemini-2.5-flash')
    expect(free.generationConfig).toEqual({ responseMimeType: 'application/json' })
  })

  test.each<[string, NonNullable<NeutralRequest['reasoning']>, object | undefined]>([
    ['gemini-3.5-flash', { effort: 'none' }, { includeThoughts: false, thinkingLevel: 'MINIMAL' }],
    ['gemini-3.5-flash', { effort: 'medium' }, { includeThoughts: true, thinkingLevel: 'MEDIUM' }],
    ['gemini-3.7-flash', { effort: 'minimal' }, { includeThoughts: true, thinkingLevel: 'LOW' }],
    ['gemini-3.1-pro-preview', { effort: 'max' }, { includeThoughts: true, thinkingLevel: 'HIGH' }],
    ['gemini-3.1-pro-preview', { budget: 2_000 }, { includeThoughts: true, thinkingLevel: 'MEDIUM' }],
    ['gemini-4-carbon', { summary: 'auto' }, { includeThoughts: true }],
    ['gemini-3-pro-image', { effort: 'medium' }, { includeThoughts: true, thinkingLevel: 'HIGH' }],
    ['gemini-2.5-flash', { effort: 'none' }, { includeThoughts: false, thinkingBudget: 0 }],
    ['gemini-2.5-flash-lite', { budget: 100 }, { includeThoughts: true, thinkingBudget: 512 }],
    ['gemini-2.5-pro', { effort: 'none' }, { includeThoughts: false, thinkingBudget: 128 }],
    ['gemini-2.5-pro', { budget: 99_999 }, { includeThoughts: true, thinkingBudget: 32_768 }],
    ['gemini-2.5-flash-image', { effort: 'high' }, undefined],
    ['gemini-2.5-flash-preview-tts', { effort: 'high' }, undefined],
    ['gemini-2.0-flash', { effort: 'high' }, undefined],
    ['gemma-3-27b-it', { effort: 'high' }, undefined],
    ['gemma-4-31b-it', { effort: 'low' }, { includeThoughts: true, thinkingLevel: 'MINIMAL' }],
  ])('%s is told to reason by %j as %j', async (model, reasoning, thinkingConfig) => {
    const { generationConfig } = await sent({ reasoning }, model)
    expect(generationConfig.thinkingConfig).toEqual(thinkingConfig)
    expect(await losses({ reasoning }, model)).toEqual(thinkingConfig ? [] : ['reasoning'])
  })

  test('carries every knob there is a counterpart for', async () => {
    const { generationConfig, serviceTier, safetySettings, cachedContent } = await sent({
      max_output_tokens: 100_000,
      temperature: 0,
      top_p: 0.5,
      top_k: 3,
      seed: 7,
      stop: ['a', 'b'],
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      logprobs: { top: 2 },
      modalities: ['text', 'audio'],
      audio: { voice: 'Kore', format: 'pcm16' },
      service_tier: 'flex',
      extensions: { safety_settings: [], cached_content: 'cachedContents/x' },
    })
    expect(generationConfig).toEqual({
      maxOutputTokens: 65_536,
      temperature: 0,
      topP: 0.5,
      topK: 3,
      seed: 7,
      stopSequences: ['a', 'b'],
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      responseLogprobs: true,
      logprobs: 2,
      responseModalities: ['AUDIO'],
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
    })
    expect([serviceTier, safetySettings, cachedContent]).toEqual(['flex', [], 'cachedContents/x'])
  })

  test('reports what it cannot carry, and only when it was asked for', async () => {
    const seen = { type: 'image' as const, data: 'aGk=', media_type: 'image/png', detail: 'high', cache: {} }
    const foreign: Part[] = [
      { type: 'opaque', body: {}, by: 'another' },
      { type: 'search', query: 'x', by: 'another' },
    ]
    const asked: Asked = {
      messages: [
        { role: 'user', name: 'Ada', parts: [seen, { type: 'file', data: 'aGk=', filename: 'a.pdf' }] },
        { role: 'assistant', parts: [...foreign, { type: 'audio', id: 'audio_1' }] },
      ],
      tools: [{ kind: 'custom', name: 'c', cache: {} }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      web_search: { max_uses: 1, allowed_domains: [], blocked_domains: [], user_location: {}, context_size: 'low' },
      n: 2,
      store: true,
      audio: { voice: 'Kore', format: 'mp3' },
      service_tier: 'scale',
      extensions: { top_a: 1 },
    }
    const always = ['logit_bias', 'prediction', 'verbosity', 'cache', 'user', 'safety_identifier', 'metadata']
    const conditional = gemini.losses.flatMap(({ field, when }) => (when ? field : []))
    const elsewhere = ['web_search', 'reasoning']
    expect(await losses(asked)).toEqual(conditional.filter((field) => !elsewhere.includes(field)))
    const plain = gemini.losses.flatMap(({ field, when }) => (when ? [] : field))
    expect(plain).toEqual([...always, 'moderation'])
    expect(await losses({ n: 1, store: false, parallel_tool_calls: true, service_tier: 'auto', tools: [f] })).toEqual(
      [],
    )
  })

  test('has every field of the neutral form mapped, reported, or handled before it', () => {
    const lost = new Set(gemini.losses.map(({ field }) => field))
    for (const [field, where] of Object.entries(fields)) {
      if (where === 'mapped') expect(gemini.request.reads, field).toContain(field)
      if (where === 'lost') expect(lost, field).toContain(field)
    }
  })
})

/** Where each field goes; `kernel` stands for the path, the choice between path and stream path, and the client's body. */
const fields = {
  model: 'kernel',
  stream: 'kernel',
  origin: 'kernel',
  system: 'mapped',
  messages: 'mapped',
  tools: 'mapped',
  tool_choice: 'mapped',
  parallel_tool_calls: 'lost',
  web_search: 'mapped',
  max_output_tokens: 'mapped',
  temperature: 'mapped',
  top_p: 'mapped',
  top_k: 'mapped',
  seed: 'mapped',
  stop: 'mapped',
  frequency_penalty: 'mapped',
  presence_penalty: 'mapped',
  logit_bias: 'lost',
  logprobs: 'mapped',
  n: 'lost',
  response_format: 'mapped',
  reasoning: 'mapped',
  modalities: 'mapped',
  audio: 'mapped',
  prediction: 'lost',
  service_tier: 'mapped',
  verbosity: 'lost',
  cache: 'lost',
  user: 'lost',
  safety_identifier: 'lost',
  metadata: 'lost',
  store: 'lost',
  moderation: 'lost',
  extensions: 'mapped',
} as const satisfies { [field in keyof Required<NeutralRequest>]: 'mapped' | 'lost' | 'kernel' }

type Asked = Partial<NeutralRequest>

const f: Tool = { kind: 'function', name: 'f' }

function user(text: string): Message {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

function calls(...said: (Partial<ToolCallPart> & { id: string })[]): Message {
  return {
    role: 'assistant',
    parts: said.map((call) => ({ type: 'tool_call', name: 'f', arguments: '{"x":1}', ...call })),
  }
}

function results(...ids: string[]): Message {
  return {
    role: 'user',
    parts: ids.map((id) => ({ type: 'tool_result', id, parts: [{ type: 'text', text: `result of ${id}` }] })),
  }
}

function whole(request: Asked, model: string): NeutralRequest {
  return { model, messages: [user('Hi')], origin: { api: 'chat', body: {} }, ...request }
}

function target(model: string): TargetFacts {
  return { maker: 'google', max_output_tokens: 65_536, traits: traitsOf('google', model) }
}

/** The body for a model of the google manifest; every one is held against the published schema. */
async function sent(request: Asked, model = 'gemini-3.5-flash'): Promise<Chunk> {
  const body = await gemini.body(whole(request, model), target(model))
  expectValid(body)
  return body
}

async function losses(request: Asked, model = 'gemini-3.5-flash'): Promise<string[]> {
  const input = { ...whole(request, model), target: target(model) }
  const lost: string[] = []
  for (const { field, when } of gemini.losses) {
    if (when ? (await when.run(input)) === true : field in request) lost.push(field)
  }
  return lost
}

describe.skipIf(recordingsMissing)('every recorded request of the OpenAI format', () => {
  for (const { case: name, request } of recordings('openai-chat')) {
    test.skipIf(!request?.body)(`${name} becomes a valid body`, async () => {
      const neutral = chat.read(request?.body)
      for (const model of ['gemini-3.5-flash', 'gemini-2.5-flash', 'gemma-4-31b-it']) {
        const body = await sent(neutral, model)
        expect(body.contents.length).toBeGreaterThan(0)
        expect(body.contents[0].role).toBe('user')
        expectAnswered(body.contents)
      }
    })
  }
})

/** Every turn with calls is followed by a turn with as many results, by the same names in the same order. */
function expectAnswered(contents: Chunk[]): void {
  const named = (content: Chunk, member: string): string[] =>
    (content?.parts ?? []).flatMap((part: Chunk) => (part[member] ? [part[member].name] : []))
  for (const [index, content] of contents.entries()) {
    expect(named(contents[index + 1], 'functionResponse')).toEqual(named(content, 'functionCall'))
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The published schema, made strict: this API refuses unknown names, and parts with more or less than one kind of data.

const schemaPath = resolve(
  process.env.SPECS ?? join(import.meta.dirname, '../../../shared/specs'),
  'gemini.v1beta.schema.json',
)
const published = existsSync(schemaPath) ? JSON.parse(readFileSync(schemaPath, 'utf8')) : undefined
if (!published) console.warn(`skipped: no published schema at ${schemaPath} (set SPECS)`)

/** Members that the API documents and the published descriptor does not have yet. */
const newer: { [type: string]: { [member: string]: object } } = {
  GenerateContentRequest: { serviceTier: { enum: ['flex', 'standard', 'priority'] } },
  ThinkingConfig: { thinkingLevel: { enum: ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'] } },
  ToolConfig: { includeServerSideToolInvocations: { type: 'boolean' } },
}

const validate = published && strictValidator(published)

function strictValidator(schema: Chunk) {
  const { definitions } = schema
  for (const [type, definition] of Object.entries<Chunk>(definitions)) {
    if (!definition.properties) continue
    definition.additionalProperties = false
    Object.assign(definition.properties, newer[type])
  }
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { int64: true } })
  ajv.addKeyword({
    keyword: 'x-oneofs',
    validate: (groups: { [group: string]: string[] }, value: object) =>
      Object.entries(groups).every(([group, members]) => {
        const given = members.filter((member) => member in value).length
        return group === 'data' ? given === 1 : given <= 1
      }),
  })
  return ajv.compile({ $ref: '#/definitions/GenerateContentRequest', definitions })
}

test.skipIf(!published)('the strict reading of the published schema refuses what the provider refuses', () => {
  const valid = (part: object) => validate?.({ model: 'm', contents: [{ role: 'user', parts: [part] }] })
  expect(valid({ text: '' })).toBe(true)
  expect(valid({ text: '', unknown: 1 })).toBe(false)
  expect(valid({ thoughtSignature: 'bare' })).toBe(false)
  expect(valid({ text: '', inlineData: {} })).toBe(false)
})

function expectValid(body: object): void {
  if (!validate) return
  validate({ model: 'in the path', ...body })
  expect(validate.errors ?? []).toEqual([])
}

// ---------------------------------------------------------------------------------------------------------------------
// The independent reader: what a recording says, without the mappings.

type Facts = {
  text: string
  reasoning: string
  calls: { name: string; arguments: unknown; id: string | undefined }[]
  seals: string[]
  citations: Citation[]
  searches: string[]
  media: unknown[]
  opaque: unknown[]
  finish: string
  raw: string | undefined
  usage: { [name: string]: number }
  logprobs: [string, number][]
  model: string
  id: string
}

// biome-ignore lint/suspicious/noExplicitAny: recorded bodies have the shape of whoever sent them.
type Chunk = any

function isStream({ response }: Recording): boolean {
  return response.sse !== undefined || Array.isArray(response.body)
}

function chunksOf(recording: Recording): Chunk[] {
  return isStream(recording) ? recordedEvents(recording).map(({ data }) => JSON.parse(data)) : [recording.response.body]
}

function readIndependently(chunks: Chunk[]): Facts {
  const candidates = chunks.flatMap((chunk) => chunk.candidates?.[0] ?? [])
  const parts: Chunk[] = candidates.flatMap((candidate) => candidate.content?.parts ?? [])
  const answer = parts.filter((part) => typeof part.text === 'string' && !part.thought)
  const text = answer.map((part) => part.text).join('')
  const calls = parts.flatMap(({ functionCall: call }) => call ?? [])
  const grounding = candidates.map((candidate) => candidate.groundingMetadata).findLast((one) => one?.groundingChunks)
  const blocked = chunks.map((chunk) => chunk.promptFeedback?.blockReason).find(Boolean)
  const raw = blocked ?? candidates.map(({ finishReason }) => finishReason).findLast(Boolean)
  const last = chunks.at(-1)
  return {
    text,
    reasoning: parts.flatMap((part) => (part.thought ? (part.text ?? '') : [])).join(''),
    calls: calls.map(({ name, args = {}, id }) => ({ name, arguments: args, id })),
    seals: parts.flatMap((part) => (part.thoughtSignature && !isOpaque(part) ? part.thoughtSignature : [])),
    citations: citationsOf(grounding, text),
    searches: grounding?.webSearchQueries ?? [],
    media: parts.flatMap(({ inlineData: inline }) =>
      inline ? { data: inline.data, media_type: inline.mimeType } : [],
    ),
    opaque: parts.filter(isOpaque),
    finish: calls.length > 0 && raw === 'STOP' ? 'tool_calls' : (finishes[raw] ?? 'unknown'),
    raw,
    usage: usageOf(last, grounding),
    logprobs: candidates.flatMap(({ logprobsResult: result }) =>
      (result?.chosenCandidates ?? []).map((chosen: Chunk) => [chosen.token, chosen.logProbability]),
    ),
    model: last.modelVersion,
    id: last.responseId,
  }
}

const finishes: { [reason: string]: string } = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  UNEXPECTED_TOOL_CALL: 'error',
}

function isOpaque(part: Chunk): boolean {
  return part.executableCode || part.codeExecutionResult || part.toolCall || part.toolResponse
}

/** Byte offsets are turned over bytes; where they miss the words they cite, the words themselves are looked for. */
function citationsOf(grounding: Chunk, text: string): Citation[] {
  const bytes = Buffer.from(text)
  const codePoints = (until: number) => [...bytes.subarray(0, until).toString()].length
  return (grounding?.groundingSupports ?? []).flatMap(({ segment, groundingChunkIndices }: Chunk) => {
    const { startIndex = 0, endIndex, text: cited_text } = segment
    const right = bytes.subarray(startIndex, endIndex).toString() === cited_text
    const found = right ? startIndex : bytes.indexOf(cited_text)
    const [start, end] = [codePoints(found), codePoints(found + Buffer.byteLength(cited_text))]
    const sources: Chunk[] = groundingChunkIndices.map((index: number) => grounding.groundingChunks[index])
    return sources.flatMap(({ web }) => (web ? { url: web.uri, title: web.title, cited_text, start, end } : []))
  })
}

function usageOf({ usageMetadata: counts = {}, modelVersion }: Chunk, grounding: Chunk): Facts['usage'] {
  const count = (side: string, modality: string): number =>
    counts[`${side}TokensDetails`]?.find((one: Chunk) => one.modality === modality)?.tokenCount ?? 0
  const heard = count('prompt', 'AUDIO') - count('cache', 'AUDIO')
  const [spoken, drawn] = [count('candidates', 'AUDIO'), count('candidates', 'IMAGE')]
  const { promptTokenCount: prompt, cachedContentTokenCount: cached = 0, toolUsePromptTokenCount: tools = 0 } = counts
  const queries = grounding?.webSearchQueries?.length ?? 0
  const usage = {
    input: (prompt ?? 0) + tools - cached - heard,
    input_audio: heard,
    cache_read: cached,
    output: (counts.candidatesTokenCount ?? 0) - spoken - drawn,
    output_audio: spoken,
    output_image: drawn,
    reasoning: counts.thoughtsTokenCount ?? 0,
    searches: modelVersion.startsWith('gemini-2') ? Math.min(queries, 1) : queries,
  }
  const total = Object.values(usage).reduce((sum, one) => sum + one, 0) - usage.searches
  expect(total, 'classes are disjoint and complete').toBe(counts.totalTokenCount ?? 0)
  return nonZero(usage)
}

function nonZero(usage: object): Facts['usage'] {
  return Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== 0))
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
    seals: parts.flatMap((part) => ('signature' in part && part.signature ? part.signature : [])),
    citations: citedTexts(reply).map(({ citation }) => citation),
    searches: parts.flatMap((part) => (part.type === 'search' ? (part.query ?? '') : [])),
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

/** The id the kernel makes for a call without one, on the bench. */
const madeUpId = 'call_madeupid'

function citedTexts({ parts }: Reply): { text: string; citation: Citation }[] {
  return parts.flatMap((part) =>
    part.type === 'text' ? (part.citations ?? []).map((citation) => ({ text: part.text, citation })) : [],
  )
}

function withoutOffsets(facts: Facts): Facts {
  return { ...facts, citations: facts.citations.map(({ start, end, ...rest }) => rest) }
}

/** The whole answer that the chunks of a stream add up to: neighbouring texts are one. */
function joined(chunks: Chunk[]): Chunk {
  const candidates = chunks.flatMap((chunk) => chunk.candidates?.[0] ?? [])
  const parts: Chunk[] = []
  for (const part of candidates.flatMap((candidate) => candidate.content?.parts ?? [])) {
    const last = parts.at(-1)
    if (last?.text === undefined || part.text === undefined || last.thought !== part.thought) parts.push({ ...part })
    else Object.assign(last, part, { text: last.text + part.text })
  }
  const last = chunks.at(-1)
  return { ...last, ...(candidates.length > 0 && { candidates: [{ ...candidates.at(-1), content: { parts } }] }) }
}
