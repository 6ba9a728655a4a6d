import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { Part, ToolCallPart, ToolResultPart } from '../../src/core/parts.ts'
import type { ClientTool, Message, NeutralRequest, ToolChoice } from '../../src/core/request.ts'
import { proveExamples } from '../../src/manifest/check/examples.ts'
import type { ChatEndpoint } from '../../src/manifest/provider.ts'
import { bareProvider, type Dialect, loadDialect } from '../../src/manifest/read/dialect.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { unsupportedByMapping } from '../../src/manifest/run/inferred-support.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { generateSchemaMissing, generateViolations } from './generate-schema.ts'

const dialect = loadDialect(sourceOf('dialects/gemini')).dialect as Dialect
const { loaded, problems } = loadManifest(sourceOf('google'), {
  dialects: new Map([['gemini', dialect]]),
  env: { GEMINI_API_KEY: 'key' },
})
if (!loaded) throw new Error(problems.map(({ message }) => message).join('; '))
const { provider } = loaded
const endpoint = provider.chat as ChatEndpoint

// biome-ignore lint/suspicious/noExplicitAny: bodies and schemas have the shape of their source.
type Body = any

test('the examples of the files pass, and send what the published schema accepts', async () => {
  expect(problems).toEqual([])
  expect(await proveExamples(bareProvider(dialect), [dialect.layer])).toEqual([])
  expect(await proveExamples(provider, loaded.layers)).toEqual([])
  // Other endpoints have forms of their own.
  for (const { operation, sends } of [
    ...dialect.layer.examples,
    ...loaded.layers.flatMap(({ examples }) => examples),
  ]) {
    if (sends && !operation) expectValid(sends)
  }
})

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

  test('moves instructions into the first user turn where the family has no system role', async () => {
    const requested = { system: [{ type: 'text' as const, text: 'Be brief.' }], messages: [user('Hi')] }
    const { systemInstruction, contents } = await sent(requested, 'gemma-4-31b-it')
    expect(systemInstruction).toBeUndefined()
    expect(contents).toEqual([{ role: 'user', parts: [{ text: 'Be brief.' }, { text: 'Hi' }] }])
  })

  test('inlines data and passes URLs, with the media type of their extension', async () => {
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
      {
        fileData: {
          mimeType: 'application/pdf',
          fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/abc',
        },
      },
      { text: 'Said before.' },
    ])
  })

  test('returns a signature to its provider only, on the part it came with', async () => {
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
    const stamps = async (request: RequestFields, model: string) => {
      const { contents } = await sent(request, model)
      return contents[1].parts.map((part: Body) => part.thoughtSignature)
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
    expect(contents[1].parts.map(({ functionCall }: Body) => functionCall)).toEqual([
      { id: 'a', name: 'one', args: { x: 1 } },
      { id: 'b', name: 'two', args: { input: 'not JSON' } },
    ])
    expect(contents[2].parts).toEqual([
      { functionResponse: { id: 'a', name: 'one', response: { output: 'result of a' } } },
      { functionResponse: { id: 'b', name: 'two', response: { output: 'result of b' } } },
      { text: 'And?' },
    ])
  })

  test('wraps results in an object, marks failures, and puts images where the family accepts them', async () => {
    const image = { type: 'image' as const, data: 'aGk=', media_type: 'image/png' }
    const inline = { inlineData: { mimeType: 'image/png', data: 'aGk=' } }
    const result: ToolResultPart = { type: 'tool_result', id: 'a', parts: [{ type: 'text', text: '[1]' }, image] }
    const failed: ToolResultPart = { type: 'tool_result', id: 'b', parts: [], is_error: true }
    const requested: RequestFields = {
      messages: [user('Go.'), calls({ id: 'a' }, { id: 'b' }), { role: 'user', parts: [result, failed] }],
    }
    const error = { functionResponse: { id: 'b', name: 'f', response: { error: '' } } }
    const newer = await sent(requested, 'gemini-3-flash-preview')
    expect(newer.contents[2].parts).toEqual([
      { functionResponse: { id: 'a', name: 'f', response: { output: '[1]' }, parts: [inline] } },
      error,
    ])
    const older = await sent(requested, 'gemini-2.5-flash')
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

  test('restricts calls to their schema where a tool is strict', async () => {
    const { toolConfig } = await sent({ tools: [{ ...f, strict: true }] })
    expect(toolConfig.functionCallingConfig.mode).toBe('VALIDATED')
  })

  test('searches the web beside functions from 3 on, before that alone', async () => {
    const both: RequestFields = { tools: [f], web_search: {} }
    const newer = await sent(both, 'gemini-3.5-flash')
    expect(newer.tools).toEqual([{ functionDeclarations: [{ name: 'f', description: '' }] }, { googleSearch: {} }])
    expect(newer.toolConfig.includeServerSideToolInvocations).toBe(true)
    expect(await losses(both, 'gemini-3.5-flash')).toEqual([])
    const older = await sent(both, 'gemini-2.5-flash')
    expect(older.tools).toEqual([{ functionDeclarations: [{ name: 'f', description: '' }] }])
    expect(await losses(both, 'gemini-2.5-flash')).toEqual(['web_search'])
    expect((await sent({ web_search: {} }, 'gemini-2.5-flash')).tools).toEqual([{ googleSearch: {} }])
  })

  test('replies in JSON, requested in the instructions where tools forbid the field', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const requested: RequestFields = { tools: [f], response_format: { type: 'json_schema', name: 'a', schema } }
    const newer = await sent(requested, 'gemini-3.5-flash')
    expect(newer.generationConfig).toEqual({ responseMimeType: 'application/json', responseJsonSchema: schema })
    const older = await sent(requested, 'gemini-2.5-flash')
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
    const { generationConfig, serviceTier, safetySettings } = await sent({
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
      extensions: { safety_settings: [] },
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
    expect([serviceTier, safetySettings]).toEqual(['flex', []])
  })

  test('reports requested fields that it cannot carry, and no others', async () => {
    const seen = { type: 'image' as const, data: 'aGk=', media_type: 'image/png', detail: 'high', cache: {} }
    const requested: RequestFields = {
      messages: [
        { role: 'user', name: 'Ada', parts: [seen, { type: 'file', data: 'aGk=', filename: 'a.pdf' }] },
        {
          role: 'assistant',
          parts: [
            { type: 'text', text: 'Yes.', citations: [{ url: 'https://example.com' }] },
            { type: 'reasoning', text: 'x', by: 'another' },
            { type: 'search', query: 'x', by: 'another' },
            { type: 'audio', id: 'audio_1' },
          ],
        },
      ],
      system: [{ type: 'image', data: 'aGk=', media_type: 'image/png' }],
      tools: [
        { kind: 'custom', name: 'c' },
        { kind: 'web_fetch', by: 'messages', definition: { type: 'web_fetch' } },
      ],
      tool_choice: 'required',
      parallel_tool_calls: false,
      web_search: {
        max_uses: 1,
        allowed_domains: ['a.example'],
        blocked_domains: ['b.example'],
        user_location: {},
        context_size: 'low',
      },
      logit_bias: { '1': 1 },
      prediction: {},
      verbosity: 'low',
      cache: { key: 'k' },
      user: 'u',
      safety_identifier: 's',
      metadata: {},
      moderation: {},
      n: 2,
      store: true,
      audio: { voice: 'Kore' },
      service_tier: 'scale',
      reasoning: { effort: 'high', summary: 'detailed' },
      response_format: { type: 'json_schema', name: 'a', description: 'An answer.' },
      extensions: { safety_settings: [], top_a: 1 },
    }
    expect((await losses(requested)).toSorted()).toEqual(
      [
        ...['audio', 'extensions.top_a', 'logit_bias', 'messages.name', 'moderation', 'n'],
        ...['parallel_tool_calls', 'parts.audio', 'parts.cache', 'parts.citations', 'parts.detail', 'parts.filename'],
        ...['parts.image', 'parts.reasoning', 'parts.search', 'prediction'],
        ...['response_format.description', 'safety_identifier', 'service_tier', 'store'],
        ...['tools.web_fetch', 'user', 'verbosity', 'web_search.allowed_domains', 'web_search.blocked_domains'],
        ...['web_search.context_size', 'web_search.max_uses', 'web_search.user_location'],
      ].toSorted(),
    )
    expect(await losses({ tools: [{ ...f, strict: true, cache: {} }] })).toEqual(['tools.cache'])
    expect(await losses({ modalities: ['audio'], audio: { voice: 'Kore', format: 'mp3' } })).toEqual(['audio.format'])
    expect(await losses({ reasoning: { effort: 'none' } }, 'gemini-2.5-flash-image')).toEqual([])
    expect(await losses({ n: 1, store: false, parallel_tool_calls: true, service_tier: 'auto', tools: [f] })).toEqual(
      [],
    )
  })

  test('takes everything else', () => {
    expect(unsupportedByMapping(endpoint.request.support).toSorted()).toEqual(
      [
        ...['cache', 'logit_bias', 'metadata', 'moderation', 'n', 'parallel_tool_calls', 'prediction'],
        ...['safety_identifier', 'store', 'user', 'verbosity'],
      ].toSorted(),
    )
  })
})

function sourceOf(name: string) {
  const file = join(import.meta.dirname, `../../providers/${name}.yaml`)
  return readSource(file, readFileSync(file, 'utf8'))
}

type RequestFields = Partial<NeutralRequest>

const f: ClientTool = { kind: 'function', name: 'f' }

function user(text: string): Message {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

function calls(...toolCalls: (Partial<ToolCallPart> & { id: string })[]): Message {
  return {
    role: 'assistant',
    parts: toolCalls.map((call) => ({ type: 'tool_call', name: 'f', arguments: '{"x":1}', ...call })),
  }
}

function results(...ids: string[]): Message {
  return {
    role: 'user',
    parts: ids.map((id) => ({ type: 'tool_result', id, parts: [{ type: 'text', text: `result of ${id}` }] })),
  }
}

function whole(request: RequestFields, model: string): NeutralRequest {
  return { model, messages: [user('Hi')], origin: { api: 'chat', body: {} }, ...request }
}

async function written(requested: RequestFields, model: string): Promise<{ body: Body; dropped: string[] }> {
  const entry = { api: 'chat', max_output_tokens: 65_536 }
  return await writeRequest(provider, whole(requested, model), { model, entry })
}

/** The body for a model of the manifest; every one is held against the published schema. */
async function sent(requested: RequestFields, model = 'gemini-3.5-flash'): Promise<Body> {
  const { body } = await written(requested, model)
  expectValid(body)
  return body
}

async function losses(requested: RequestFields, model = 'gemini-3.5-flash'): Promise<string[]> {
  return (await written(requested, model)).dropped
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
function expectAnswered(contents: Body[]): void {
  const named = (content: Body, member: string): string[] =>
    (content?.parts ?? []).flatMap((part: Body) => (part[member] ? [part[member].name] : []))
  for (const [index, content] of contents.entries()) {
    expect(named(contents[index + 1], 'functionResponse')).toEqual(named(content, 'functionCall'))
  }
}

test.skipIf(generateSchemaMissing)(
  'the strict reading of the published schema rejects what the provider rejects',
  () => {
    const valid = (part: object) => generateViolations({ contents: [{ role: 'user', parts: [part] }] }).length === 0
    expect(valid({ text: '' })).toBe(true)
    expect(valid({ text: '', unknown: 1 })).toBe(false)
    expect(valid({ thoughtSignature: 'bare' })).toBe(false)
    expect(valid({ text: '', inlineData: {} })).toBe(false)
  },
)

function expectValid(body: object): void {
  expect(generateViolations(body)).toEqual([])
}
