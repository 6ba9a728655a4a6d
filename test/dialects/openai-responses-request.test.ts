import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/face.ts'
import { isObject, type JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Message, NeutralRequest, TargetFacts } from '../../src/core/request.ts'
import { declaredLosses, lostExtensions } from '../../src/manifest/losses.ts'
import type { ChatEndpoint } from '../../src/manifest/provider.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { benchDialect, traitsOf } from './replay.ts'
import { publishedFields, responsesSchemaMissing, responsesViolations } from './responses-schema.ts'

const bench = benchDialect('openai-responses')

/** One model of each family, with the facts that its manifest declares. */
function modelFacts(model: string): Partial<TargetFacts> {
  return { maker: 'openai', traits: traitsOf('openai-responses', model) }
}

function asking(more: Partial<NeutralRequest> = {}): NeutralRequest {
  const messages: Message[] = [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
  return { model: 'm', messages, origin: { api: 'chat', body: {} }, ...more }
}

const sent = (more: Partial<NeutralRequest>, model = 'gpt-5.4') => bench.body(asking(more), modelFacts(model))

/** Fields that are reported as lost for this request, in the names of the neutral form. */
const lost = (more: Partial<NeutralRequest>, model = 'gpt-5.4') => lostOf(asking(more), model)

async function lostOf(request: NeutralRequest, model: string): Promise<string[]> {
  const chat = bench as unknown as ChatEndpoint
  const met = await declaredLosses(chat, request, (when) => when.run({ ...request, target: modelFacts(model) }))
  return [...met.filter((field) => field !== 'extensions'), ...lostExtensions(chat, met, request)]
}

/** The input for a conversation. */
async function input(messages: Message[], model?: string): Promise<JsonObject[]> {
  return (await sent({ messages }, model)).input as JsonObject[]
}

const user = (...parts: Part[]): Message => ({ role: 'user', parts })
const assistant = (...parts: Part[]): Message => ({ role: 'assistant', parts })
const said = (text: string): Part => ({ type: 'text', text })
const sealed = (id: string, by = 'openai'): Part => ({
  type: 'reasoning',
  id,
  summary: 'S',
  encrypted: `${id} enc`,
  by,
})
const thought = (id: string) => ({
  type: 'reasoning',
  id,
  summary: [{ type: 'summary_text', text: 'S' }],
  encrypted_content: `${id} enc`,
})
const called = (id: string, more: object = {}): Part => ({ type: 'tool_call', id, name: 'f', arguments: '{}', ...more })
const answered = (id: string, ...parts: Part[]): Part => ({ type: 'tool_result', id, parts })

describe('reasoning', () => {
  test('is sealed for the next turn, and nothing is kept at the provider', async () => {
    expect(await sent({})).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
    expect(await sent({ store: true }, 'gpt-4.1')).toMatchObject({ store: true })
    expect((await sent({}, 'gpt-4.1')).include).toBeUndefined()
  })

  test('goes back before its call, in a tool loop with results and more thoughts', async () => {
    const messages = [
      user(said('Go')),
      assistant(sealed('rs_1'), called('a'), called('b')),
      user(answered('b', said('B')), answered('a', said('A'))),
      assistant(sealed('rs_2'), called('c')),
      user(answered('c', said('C'))),
    ]
    const call = (call_id: string) => ({ type: 'function_call', call_id, name: 'f', arguments: '{}' })
    const result = (call_id: string, output: string) => ({ type: 'function_call_output', call_id, output })
    expect(await input(messages)).toEqual([
      { role: 'user', content: 'Go' },
      thought('rs_1'),
      call('a'),
      call('b'),
      result('a', 'A'),
      result('b', 'B'),
      thought('rs_2'),
      call('c'),
      result('c', 'C'),
    ])
    expect(await lost({ messages })).toEqual([])
  })

  test('of another maker, or without its seal, stays away and is reported', async () => {
    const messages = [
      user(said('Go')),
      assistant(sealed('rs_1', 'someone'), { type: 'reasoning', id: 'rs_2', summary: 'S', by: 'openai' }, said('so')),
    ]
    expect(await input(messages)).toEqual([
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'so' },
    ])
    expect(await lost({ messages })).toEqual(['parts.reasoning'])
  })

  test('in plain words goes back to the server that told it', async () => {
    const messages = [user(said('Go')), assistant({ type: 'reasoning', text: 'hm', by: 'openai' }, said('so'))]
    const [, item] = await input(messages)
    expect(item).toMatchObject({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] })
    expect(item?.id).toMatch(/^rs_[0-9a-f]{48}$/)
  })

  test('that nothing came of is left out, unless the assistant goes on', async () => {
    const cut = assistant(said('so'), sealed('rs_1'))
    const kinds = async (...messages: Message[]) =>
      (await input(messages)).map(({ type, role }) => (type === 'reasoning' ? type : role))
    expect(await kinds(user(said('Go')), cut, user(said('On')))).toEqual(['user', 'assistant', 'user'])
    expect(await kinds(user(said('Go')), cut, assistant(said('then')))).toEqual([
      'user',
      'assistant',
      'reasoning',
      'assistant',
    ])
  })

  test('is asked for in a level that the family knows', async () => {
    const level = async (model: string, reasoning: NonNullable<NeutralRequest['reasoning']>) =>
      (await sent({ reasoning }, model)).reasoning
    expect(await level('gpt-5', { effort: 'none' })).toEqual({ effort: 'minimal' })
    expect(await level('gpt-5', { effort: 'max' })).toEqual({ effort: 'high' })
    expect(await level('gpt-5.4', { effort: 'minimal' })).toEqual({ effort: 'low' })
    expect(await level('gpt-5.4', { effort: 'none' })).toEqual({ effort: 'none' })
    expect(await level('gpt-5.4', { budget: 20_000 })).toEqual({ effort: 'high' })
    expect(await level('gpt-5.4-pro', { effort: 'low' })).toEqual({ effort: 'medium' })
    expect(await level('gpt-6-sol', { effort: 'max', summary: 'detailed' })).toEqual({
      effort: 'max',
      summary: 'detailed',
    })
    expect(await level('o3', { budget: 0, summary: 'summarized' })).toEqual({ effort: 'low', summary: 'auto' })
    expect(await level('gpt-4.1', { effort: 'high' })).toBeUndefined()
    expect(await lost({ reasoning: { effort: 'high' } }, 'gpt-4.1')).toEqual(['reasoning'])
    expect(await lost({ reasoning: { effort: 'none' } }, 'gpt-4.1')).toEqual([])
  })
})

describe('what an assistant said', () => {
  test('is one message again when it was cut into pieces, and marked messages stand alone', async () => {
    const messages = [
      user(said('Go')),
      assistant(
        said('a'),
        { type: 'text', text: 'b', citations: [{ url: 'https://a' }] },
        { type: 'reasoning', text: 'foreign', by: 'someone' },
        said('c'),
        { type: 'text', text: 'd', signature: 'commentary', by: 'openai' },
        { type: 'text', text: 'e', signature: 'seal', by: 'someone' },
        { type: 'audio', id: 'audio_1', transcript: 'f' },
        { type: 'refusal', text: 'no' },
      ),
    ]
    const [, ...items] = await input(messages)
    expect(items).toMatchObject([
      { role: 'assistant', content: 'abc' },
      { role: 'assistant', content: 'd', phase: 'commentary' },
      { role: 'assistant', content: 'ef' },
      { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
    ])
    expect(items).toHaveLength(4)
  })

  test('goes back whole: searches, blocks and images of its maker', async () => {
    const body = { type: 'compaction', id: 'cmp_1', encrypted_content: 'x' }
    const action = { type: 'search', query: 'q', sources: [{ type: 'url', url: 'https://a' }] }
    const by = (maker: string) => [
      user(said('Go')),
      assistant(
        { type: 'search', id: 'ws_1', query: 'q', status: 'completed', results: action, by: maker },
        { type: 'search', id: 'ws_2', query: 'q', by: maker },
        { type: 'opaque', body, by: maker },
        { type: 'image', id: 'ig_1', data: 'AA==', media_type: 'image/png' },
        { type: 'image', data: 'AA==', media_type: 'image/png' },
      ),
    ]
    const images = [
      { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AA==' },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'The assistant showed this image:' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'auto' },
        ],
      },
    ]
    expect((await input(by('openai'))).slice(1)).toEqual([
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action },
      { type: 'web_search_call', id: 'ws_2', status: 'completed', action: { type: 'search', query: 'q' } },
      body,
      ...images,
    ])
    expect((await input(by('someone'))).slice(1)).toEqual(images)
    expect(await lost({ messages: by('someone') })).toEqual(['parts.search'])
  })
})

describe('what is shown', () => {
  const contents = async (...parts: Part[]) => (await input([user(...parts)], 'gpt-5.6'))[0]?.content

  test('is text, images and files, as address, bytes or id, with marks for the cache', async () => {
    expect(
      await contents(
        { type: 'text', text: 'look', cache: {} },
        { type: 'image', url: 'https://example.com/a.png', detail: 'high' },
        { type: 'image', file_id: 'file_1' },
        { type: 'file', data: 'AA==', media_type: 'image/jpeg' },
        { type: 'file', data: 'AA==', media_type: 'application/pdf', filename: 'a.pdf', detail: 'low' },
        { type: 'file', data: 'AA==', media_type: 'text/markdown' },
        { type: 'file', url: 'https://example.com/b.pdf', filename: 'b.pdf' },
        { type: 'file', file_id: 'file_2' },
      ),
    ).toEqual([
      { type: 'input_text', text: 'look', prompt_cache_breakpoint: { mode: 'explicit' } },
      { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'high' },
      { type: 'input_image', file_id: 'file_1', detail: 'auto' },
      { type: 'input_image', image_url: 'data:image/jpeg;base64,AA==', detail: 'auto' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==', detail: 'low' },
      { type: 'input_file', filename: 'document.md', file_data: 'data:text/markdown;base64,AA==' },
      { type: 'input_file', file_url: 'https://example.com/b.pdf' },
      { type: 'input_file', file_id: 'file_2' },
    ])
  })

  test('sounds and videos are left out and reported', async () => {
    const parts: Part[] = [said('a'), { type: 'audio', data: 'AA==' }, { type: 'video', url: 'https://a/b.mp4' }]
    expect(await contents(...parts)).toBe('a')
    expect(await lost({ messages: [user(...parts)] })).toEqual(['parts.video', 'parts.audio'])
  })

  test('instructions lead, and keep their place in the middle', async () => {
    const system = [said('A'), said('B')]
    const messages: Message[] = [user(said('Hi')), { role: 'system', parts: [said('C')] }, user(said('Ho'))]
    expect(await sent({ system, messages })).toMatchObject({
      instructions: 'A\n\nB',
      input: [{ role: 'user' }, { role: 'developer', content: 'C' }, { role: 'user' }],
    })
    expect(await sent({ messages }, 'gpt-4.1')).toMatchObject({ input: [{}, { role: 'system' }, {}] })
  })

  test('instructions with a mark for the cache are an item, where marks are known', async () => {
    const system: Part[] = [said('A'), { type: 'text', text: 'B', cache: {} }]
    const body = await sent({ system }, 'gpt-5.6')
    expect(body.instructions).toBeUndefined()
    expect((body.input as JsonObject[])[0]).toEqual({
      role: 'developer',
      content: [
        { type: 'input_text', text: 'A' },
        { type: 'input_text', text: 'B', prompt_cache_breakpoint: { mode: 'explicit' } },
      ],
    })
    expect(await sent({ system }, 'gpt-4.1')).toMatchObject({ instructions: 'A\n\nB' })
    expect(await lost({ system }, 'gpt-5.6')).not.toContain('parts.cache')
  })
})

describe('tools', () => {
  const tools: NeutralRequest['tools'] = [
    { kind: 'function', name: 'f', description: 'F', parameters: { type: 'object' }, strict: true },
    { kind: 'function', name: 'g' },
    { kind: 'custom', name: 'c', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'd' } } },
  ]

  test('are flat, and always say whether they are strict', async () => {
    expect((await sent({ tools })).tools).toEqual([
      { type: 'function', name: 'f', description: 'F', parameters: { type: 'object' }, strict: true },
      {
        type: 'function',
        name: 'g',
        parameters: { type: 'object', properties: {}, additionalProperties: false },
        strict: false,
      },
      { type: 'custom', name: 'c', format: { type: 'grammar', syntax: 'lark', definition: 'd' } },
    ])
    const format = { type: 'grammar', syntax: 'regex', definition: 'd' }
    expect((await sent({ tools: [{ kind: 'custom', name: 'c', format }] })).tools).toMatchObject([{ format }])
  })

  test('have a form for every choice', async () => {
    const choice = async (tool_choice: NeutralRequest['tool_choice']) =>
      (await sent({ tools, ...(tool_choice && { tool_choice }) })).tool_choice
    expect(await choice('auto')).toBe('auto')
    expect(await choice('none')).toBe('none')
    expect(await choice('required')).toBe('required')
    expect(await choice({ name: 'f' })).toEqual({ type: 'function', name: 'f' })
    expect(await choice({ name: 'c' })).toEqual({ type: 'custom', name: 'c' })
    expect(await choice({ allowed: ['f', 'c'], mode: 'required' })).toEqual({
      type: 'allowed_tools',
      mode: 'required',
      tools: [
        { type: 'function', name: 'f' },
        { type: 'custom', name: 'c' },
      ],
    })
    expect(await choice(undefined)).toBeUndefined()
    const without = await sent({ tool_choice: 'required', parallel_tool_calls: false })
    expect([without.tool_choice, without.parallel_tool_calls]).toEqual([undefined, undefined])
  })

  test('are called and answered in both kinds, with images, and errors say so', async () => {
    const image: Part = { type: 'image', data: 'AA==', media_type: 'image/png' }
    const failed: Part = { type: 'tool_result', id: 'b', parts: [said('no')], is_error: true }
    const shown: Part = { type: 'tool_result', id: 'c', parts: [image], is_error: true }
    const long = 'x'.repeat(65)
    const items = await input([
      user(said('Go')),
      assistant(called('a', { kind: 'custom', arguments: 'free' }), called('b', { arguments: '' }), called('c')),
      user(answered('a', said('A'), said('AA')), failed, shown, said('and')),
      assistant(called(long)),
      user(answered(long)),
    ])
    expect(items.slice(1, 8)).toEqual([
      { type: 'custom_tool_call', call_id: 'a', name: 'f', input: 'free' },
      { type: 'function_call', call_id: 'b', name: 'f', arguments: '{}' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'custom_tool_call_output', call_id: 'a', output: 'A\nAA' },
      { type: 'function_call_output', call_id: 'b', output: 'Error: no' },
      {
        type: 'function_call_output',
        call_id: 'c',
        output: [
          { type: 'input_text', text: 'Error:' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'auto' },
        ],
      },
      { role: 'user', content: 'and' },
    ])
    expect(items[8]?.call_id).toMatch(/^[0-9a-f]{24}$/)
    expect(items[9]).toEqual({ type: 'function_call_output', call_id: items[8]?.call_id, output: '' })
  })

  test('of the provider pass as the client wrote them', async () => {
    const native = { type: 'code_interpreter', container: { type: 'auto' } }
    const extensions = { tools: [native], tool_choice: { type: 'code_interpreter' } }
    expect(await sent({ extensions })).toMatchObject({ tools: [native], tool_choice: { type: 'code_interpreter' } })
  })
})

test('a search has its words here, and what is not taken is reported', async () => {
  const search: Partial<NeutralRequest> = {
    web_search: {
      max_uses: 3,
      allowed_domains: ['https://example.com'],
      blocked_domains: ['example.org'],
      user_location: { city: 'Graz', country: 'AT' },
      context_size: 'low',
    },
  }
  expect(await sent(search)).toMatchObject({
    tools: [
      {
        type: 'web_search',
        search_context_size: 'low',
        user_location: { type: 'approximate', city: 'Graz', country: 'AT' },
        filters: { allowed_domains: ['example.com'] },
      },
    ],
    max_tool_calls: 3,
  })
  expect(await lost(search)).toEqual(['web_search.blocked_domains'])
  expect((await sent(search, 'gpt-4.1-nano')).tools).toBeUndefined()
  expect(await lost(search, 'gpt-4.1-nano')).toContain('web_search')
})

describe('sampling', () => {
  const wish = { temperature: 0.5, top_p: 0.9, logprobs: { top: 2 } }
  const names = ['temperature', 'top_p', 'logprobs']

  test('is free where nothing is thought, and left out and reported elsewhere', async () => {
    const taken = {
      temperature: 0.5,
      top_p: 0.9,
      top_logprobs: 2,
      include: expect.arrayContaining(['message.output_text.logprobs']),
    }
    expect(await sent(wish, 'gpt-4.1')).toMatchObject(taken)
    expect(await sent({ ...wish, reasoning: { effort: 'none' } })).toMatchObject(taken)
    expect(await sent({ ...wish, reasoning: { budget: 0 } })).toMatchObject(taken)
    expect(await lost({ ...wish, reasoning: { effort: 'none' } })).toEqual([])
    for (const model of ['o3', 'gpt-5', 'gpt-5.4']) {
      const body = await sent(wish, model)
      expect([body.temperature, body.top_p, body.top_logprobs]).toEqual([undefined, undefined, undefined])
      expect(body.include).toEqual(['reasoning.encrypted_content'])
      expect(await lost(wish, model)).toEqual(names)
    }
    expect(await lost({ temperature: 1, top_p: 1 }, 'o3')).toEqual([])
  })

  test('what means nothing is not reported', async () => {
    expect(await lost({ n: 1, frequency_penalty: 0, presence_penalty: 0, modalities: ['text'] })).toEqual([])
    expect(await lost({ n: 2, frequency_penalty: 1, presence_penalty: 1, modalities: ['text', 'audio'] })).toEqual([
      'n',
      'frequency_penalty',
      'presence_penalty',
      'modalities',
    ])
  })

  test('the limit is not below the least that is taken', async () => {
    expect((await sent({ max_output_tokens: 1 })).max_output_tokens).toBe(16)
    expect((await sent({ max_output_tokens: 17 })).max_output_tokens).toBe(17)
    expect((await sent({})).max_output_tokens).toBeUndefined()
  })
})

test('the form of the answer is flat', async () => {
  const schema = { type: 'object' }
  const format = { type: 'json_schema', name: 'x', description: 'd', schema, strict: true } as const
  expect((await sent({ response_format: format, verbosity: 'low' })).text).toEqual({ format, verbosity: 'low' })
  expect((await sent({ response_format: { type: 'json' } })).text).toEqual({ format: { type: 'json_object' } })
  expect((await sent({ verbosity: 'low' }, 'gpt-4.1')).text).toBeUndefined()
  expect(await lost({ verbosity: 'low' }, 'gpt-4.1')).toEqual(['verbosity'])
})

test('fields of the native API reach it from clients of another', async () => {
  const extensions = {
    truncation: 'auto',
    include: ['web_search_call.action.sources'],
    previous_response_id: 'resp_1',
    reasoning: { mode: 'pro' },
    reasoning_effort: 'extreme',
  }
  expect(await sent({ extensions })).toMatchObject({
    truncation: 'auto',
    include: ['web_search_call.action.sources', 'reasoning.encrypted_content'],
    previous_response_id: 'resp_1',
    reasoning: { mode: 'pro', effort: 'extreme' },
  })
  expect(await lost({ extensions: { ...extensions, unheard: 1 } })).toEqual(['unheard'])
})

test('an identifier that is too long becomes its digest', async () => {
  expect((await sent({ safety_identifier: 'u'.repeat(64) })).safety_identifier).toBe('u'.repeat(64))
  expect((await sent({ safety_identifier: 'u'.repeat(65) })).safety_identifier).toMatch(/^[0-9a-f]{64}$/)
})

/** One value for each field of the neutral request, unlike its default. */
const samples = {
  model: 'other',
  system: [{ type: 'text', text: 's' }],
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'other' }] }],
  tools: [{ kind: 'function', name: 'f' }],
  tool_choice: 'required',
  parallel_tool_calls: false,
  web_search: {},
  max_output_tokens: 70,
  temperature: 0.5,
  top_p: 0.5,
  top_k: 5,
  seed: 1,
  stop: ['x'],
  frequency_penalty: 1,
  presence_penalty: 1,
  logit_bias: { a: 1 },
  logprobs: { top: 1 },
  n: 2,
  response_format: { type: 'json' },
  reasoning: { effort: 'high' },
  modalities: ['text', 'audio'],
  audio: { voice: 'a' },
  prediction: { type: 'content' },
  service_tier: 'flex',
  verbosity: 'low',
  cache: { key: 'k' },
  user: 'u',
  safety_identifier: 'u',
  metadata: { a: 'b' },
  store: true,
  moderation: { model: 'omni-moderation-latest' },
  stream: true,
  extensions: { unheard: 1 },
} satisfies { [field in Exclude<keyof NeutralRequest, 'origin'>]-?: NeutralRequest[field] }

describe.each(['gpt-4.1', 'gpt-5.4', 'o3'])('for %s', (model) => {
  test.each(Object.keys(samples) as (keyof typeof samples)[])('%s is sent or reported as lost', async (field) => {
    const tools = ['tool_choice', 'parallel_tool_calls'].includes(field) ? { tools: samples.tools } : {}
    const given = { ...tools, [field]: samples[field] }
    const changes = JSON.stringify(await sent(given, model)) !== JSON.stringify(await sent(tools, model))
    expect(changes).not.toBe((await lost(given, model)).includes(field === 'extensions' ? 'unheard' : field))
    const declared = bench.losses.some((loss) => loss.field.split('.')[0] === field)
    expect(bench.request.reads.has(field) || declared).toBe(true)
  })
})

/** Fields of the native API that no request of another API can mean. */
const nativeOnly = ['background', 'prompt', 'stream_options']

test.skipIf(responsesSchemaMissing)('every published field is written, or belongs to this API alone', () => {
  const written = (name: string) => new RegExp(`^ {2,}"${name}": `, 'm').test(bench.request.text)
  expect(publishedFields('CreateResponse').filter((name) => !written(name))).toEqual(expect.arrayContaining(nativeOnly))
  expect(publishedFields('CreateResponse').filter((name) => !written(name))).toHaveLength(nativeOnly.length)
})

describe.skipIf(responsesSchemaMissing)('the published schema takes', () => {
  const rich: Message[] = [
    user(said('Go'), { type: 'image', data: 'AA==', media_type: 'image/png' }),
    assistant(sealed('rs_1'), said('so'), called('a'), called('b', { kind: 'custom' })),
    user(answered('a', said('A'), { type: 'file', data: 'AA==', media_type: 'application/pdf' }), answered('b')),
    assistant(
      { type: 'search', id: 'ws_1', query: 'q', by: 'openai' },
      { type: 'image', id: 'ig_1', data: 'AA==' },
      { type: 'text', text: 'd', signature: 'commentary', by: 'openai' },
      { type: 'refusal', text: 'no' },
    ),
    { role: 'system', parts: [said('C')] },
    user(said('Ho')),
  ]

  test('a conversation of everything', async () => {
    const { extensions, messages, ...fields } = samples
    for (const model of ['gpt-4.1', 'gpt-5.6', 'o3']) {
      expect(responsesViolations(await sent({ ...fields, messages: rich }, model))).toEqual([])
    }
  })

  test('no field it does not know', async () => {
    expect(responsesViolations({ ...(await sent({})), seed: 1 })).toEqual(['must NOT have unevaluated properties seed'])
    const input = [{ role: 'user', content: [{ type: 'input_text', text: 'a', cache: {} }] }]
    expect(responsesViolations({ ...(await sent({})), input })).not.toEqual([])
  })

  describe.skipIf(recordingsMissing)('requests of chat clients', () => {
    const asked = recordings('openai-chat').filter(({ request, response }) => request?.body && response.status === 200)

    test.each(asked.map((recording) => [recording.case, recording.request?.body] as const))('%s', async (_, wire) => {
      for (const model of ['gpt-4.1', 'gpt-5.4', 'gpt-5.6', 'o3']) {
        const request = { ...chat.read(wire), model }
        expect(responsesViolations(await bench.body(request, modelFacts(model)))).toEqual([])
        const named = new Set(Object.keys(request))
        for (const field of await lostOf(request, model)) {
          const [first = ''] = field.replace('parts', 'messages').split('.')
          expect(named.has(first) || first in (request.extensions ?? {})).toBe(true)
        }
      }
    })
  })
})

describe.skipIf(recordingsMissing)('what a recorded answer says goes back to its maker', () => {
  const answers = recordings('openai-responses').filter(({ response }) => isObject(response.body?.usage))

  test.each(answers.map((recording) => [recording.case, recording.response.body] as const))('%s', async (_, body) => {
    const { reply } = await bench.reply(body)
    const parts = reply.parts.map((part) => ('by' in part ? { ...part, by: 'openai' } : part))
    const items = await input([user(said('Go')), assistant(...parts), user(said('On'))])
    const sealsOf = (list: JsonObject[]) => list.flatMap(({ encrypted_content }) => encrypted_content ?? [])
    const last = body.output.at(-1)
    const expected = last.type === 'reasoning' ? body.output.slice(0, -1) : body.output
    expect(sealsOf(items)).toEqual(sealsOf(expected))
    const kept = (type: string, name: string) => (list: JsonObject[]) =>
      list.filter((item) => item.type === type).map((item) => item[name])
    for (const same of [
      kept('function_call', 'arguments'),
      kept('custom_tool_call', 'input'),
      kept('web_search_call', 'action'),
    ])
      expect(same(items)).toEqual(same(body.output))
    // Blocks that go back as they came are the provider's own to judge.
    const bodies = new Set(reply.parts.map((part) => (part.type === 'opaque' ? JSON.stringify(part.body) : '')))
    const written = items.filter((item) => !bodies.has(JSON.stringify(item)))
    expect(items.length - written.length).toBe(reply.parts.filter(({ type }) => type === 'opaque').length)
    if (!responsesSchemaMissing) expect(responsesViolations({ model: 'm', input: written })).toEqual([])
  })
})
