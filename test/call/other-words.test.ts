import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { namesInBody } from '../../src/api/wire-fields.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { writeRequest } from '../../src/manifest/run/translate.ts'
import { sentTo, shippedTarget } from '../helpers/sent.ts'

async function sent(id: string, api: ClientApi, given: JsonObject) {
  const { target, body, names } = await sentTo(id, api, given)
  expect(target.provider.sameAs).toBe(api.api)
  return { body, dropped: names }
}

const hi: JsonObject = { messages: [{ role: 'user', content: 'Hi' }] }

const chatTargets = [
  'openai/gpt-4o',
  'openai/o3',
  'openai/gpt-5.4',
  'openai/gpt-5.6',
  'openrouter/openai/gpt-5',
  'mistral/magistral-medium-latest',
  'groq/qwen/qwen3-32b',
  'groq/openai/gpt-oss-120b',
  'xai/grok-4.6',
  'deepseek/deepseek-v4-pro',
  'together/some-model',
  'fireworks/some-model',
  'perplexity/sonar-reasoning',
  'cloudflare/@cf/openai/gpt-oss-120b',
  'vllm/some-model',
  'azure/gpt-5.4',
  'azure/grok-3-mini',
  'vertex/openai/gpt-oss-120b-maas',
]

const wishes: readonly JsonObject[] = [
  { reasoning_effort: 'high' },
  { reasoning_effort: 'min' },
  { reasoning_effort: 'max' },
  { reasoning_effort: 20_000 },
  { reasoning_effort: '1000' },
  { reasoning: { effort: 'low' } },
  { reasoning: { max_tokens: 3_000 } },
  { reasoning: { enabled: true, exclude: true } },
  { reasoning: { effort: 'min', summary: 'auto' } },
  { reasoning: { effort: 'high', max_tokens: 3_000 } },
  { thinking: { type: 'enabled', budget_tokens: 20_000 } },
  { thinking: { type: 'adaptive' } },
  { thinking: { type: 'disabled' }, reasoning: {} },
]

describe.each(chatTargets)('a wish for reasoning at %s', (id) => {
  test.each(wishes)('%j is translated as it is for all others', async (wish) => {
    const edited = await sent(id, chat, { ...hi, ...wish })
    const target = await shippedTarget(id)
    const request = chat.read({ model: id, ...hi, ...wish })
    const translated = await writeRequest(target.provider, request, target)
    const asking = ['reasoning_effort', 'reasoning', 'thinking', 'reasoning_format']
    const of = (body: JsonObject) => asking.map((name) => body[name])
    expect(of(edited.body)).toEqual(of(translated.body))
    const named = translated.dropped.flatMap((name) => namesInBody(chat.wireNames(name), { ...hi, ...wish }))
    expect(new Set(edited.dropped)).toEqual(new Set(named))
  })
})

test.each([
  'openai-responses/gpt-5.4',
  'anthropic/claude-opus-5',
  'google/gemini-3.5-flash',
  'cohere/command-a-plus-05-2026',
  'ollama/x',
])('a wish not to see the reasoning is named, and never sent to %s', async (id) => {
  const wish = { reasoning: { effort: 'low', exclude: true } }
  const { body, names } = await sentTo(id, chat, { ...hi, ...wish })
  expect(JSON.stringify(body)).not.toContain('exclude')
  expect(names).toEqual(['reasoning.exclude'])
})

test('numbers of tokens are levels where there are only levels, and levels are those of the family', async () => {
  const effort = async (id: string, reasoning_effort: Json) => {
    return (await sent(id, chat, { ...hi, reasoning_effort })).body.reasoning_effort
  }
  expect(await Promise.all([1_000, '3000', 20_000].map((tokens) => effort('openai/o3', tokens)))).toEqual([
    'low',
    'medium',
    'high',
  ])
  expect(await Promise.all(['min', 'minimal', 'xhigh', 'max'].map((level) => effort('openai/o3', level)))).toEqual([
    'low',
    'low',
    'high',
    'high',
  ])
  expect(await effort('openai/gpt-5.6', 'max')).toBe('max')
  expect((await sent('openrouter/x', chat, { ...hi, reasoning_effort: 4_000 })).body.reasoning).toEqual({
    max_tokens: 4_000,
  })
  expect(() => chat.read({ ...hi, model: 'm', reasoning_effort: -1 })).toThrow(
    "'reasoning_effort' must be a whole number",
  )
  expect(() => chat.read({ ...hi, model: 'm', reasoning: { effort: true } })).toThrow(
    "'reasoning.effort' must be a level",
  )
})

test('levels that only one provider has reach it', async () => {
  expect((await sent('groq/qwen/qwen3-32b', chat, { ...hi, reasoning_effort: 'default' })).body.reasoning_effort).toBe(
    'default',
  )
})

const breakpoint = { mode: 'explicit' }
const hinted = (hint: JsonObject): JsonObject => ({
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'Long.', ...hint }] },
    { role: 'user', content: [{ type: 'text', text: 'Hi', ...hint }] },
  ],
})

describe('a cache hint has the form that the provider knows', () => {
  const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } }
  test.each([
    ['openai/gpt-5.6', hour, { prompt_cache_breakpoint: breakpoint }, []],
    ['openai/gpt-5.6', { prompt_cache_breakpoint: breakpoint }, { prompt_cache_breakpoint: breakpoint }, []],
    ['openrouter/x', hour, hour, []],
    ['openrouter/x', { prompt_cache_breakpoint: breakpoint }, { cache_control: { type: 'ephemeral' } }, []],
    ['openrouter/x', { ...hour, prompt_cache_breakpoint: breakpoint }, hour, []],
    ['openai/gpt-4o', hour, {}, ['messages.cache_control']],
    ['mistral/x', { prompt_cache_breakpoint: breakpoint }, {}, ['messages.prompt_cache_breakpoint']],
  ])('%s: %j', async (id, hint, form, names) => {
    const { body, dropped } = await sent(id, chat, hinted(hint))
    for (const message of body.messages as JsonObject[]) {
      expect(message.content).toEqual([expect.objectContaining({ type: 'text', ...form })])
      expect(Object.keys((message.content as JsonObject[])[0] ?? {})).toHaveLength(2 + Object.keys(form).length)
    }
    expect(dropped).toEqual(names)
  })

  test('on a tool it is kept where it is known, and named elsewhere', async () => {
    const tools = [{ type: 'function', function: { name: 'f' }, ...hour }]
    expect((await sent('openrouter/x', chat, { ...hi, tools })).body.tools).toEqual(tools)
    const { body, dropped } = await sent('openai/gpt-5.6', chat, { ...hi, tools, reasoning_effort: 'none' })
    expect(body.tools).toEqual([{ type: 'function', function: { name: 'f' } }])
    expect(dropped).toEqual(['tools.cache_control'])
  })
})

describe('a cache hint on a whole message', () => {
  const hint = { cache_control: { type: 'ephemeral' } }
  const given = {
    messages: [
      { role: 'system', content: 'Long.', ...hint },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'text', text: 'Well?' },
        ],
        ...hint,
      },
      { role: 'assistant', content: 'Hm.', ...hint },
      { role: 'user', content: 'And?' },
    ],
  }
  test.each([
    ['openai/gpt-5.6', { prompt_cache_breakpoint: breakpoint }],
    ['openrouter/x', hint],
  ])('is one on its last part for %s, and named where a message has none', async (id, form) => {
    const { body, dropped } = await sent(id, chat, given)
    expect(body.messages).toEqual([
      { role: 'system', content: [{ type: 'text', text: 'Long.', ...form }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'text', text: 'Well?', ...form },
        ],
      },
      { role: 'assistant', content: 'Hm.' },
      { role: 'user', content: 'And?' },
    ])
    expect(dropped).toEqual(['messages.cache_control'])
  })

  test('reaches other formats, and no server that knows none', async () => {
    const { body, names } = await sentTo('anthropic/claude-sonnet-4-5', chat, { ...given, max_tokens: 99 })
    expect(JSON.stringify(body).match(/cache_control/g)).toHaveLength(3)
    expect(names).toEqual([])
    const plain = await sent('openai/gpt-4o', chat, given)
    expect(JSON.stringify(plain.body)).not.toContain('cache_control')
    expect(plain.dropped).toEqual(['messages.cache_control'])
  })

  test('on the calls and results of tools leaves edited bodies, and is named', async () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const turns = (more: JsonObject) => ({
      messages: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: null, tool_calls: [{ ...call, ...more }] },
        { role: 'tool', tool_call_id: 'c', content: 'Done.', ...more },
      ],
    })
    for (const id of ['openai/gpt-5.6', 'openai/gpt-4o', 'openrouter/x', 'groq/x']) {
      const { body, dropped } = await sent(id, chat, turns(hint))
      expect(body.messages).toEqual(turns({}).messages)
      expect(dropped).toEqual(['messages.cache_control'])
    }
  })
})

test('a hint on the whole prompt is told where it is known, by either of its names', async () => {
  const whole = { type: 'ephemeral' }
  for (const wish of [{ cache_control: whole }, { requesty: { auto_cache: true } }]) {
    const [name] = Object.keys(wish)
    expect((await sent('openrouter/x', chat, { ...hi, ...wish })).body).toMatchObject({ cache_control: whole })
    const claude = await sentTo('anthropic/claude-sonnet-4-5', chat, { ...hi, ...wish, max_tokens: 99 })
    expect([claude.body.cache_control, claude.names]).toEqual([whole, []])
    const elsewhere = await sentTo('vertex/claude-sonnet-4-5@20250929', chat, { ...hi, ...wish, max_tokens: 99 })
    const marked = [{ type: 'text', text: 'Hi', cache_control: whole }]
    expect([elsewhere.body.messages, elsewhere.body.cache_control, elsewhere.names]).toEqual([
      [{ role: 'user', content: marked }],
      undefined,
      [],
    ])
    const other = await sent('openai/gpt-4o', chat, { ...hi, ...wish })
    expect(other.body).not.toHaveProperty(name as string)
    expect(other.body).not.toHaveProperty('cache_control')
    expect(other.dropped).toEqual([name === 'requesty' ? 'requesty.auto_cache' : 'cache_control'])
  }
})

test('OpenRouter’s switch for reasoning, which the router itself answers, does not reach servers that refuse it', async () => {
  for (const id of ['openai/gpt-5.4', 'azure/gpt-5.4', 'mistral/x']) {
    const { body, dropped } = await sent(id, chat, { ...hi, include_reasoning: true })
    expect([body.include_reasoning, dropped]).toEqual([undefined, []])
  }
  expect((await sent('openrouter/x', chat, { ...hi, include_reasoning: true })).body.include_reasoning).toBe(true)
})

/** The paths of nulls, positions in lists left out. */
function nullsIn(value: Json | undefined, path = ''): string[] {
  if (value === null) return [path]
  if (Array.isArray(value)) return value.flatMap((item) => nullsIn(item, path))
  return isObject(value) ? Object.entries(value).flatMap(([name, inner]) => nullsIn(inner, `${path}.${name}`)) : []
}

const schema = { type: 'object', properties: { a: { enum: ['x', null], default: null } } }
const nothing = Object.fromEntries(
  ['temperature', 'top_p', 'stop', 'tools', 'user', 'metadata', 'frob', 'service_tier'].map((name) => [name, null]),
)
const withNulls: readonly [string, ClientApi, JsonObject, string[]][] = [
  [
    'openai/gpt-4o',
    chat,
    {
      ...nothing,
      tools: [{ type: 'function', function: { name: 'f', parameters: schema, strict: null, description: null } }],
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: null } },
      reasoning_effort: null,
      reasoning: null,
      stream_options: null,
      messages: [
        {
          role: 'user',
          name: null,
          content: [{ type: 'image_url', image_url: { url: 'https://x.example/a', detail: null } }],
        },
        {
          role: 'assistant',
          content: null,
          refusal: null,
          audio: null,
          function_call: null,
          tool_calls: [{ id: 'c', type: 'function', index: null, function: { name: 'f', arguments: '{"a":null}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'x', name: null },
      ],
    },
    [
      '.tools.function.parameters.properties.a.enum',
      '.tools.function.parameters.properties.a.default',
      '.response_format.json_schema.schema.properties.a.enum',
      '.response_format.json_schema.schema.properties.a.default',
      '.messages.content',
    ],
  ],
  [
    'openai-responses/gpt-5.4',
    responses,
    {
      ...nothing,
      instructions: null,
      previous_response_id: null,
      reasoning: { effort: 'low', summary: null },
      text: { format: { type: 'json_schema', name: 'n', schema, strict: null }, verbosity: null },
      tools: [{ type: 'function', name: 'f', parameters: schema, strict: null, description: null }],
      input: [
        {
          role: 'user',
          content: [{ type: 'input_image', image_url: 'https://x.example/a', detail: null, file_id: null }],
        },
        { type: 'reasoning', id: 'rs_1', summary: [], content: null, encrypted_content: 'x', status: null },
        { type: 'code_interpreter_call', id: 'ci_1', code: 'x', container_id: 'c', outputs: null, status: 'completed' },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}', status: null },
        { type: 'function_call_output', call_id: 'c', output: 'x', id: null },
      ],
    },
    [
      '.text.format.schema.properties.a.enum',
      '.text.format.schema.properties.a.default',
      '.tools.parameters.properties.a.enum',
      '.tools.parameters.properties.a.default',
      // Of a kind that nobody here knows.
      '.input.outputs',
    ],
  ],
  [
    'anthropic/claude-sonnet-4-5',
    messages,
    {
      ...nothing,
      max_tokens: 9,
      system: null,
      stop_sequences: null,
      thinking: null,
      tools: [{ name: 'f', type: null, input_schema: schema, description: null, cache_control: null }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Hi', citations: null, cache_control: null }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { a: null }, caller: null }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x', is_error: null }] },
      ],
    },
    ['.tools.input_schema.properties.a.enum', '.tools.input_schema.properties.a.default', '.messages.content.input.a'],
  ],
]

test.each(withNulls)('%s gets no null that says nothing', async (id, api, given, kept) => {
  const { body, dropped } = await sent(id, api, given)
  expect(nullsIn(body).toSorted()).toEqual(kept.toSorted())
  expect(dropped).toEqual([])
})

test('wishes that were translated before are translated the same, apart from each other', async () => {
  const efforts = ['low', 'high', 'low', 3_000, 'high']
  const asked = await Promise.all(
    efforts.map((reasoning_effort) => sent('openai/o3', chat, { ...hi, reasoning_effort })),
  )
  expect(asked.map(({ body }) => body.reasoning_effort)).toEqual(['low', 'high', 'low', 'medium', 'high'])
  const other = await sent('openai/gpt-4o', chat, { ...hi, reasoning_effort: 'high' })
  expect([other.body.reasoning_effort, other.dropped]).toEqual([undefined, ['reasoning_effort']])
})
