import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { Part } from '../../src/core/parts.ts'
import type { ClientTool, Message, NeutralRequest, ToolChoice } from '../../src/core/request.ts'
import { proveExamples } from '../../src/manifest/check/examples.ts'
import type { ChatEndpoint } from '../../src/manifest/provider.ts'
import { bareProvider, type Dialect, loadDialect } from '../../src/manifest/read/dialect.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { unsupportedByMapping } from '../../src/manifest/run/inferred-support.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { type Body, chatViolations } from './ollama-reader.ts'

const dialect = loadDialect(source('dialects/ollama')).dialect as Dialect
const { loaded, problems } = loadManifest(source('ollama'), { dialects: new Map([['ollama', dialect]]), env: {} })
if (!loaded) throw new Error(problems.map(({ message }) => message).join('; '))
const { provider } = loaded
const endpoint = provider.chat as ChatEndpoint

test('the examples of the files pass', async () => {
  expect(problems).toEqual([])
  expect(await proveExamples(bareProvider(dialect), [dialect.layer])).toEqual([])
  expect(await proveExamples(provider, loaded.layers)).toEqual([])
})

test('it needs no key, accepts any model, and is called at its own address', () => {
  expect(provider).toMatchObject({
    baseUrl: 'http://127.0.0.1:11434',
    unknownModels: 'refuse',
    models: { '*': { pricing: [{ input_price: 0, output_price: 0 }] } },
    missing: [],
    auth: { secret: '' },
    chat: { path: '/api/chat', stream: { path: '/api/chat', format: 'ndjson' } },
  })
})

describe('a request', () => {
  test('keeps the order of parts, images and audio beside the text', async () => {
    const { messages } = await sent({
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [
        {
          role: 'user',
          parts: [
            { type: 'text', text: 'Look' },
            { type: 'image', data: 'aGk=', media_type: 'image/png' },
            { type: 'text', text: 'and listen.' },
            { type: 'audio', data: 'aG8=', media_type: 'audio/wav' },
          ],
        },
        { role: 'assistant', parts: [{ type: 'audio', id: 'audio_1', transcript: 'Yes?' }] },
        { role: 'system', parts: [{ type: 'text', text: 'Now sing.' }] },
        { role: 'user', parts: [{ type: 'image', data: 'aGk=', media_type: 'image/png' }] },
      ],
    })
    expect(messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Look\n\nand listen.', images: ['aGk=', 'aG8='] },
      { role: 'assistant', content: 'Yes?' },
      { role: 'system', content: 'Now sing.' },
      { role: 'user', content: '', images: ['aGk='] },
    ])
  })

  test('writes calls with objects, results by name and id, and images of a tool directly after', async () => {
    const parts: Part[] = [
      { type: 'reasoning', summary: 'Hm.', encrypted: 'sealed', by: 'another' },
      { type: 'tool_call', id: 'a', name: 'draw', arguments: '{"what":"cat"}' },
      { type: 'tool_call', id: 'b', name: 'run', arguments: 'ls', kind: 'custom' },
      { type: 'tool_call', id: 'c', name: 'roll', arguments: '' },
    ]
    const results: Part[] = [
      { type: 'tool_result', id: 'b', parts: [{ type: 'text', text: 'denied' }], is_error: true },
      { type: 'tool_result', id: 'a', parts: [{ type: 'image', data: 'aGk=', media_type: 'image/png' }] },
    ]
    const { messages } = await sent({
      messages: [user('Go.'), { role: 'assistant', parts }, { role: 'user', parts: results }],
    })
    expect(messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: '',
        thinking: 'Hm.',
        tool_calls: [
          { id: 'a', function: { name: 'draw', arguments: { what: 'cat' } } },
          { id: 'b', function: { name: 'run', arguments: { input: 'ls' } } },
          { id: 'c', function: { name: 'roll', arguments: {} } },
        ],
      },
      { role: 'tool', content: '', tool_name: 'draw', tool_call_id: 'a' },
      { role: 'tool', content: 'Error: denied', tool_name: 'run', tool_call_id: 'b' },
      { role: 'tool', content: 'Error: no result was recorded', tool_name: 'roll', tool_call_id: 'c' },
      { role: 'user', content: 'Returned by the tool call a:', images: ['aGk='] },
    ])
  })

  test.each<[ToolChoice, string[] | undefined, string[]]>([
    [{ name: 'gone' }, ['f', 'g'], ['tool_choice']],
    [{ allowed: ['gone'], mode: 'auto' }, ['f', 'g'], ['tool_choice']],
    ['auto', ['f', 'g'], []],
    ['none', undefined, []],
    ['required', ['f', 'g'], ['tool_choice']],
    [{ name: 'g' }, ['g'], ['tool_choice']],
    [{ allowed: ['f'], mode: 'auto' }, ['f'], []],
    [{ allowed: ['f'], mode: 'required' }, ['f'], ['tool_choice']],
  ])('says the tool choice %j by the tools that are left', async (tool_choice, names, lost) => {
    const requested: RequestFields = { tools: [f, { ...f, name: 'g' }], tool_choice }
    const { tools } = await sent(requested)
    expect(tools?.map((tool: Body) => tool.function.name)).toEqual(names)
    expect(await losses(requested)).toEqual(lost)
  })

  test.each<[RequestFields, unknown]>([
    [{ reasoning: { effort: 'none' } }, false],
    [{ reasoning: { effort: 'minimal' } }, 'low'],
    [{ reasoning: { effort: 'xhigh' } }, 'max'],
    [{ reasoning: { budget: 0 } }, false],
    [{ reasoning: { budget: 1000 } }, 'low'],
    [{ reasoning: { budget: 5000 } }, 'medium'],
    [{ reasoning: { budget: 9000 } }, 'high'],
    [{ extensions: { think: true } }, true],
    [{}, undefined],
  ])('thinks by %j as %j', async (requested, think) => {
    expect((await sent(requested)).think).toBe(think)
    expect(await losses(requested)).toEqual([])
  })

  test.each<[RequestFields, unknown, string]>([
    [{ reasoning: { effort: 'low' }, extensions: { think: true } }, true, 'reasoning'],
    [{ reasoning: { budget: -1 } }, undefined, 'reasoning.budget'],
    [{ reasoning: { summary: 'auto' } }, undefined, 'reasoning.summary'],
  ])('thinks by %j as %j and reports %s', async (requested, think, lost) => {
    expect((await sent(requested)).think).toBe(think)
    expect(await losses(requested)).toEqual([lost])
  })

  test('answers in JSON, by the schema itself', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    expect((await sent({ response_format: { type: 'json_schema', name: 'a', schema } })).format).toEqual(schema)
    expect((await sent({ response_format: { type: 'json' } })).format).toBe('json')
    expect((await sent({ response_format: { type: 'text' } })).format).toBeUndefined()
    const strict: RequestFields = {
      response_format: { type: 'json_schema', name: 'a', schema, strict: true, description: 'd' },
    }
    expect(await losses(strict)).toEqual(['response_format.description'])
  })

  test('replaces audio by its transcript', async () => {
    const audio: Part = { type: 'audio', data: 'aG8=', media_type: 'audio/wav', transcript: 'Yes?' }
    const requested: RequestFields = {
      messages: [user('Hi'), { role: 'assistant', parts: [audio] }, user('On.')],
    }
    expect((await sent(requested)).messages[1]).toEqual({ role: 'assistant', content: 'Yes?' })
    expect(await losses(requested)).toEqual([])
  })

  test('carries every knob there is a counterpart for, and its own by their names', async () => {
    const requested: RequestFields = {
      max_output_tokens: 100,
      temperature: 0,
      top_p: 0.5,
      top_k: 3,
      seed: 0,
      stop: ['a'],
      presence_penalty: -1,
      frequency_penalty: 1.5,
      logprobs: { top: 2 },
      stream: true,
      extensions: {
        options: { temperature: 1, mirostat: 2 },
        num_ctx: 32_768,
        min_p: 0.1,
        use_mmap: false,
        keep_alive: -1,
        truncate: false,
        shift: false,
        top_a: 2,
      },
    }
    expect(await sent(requested)).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
      logprobs: true,
      top_logprobs: 2,
      keep_alive: -1,
      truncate: false,
      shift: false,
      options: {
        mirostat: 2,
        num_ctx: 32_768,
        min_p: 0.1,
        use_mmap: false,
        num_predict: 100,
        temperature: 0,
        top_p: 0.5,
        top_k: 3,
        seed: 0,
        stop: ['a'],
        presence_penalty: -1,
        frequency_penalty: 1.5,
      },
    })
    expect(await losses(requested)).toEqual(['extensions.top_a'])
    expect(await sent({})).not.toHaveProperty('options')
  })

  test('reports requested fields that it cannot carry, and no others', async () => {
    const requested: RequestFields = {
      messages: [
        {
          role: 'user',
          name: 'Ada',
          parts: [
            { type: 'image', data: 'aGk=', media_type: 'image/png', detail: 'high', cache: {} },
            { type: 'image', url: 'https://example.com/a.png' },
            { type: 'file', file_id: 'file_1' },
            { type: 'video', url: 'https://example.com/a.mp4' },
          ],
        },
        {
          role: 'assistant',
          parts: [
            { type: 'text', text: 'Yes.', citations: [{ url: 'https://example.com' }] },
            { type: 'reasoning', encrypted: 'sealed', by: 'another' },
            { type: 'search', query: 'x' },
            { type: 'audio', id: 'audio_1' },
            { type: 'image', data: 'aGk=', media_type: 'image/png' },
            { type: 'opaque', body: {}, by: 'another' },
          ],
        },
        user('On.'),
      ],
      tools: [
        { kind: 'custom', name: 'c' },
        { kind: 'code_interpreter', by: 'responses', definition: { type: 'code_interpreter' } },
        { ...f, strict: true, cache: {} },
      ],
      tool_choice: 'required',
      parallel_tool_calls: false,
      web_search: {},
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
      audio: {},
      modalities: ['text', 'audio'],
      service_tier: 'flex',
      reasoning: { effort: 'high', summary: 'auto' },
      extensions: { top_a: 1 },
    }
    expect((await losses(requested)).toSorted()).toEqual(
      [
        ...['audio', 'extensions.top_a', 'logit_bias', 'messages.name', 'modalities', 'moderation'],
        ...['n', 'parallel_tool_calls', 'parts.audio', 'parts.cache', 'parts.citations', 'parts.detail', 'parts.file'],
        ...['parts.image', 'parts.opaque', 'parts.reasoning', 'parts.search', 'parts.url', 'parts.video', 'prediction'],
        ...['reasoning.summary', 'safety_identifier', 'service_tier', 'store', 'tool_choice', 'tools.cache'],
        ...['tools.code_interpreter', 'tools.strict', 'user', 'verbosity', 'web_search'],
      ].toSorted(),
    )
    expect(await losses({ n: 1, store: false, parallel_tool_calls: true, modalities: ['text'], tools: [f] })).toEqual(
      [],
    )
  })

  test('takes everything else', () => {
    expect(unsupportedByMapping(endpoint.request.support).toSorted()).toEqual(
      [
        ...['audio', 'cache', 'logit_bias', 'metadata', 'modalities', 'moderation', 'n', 'parallel_tool_calls'],
        ...['parts.file', 'parts.opaque', 'parts.search', 'parts.video', 'prediction', 'safety_identifier'],
        ...['service_tier', 'store', 'user', 'verbosity', 'web_search'],
      ].toSorted(),
    )
  })
})

describe.skipIf(recordingsMissing)('every recorded request of the OpenAI format', () => {
  for (const { case: name, request } of recordings('openai-chat')) {
    test.skipIf(!request?.body)(`${name} becomes a valid body`, async () => {
      const { messages } = await sent(chat.read(request?.body))
      expectAnswered(messages)
    })
  }
})

/** An assistant message with calls is directly followed by as many results, by the same names in the same order. */
function expectAnswered(messages: Body[]): void {
  const requested = messages.flatMap(({ tool_calls = [] }, index) =>
    tool_calls.map(({ id, function: { name } }: Body, call: number) => [index + 1 + call, id, name]),
  )
  const answered = messages.flatMap(({ role, tool_call_id, tool_name }, index) =>
    role === 'tool' ? [[index, tool_call_id, tool_name]] : [],
  )
  expect(answered).toEqual(requested)
}

type RequestFields = Partial<NeutralRequest>

const f: ClientTool = { kind: 'function', name: 'f' }

function source(name: string) {
  const path = join(import.meta.dirname, `../../providers/${name}.yaml`)
  return readSource(`providers/${name}.yaml`, readFileSync(path, 'utf8'))
}

function user(text: string): Message {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

async function written(requested: RequestFields): Promise<{ body: Body; dropped: string[] }> {
  const request: NeutralRequest = {
    messages: [user('Hi')],
    origin: { api: 'chat', body: {} },
    ...requested,
    model: 'm',
  }
  return await writeRequest(provider, request, { model: 'm' })
}

/** The body for a model; every one is held against the documented form. */
async function sent(requested: RequestFields): Promise<Body> {
  const { body } = await written(requested)
  expect(chatViolations(body)).toEqual([])
  return body
}

async function losses(requested: RequestFields): Promise<string[]> {
  return (await written(requested)).dropped
}
