import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { Part, ToolCallPart } from '../../src/core/parts.ts'
import type { ClientTool, Message, NeutralRequest, ToolChoice } from '../../src/core/request.ts'
import { proveExamples } from '../../src/manifest/check/examples.ts'
import type { ChatEndpoint } from '../../src/manifest/provider.ts'
import { bareProvider, type Dialect, loadDialect } from '../../src/manifest/read/dialect.ts'
import { loadManifest } from '../../src/manifest/read/manifest.ts'
import { readSource } from '../../src/manifest/read/source.ts'
import { unsupportedByMapping } from '../../src/manifest/run/inferred-support.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { type Body, chatSchemaMissing, chatViolations } from './cohere-v2-reader.ts'

const dialect = loadDialect(source('dialects/cohere-v2')).dialect as Dialect
const { loaded, problems } = loadManifest(source('cohere'), {
  dialects: new Map([['cohere-v2', dialect]]),
  env: { COHERE_API_KEY: 'key' },
})
if (!loaded) throw new Error(problems.map(({ message }) => message).join('; '))
const { provider } = loaded
const endpoint = provider.chat as ChatEndpoint

const plain = 'command-a-03-2025'
const reasoner = 'command-a-reasoning-08-2025'
const older = 'command-r-08-2024'

test('the examples of the files pass', async () => {
  expect(problems).toEqual([])
  expect(await proveExamples(bareProvider(dialect), [dialect.layer])).toEqual([])
  expect(await proveExamples(provider, loaded.layers)).toEqual([])
})

describe('a request', () => {
  test('keeps instructions at their position, and drops empty texts', async () => {
    const { messages } = await sent({
      system: [
        { type: 'text', text: 'Be brief.' },
        { type: 'text', text: 'Be kind.' },
      ],
      messages: [
        user('Hi'),
        { role: 'assistant', parts: [{ type: 'text', text: 'Yes?' }] },
        { role: 'system', parts: [{ type: 'text', text: 'Now sing.' }] },
        {
          role: 'user',
          parts: [
            { type: 'text', text: 'Go.' },
            { type: 'text', text: ' ' },
          ],
        },
      ],
    })
    expect(messages).toEqual([
      { role: 'system', content: 'Be brief.\n\nBe kind.' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Yes?' },
      { role: 'system', content: 'Now sing.' },
      { role: 'user', content: 'Go.' },
    ])
  })

  test('shows images by address or inline', async () => {
    const { messages } = await sent({
      messages: [
        {
          role: 'user',
          parts: [
            { type: 'image', url: 'https://example.com/a.png', detail: 'low' },
            { type: 'image', data: 'aGk=', media_type: 'image/webp', detail: 'original' },
          ],
        },
      ],
    })
    expect(messages[0].content).toEqual([
      { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
      { type: 'image_url', image_url: { url: 'data:image/webp;base64,aGk=' } },
    ])
  })

  test('gives thoughts back to models that think, and text before calls as their plan to the others', async () => {
    const parts: Part[] = [
      { type: 'reasoning', text: 'Hm.', by: 'another' },
      { type: 'reasoning', encrypted: 'sealed', by: 'another' },
      { type: 'text', text: 'I will look.' },
      { type: 'tool_call', id: 'a', name: 'f', arguments: '{"n": 1.0}' },
    ]
    const requested: RequestFields = { messages: [user('Go.'), { role: 'assistant', parts }, results('a')], tools: [f] }
    const calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"n": 1.0}' } }]
    expect((await sent(requested)).messages[1]).toEqual({
      role: 'assistant',
      tool_plan: 'I will look.',
      tool_calls: calls,
    })
    expect((await sent(requested, reasoner)).messages[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.' },
        { type: 'text', text: 'I will look.' },
      ],
      tool_calls: calls,
    })
    expect(await losses(requested)).toEqual(['parts.reasoning'])
    expect(await losses(requested, reasoner)).toEqual(['parts.reasoning'])
    const open: RequestFields = {
      messages: [user('Go.'), { role: 'assistant', parts: parts.slice(0, 1) }, user('On.')],
    }
    expect(await losses(open, reasoner)).toEqual([])
  })

  test('puts each result directly after its call, whatever was between, and images after the results', async () => {
    const image = { type: 'image' as const, data: 'aGk=', media_type: 'image/png' }
    const { messages } = await sent({
      messages: [
        user('Go.'),
        calls({ id: 'a' }, { id: 'b', arguments: 'not JSON' }, { id: 'c', arguments: '' }),
        {
          role: 'user',
          parts: [
            { type: 'text', text: 'And?' },
            { type: 'tool_result', id: 'b', parts: [image] },
            { type: 'tool_result', id: 'a', parts: [{ type: 'text', text: 'no' }], is_error: true },
          ],
        },
      ],
    })
    expect(messages.slice(1)).toEqual([
      {
        role: 'assistant',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
          { id: 'b', type: 'function', function: { name: 'f', arguments: '{"input":"not JSON"}' } },
          { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'Error: no' },
      { role: 'tool', tool_call_id: 'b', content: 'The result follows in the next message.' },
      { role: 'tool', tool_call_id: 'c', content: 'Error: no result was recorded' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Returned by the tool call b:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
        ],
      },
      { role: 'user', content: 'And?' },
    ])
  })

  test.each<[ToolChoice, string[] | undefined, string | undefined]>([
    [{ name: 'gone' }, ['f', 'g'], undefined],
    [{ allowed: ['gone'], mode: 'auto' }, ['f', 'g'], undefined],
    ['auto', ['f', 'g'], undefined],
    ['none', ['f', 'g'], 'NONE'],
    ['required', ['f', 'g'], 'REQUIRED'],
    [{ name: 'g' }, ['g'], 'REQUIRED'],
    [{ allowed: ['f'], mode: 'auto' }, ['f'], undefined],
    [{ allowed: ['f'], mode: 'required' }, ['f'], 'REQUIRED'],
  ])('says the tool choice %j by the tools that are left and a word', async (tool_choice, names, word) => {
    const requested: RequestFields = { tools: [f, { ...f, name: 'g' }], tool_choice }
    const body = await sent(requested)
    expect(body.tools?.map((tool: Body) => tool.function.name)).toEqual(names)
    expect(body.tool_choice).toBe(word)
    const isGone = JSON.stringify(tool_choice).includes('gone')
    expect(await losses(requested)).toEqual(isGone ? ['tool_choice'] : [])
    const before = await sent(requested, older)
    expect(before.tool_choice).toBeUndefined()
    expect(before.tools === undefined).toBe(tool_choice === 'none')
    expect(await losses(requested, older)).toEqual(word === 'REQUIRED' || isGone ? ['tool_choice'] : [])
  })

  test('is strict where every tool is and requires something', async () => {
    const parameters = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
    const strict = async (...tools: Partial<ClientTool>[]) => {
      const requested: RequestFields = { tools: tools.map((tool) => ({ ...f, ...tool })) }
      return [(await sent(requested)).strict_tools, await losses(requested)]
    }
    expect(await strict({ strict: true, parameters })).toEqual([true, []])
    expect(await strict({ strict: false, parameters })).toEqual([undefined, []])
    expect(await strict({ strict: true, parameters }, { name: 'g', parameters })).toEqual([undefined, ['tools.strict']])
    expect(await strict({ strict: true })).toEqual([undefined, ['tools.strict']])
  })

  test('replies in JSON, requested in the instructions beside tools and documents', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
    const requested: RequestFields = { response_format: { type: 'json_schema', name: 'a', schema } }
    expect((await sent(requested)).response_format).toEqual({ type: 'json_object', json_schema: schema })
    expect((await sent({ response_format: { type: 'json' } })).response_format).toEqual({ type: 'json_object' })
    expect((await sent({ ...requested, tools: [f], tool_choice: 'none' })).tools).toBeUndefined()
    for (const beside of [{ tools: [f] }, { extensions: { documents: ['It is 3 degrees.'] } }]) {
      const { response_format, messages } = await sent({ ...requested, ...beside })
      expect(response_format).toBeUndefined()
      expect(messages[0]).toMatchObject({ role: 'system', content: expect.stringContaining(JSON.stringify(schema)) })
    }
  })

  test.each<[NonNullable<NeutralRequest['reasoning']>, { type: string; token_budget?: number }]>([
    [{ effort: 'none' }, { type: 'disabled' }],
    [{ budget: 0 }, { type: 'disabled' }],
    [{ effort: 'minimal' }, { type: 'enabled', token_budget: 512 }],
    [{ effort: 'medium' }, { type: 'enabled', token_budget: 8192 }],
    [{ effort: 'high' }, { type: 'enabled' }],
    [{ budget: 3000 }, { type: 'enabled', token_budget: 3000 }],
  ])('reasons by %j as %j', async (reasoning, thinking) => {
    expect((await sent({ reasoning }, reasoner)).thinking).toEqual(thinking)
    expect(await losses({ reasoning }, reasoner)).toEqual([])
    expect((await sent({ reasoning })).thinking).toBeUndefined()
    expect(await losses({ reasoning })).toEqual(thinking.type === 'enabled' ? ['reasoning'] : [])
  })

  test('carries every knob there is a counterpart for, the nearest value where a limit is exceeded', async () => {
    const documents = [{ id: 'd', data: { text: 'It is 3 degrees.' } }]
    const requested: RequestFields = {
      max_output_tokens: 100_000,
      temperature: 0,
      top_p: 1,
      top_k: 900,
      seed: 7,
      stop: ['a', 'b', 'c', 'd', 'e', 'f'],
      presence_penalty: -1,
      frequency_penalty: 1.5,
      logprobs: { top: 0 },
      stream: true,
      extensions: { documents, citation_options: { mode: 'FAST' }, safety_mode: 'OFF', priority: 1, top_a: 2 },
    }
    expect(await sent(requested)).toEqual({
      model: plain,
      messages: [{ role: 'user', content: 'Hi' }],
      max_tokens: 8_000,
      temperature: 0,
      p: 0.99,
      k: 500,
      seed: 7,
      stop_sequences: ['a', 'b', 'c', 'd', 'e'],
      presence_penalty: 0,
      frequency_penalty: 1,
      logprobs: true,
      stream: true,
      documents,
      citation_options: { mode: 'FAST' },
      safety_mode: 'OFF',
      priority: 1,
    })
    expect(await losses(requested)).toEqual([
      'extensions.top_a',
      'stop',
      'top_k',
      'frequency_penalty',
      'presence_penalty',
    ])
    const strict: RequestFields = { tools: [{ ...f, strict: true }], extensions: { strict_tools: true } }
    expect(await losses(strict)).toEqual([])
  })

  test('reports requested fields that it cannot carry, and no others', async () => {
    const requested: RequestFields = {
      messages: [
        {
          role: 'user',
          name: 'Ada',
          parts: [
            { type: 'image', url: 'https://example.com/a.png', detail: 'original', cache: {} },
            { type: 'file', file_id: 'file_1' },
            { type: 'video', url: 'https://example.com/a.mp4' },
            { type: 'audio', data: 'aGk=', media_type: 'audio/wav' },
          ],
        },
        {
          role: 'assistant',
          parts: [
            { type: 'text', text: 'Yes.', citations: [{ url: 'https://example.com' }] },
            { type: 'reasoning', text: 'Hm.' },
            { type: 'search', query: 'x' },
            { type: 'image', data: 'aGk=', media_type: 'image/png' },
          ],
        },
        user('On.'),
      ],
      tools: [
        { kind: 'custom', name: 'c' },
        { kind: 'mcp', by: 'messages', definition: { type: 'mcp' } },
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
      logprobs: { top: 2 },
      stop: ['a', 'b', 'c', 'd', 'e', 'f'],
      top_k: 501,
      frequency_penalty: 2,
      presence_penalty: -2,
      reasoning: { effort: 'high', summary: 'auto' },
      response_format: { type: 'json_schema', name: 'a', description: 'An answer.' },
      extensions: { top_a: 1 },
    }
    expect((await losses(requested, older)).toSorted()).toEqual(
      [
        ...['audio', 'extensions.top_a', 'frequency_penalty', 'logit_bias', 'logprobs.top', 'messages.name'],
        ...['modalities', 'moderation', 'n', 'parallel_tool_calls', 'parts.audio', 'parts.cache'],
        ...['parts.citations', 'parts.detail', 'parts.file', 'parts.image', 'parts.reasoning', 'parts.search'],
        ...['parts.video', 'prediction', 'presence_penalty', 'reasoning', 'response_format.description'],
        ...['safety_identifier', 'service_tier', 'stop', 'store', 'tool_choice', 'tools.cache'],
        ...['tools.mcp', 'tools.strict', 'top_k', 'user', 'verbosity', 'web_search'],
      ].toSorted(),
    )
    expect(await losses({ reasoning: { effort: 'high', summary: 'auto' } }, reasoner)).toEqual(['reasoning.summary'])
    const modest: RequestFields = {
      n: 1,
      store: false,
      parallel_tool_calls: true,
      service_tier: 'standard_only',
      modalities: ['text'],
    }
    expect(await losses({ ...modest, tools: [f], top_k: 500, frequency_penalty: 1, presence_penalty: 0 })).toEqual([])
    expect(await losses({ tool_choice: 'required' })).toEqual(['tool_choice'])
  })

  test('takes everything else', () => {
    expect(unsupportedByMapping(endpoint.request.support).toSorted()).toEqual(
      [
        ...['audio', 'cache', 'logit_bias', 'metadata', 'modalities', 'moderation', 'n', 'parallel_tool_calls'],
        ...['parts.audio', 'parts.file', 'parts.search', 'parts.video', 'prediction', 'safety_identifier'],
        ...['service_tier', 'store', 'user', 'verbosity', 'web_search'],
      ].toSorted(),
    )
  })
})

test.skipIf(chatSchemaMissing)('the strict reading of the published schema rejects what the provider rejects', () => {
  const valid = (body: object) =>
    chatViolations({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], stream: false, ...body }).length === 0
  expect(valid({})).toBe(true)
  expect(valid({ unknown: 1 })).toBe(false)
  expect(valid({ tool_choice: 'REQUIRED' })).toBe(false)
  expect(valid({ p: 1 })).toBe(false)
  expect(valid({ messages: [{ role: 'user', content: [{ type: 'file' }] }] })).toBe(false)
})

describe.skipIf(recordingsMissing)('every recorded request of the OpenAI format', () => {
  for (const { case: name, request } of recordings('openai-chat')) {
    test.skipIf(!request?.body)(`${name} becomes a valid body`, async () => {
      const neutral = chat.read(request?.body)
      for (const model of [plain, reasoner, older]) {
        const { messages } = await sent(neutral, model)
        expect(messages.length).toBeGreaterThan(0)
        expectAnswered(messages)
      }
    })
  }
})

/** An assistant message with calls is directly followed by as many results, by the same ids in the same order. */
function expectAnswered(messages: Body[]): void {
  const requested = messages.flatMap(({ tool_calls = [] }, index) =>
    tool_calls.map(({ id }: Body, call: number) => [index + 1 + call, id]),
  )
  const answered = messages.flatMap(({ role, tool_call_id }, index) => (role === 'tool' ? [[index, tool_call_id]] : []))
  expect(answered).toEqual(requested)
}

type RequestFields = Partial<NeutralRequest>

const f: ClientTool = { kind: 'function', name: 'f' }

function source(name: string) {
  return readSource(
    `providers/${name}.yaml`,
    readFileSync(join(import.meta.dirname, `../../providers/${name}.yaml`), 'utf8'),
  )
}

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

async function written(requested: RequestFields, model: string): Promise<{ body: Body; dropped: string[] }> {
  const request: NeutralRequest = { messages: [user('Hi')], origin: { api: 'chat', body: {} }, ...requested, model }
  return await writeRequest(provider, request, { model, entry: { api: 'chat', max_output_tokens: 8_000 } })
}

/** The body for a model of the manifest; every one is held against the published schema. */
async function sent(requested: RequestFields, model = plain): Promise<Body> {
  const { body } = await written(requested, model)
  expect(chatViolations(body)).toEqual([])
  return body
}

async function losses(requested: RequestFields, model = plain): Promise<string[]> {
  return (await written(requested, model)).dropped
}
