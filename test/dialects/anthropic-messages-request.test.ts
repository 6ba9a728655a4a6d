import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Message, NeutralRequest, TargetFacts, WebSearch } from '../../src/core/request.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { messagesSchemaMissing, messagesViolations } from './messages-schema.ts'
import { benchDialect, traitsOf } from './replay.ts'

const bench = benchDialect('anthropic-messages')

/** One model of each family, with the facts that its manifest declares. */
function modelFacts(model: string): Partial<TargetFacts> {
  return { signer: 'anthropic', max_output_tokens: 64_000, traits: traitsOf('anthropic', model) }
}

function requestWith(more: Partial<NeutralRequest> = {}): NeutralRequest {
  const messages: Message[] = [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
  return { model: 'm', messages, origin: { api: 'chat', body: {} }, ...more }
}

const sent = (more: Partial<NeutralRequest>, model = 'claude-haiku-4-5') =>
  bench.body(requestWith(more), modelFacts(model))

/** The losses of this request, in the names of the neutral form. */
async function lost(request: NeutralRequest, model = 'claude-haiku-4-5'): Promise<string[]> {
  return (await bench.written(request, modelFacts(model))).dropped
}

describe('thinking', () => {
  const levels = async (model: string, reasoning: NonNullable<NeutralRequest['reasoning']>) => {
    const { thinking, output_config, max_tokens } = await sent({ reasoning, max_output_tokens: 10_000 }, model)
    return { thinking, ...(output_config as JsonObject), max_tokens }
  }

  test('is adaptive with an effort from 4.6 on, and the effort is one the family knows', async () => {
    for (const model of [
      'claude-opus-4-6',
      'claude-sonnet-5',
      'claude-opus-5-5',
      'claude-fable-5-2',
      'claude-next-9',
    ]) {
      expect(await levels(model, { effort: 'medium' })).toEqual({
        thinking: { type: 'adaptive' },
        effort: 'medium',
        max_tokens: 10_000,
      })
    }
    expect(await levels('claude-opus-4-6', { effort: 'xhigh' })).toMatchObject({ effort: 'high' })
    expect(await levels('claude-opus-4-7', { effort: 'xhigh' })).toMatchObject({ effort: 'xhigh' })
    expect(await levels('claude-sonnet-5', { effort: 'minimal' })).toMatchObject({ effort: 'low' })
    expect(await levels('claude-sonnet-5', { budget: 1024 })).toMatchObject({ effort: 'low' })
    expect(await levels('claude-sonnet-5', { effort: 'low', summary: 'auto' })).toMatchObject({
      thinking: { type: 'adaptive', display: 'summarized' },
    })
  })

  test('is a budget below the limit before that, and the limit grows when it has to', async () => {
    expect(await levels('claude-sonnet-4-5-20250929', { effort: 'medium' })).toEqual({
      thinking: { type: 'enabled', budget_tokens: 5_000 },
      max_tokens: 10_000,
    })
    expect(await levels('claude-opus-4-5', { effort: 'max' })).toEqual({
      thinking: { type: 'enabled', budget_tokens: 8_000 },
      effort: 'high',
      max_tokens: 10_000,
    })
    expect(await levels('claude-opus-4-20250514', { budget: 12_000 })).toEqual({
      thinking: { type: 'enabled', budget_tokens: 12_000 },
      max_tokens: 22_000,
    })
    expect(await levels('claude-haiku-4-5', { budget: 100_000 })).toMatchObject({
      thinking: { budget_tokens: 63_999 },
      max_tokens: 64_000,
    })
  })

  test('by two measures goes by one of them, and the other is reported', async () => {
    const both = { effort: 'low', budget: 4_000 } as const
    expect((await levels('claude-haiku-4-5', both)).thinking).toEqual({ type: 'enabled', budget_tokens: 4_000 })
    expect(await lost(requestWith({ reasoning: both }))).toEqual(['reasoning.effort'])
    expect(await levels('claude-opus-4-6', both)).toMatchObject({ effort: 'low' })
    expect(await lost(requestWith({ reasoning: both }), 'claude-opus-4-6')).toEqual(['reasoning.budget'])
    expect(await lost(requestWith({ reasoning: both }), 'claude-opus-4-5')).toEqual([])
  })

  test('is switched off as the family wants it, and lowered where it cannot be', async () => {
    const none = (model: string) => levels(model, { effort: 'none' })
    expect(await none('claude-sonnet-5')).toEqual({ thinking: { type: 'disabled' }, max_tokens: 10_000 })
    expect(await none('claude-haiku-5-5')).toMatchObject({ thinking: { type: 'disabled' } })
    expect(await none('claude-sonnet-5-5')).toMatchObject({ thinking: { type: 'between_tools' } })
    expect(await none('claude-opus-5-5')).toEqual({ effort: 'low', max_tokens: 10_000 })
    expect(await none('claude-opus-4-8')).toEqual({ max_tokens: 10_000 })
    expect(await none('claude-haiku-4-5')).toEqual({ max_tokens: 10_000 })
  })

  test('is not requested of families without it', async () => {
    expect(await levels('claude-3-5-haiku-20241022', { effort: 'high' })).toEqual({ max_tokens: 10_000 })
    expect(await lost(requestWith({ reasoning: { effort: 'high' } }), 'claude-3-5-haiku-20241022')).toContain(
      'reasoning',
    )
  })

  test('by budget needs the thinking of the turn under way; without it, it is left out and reported', async () => {
    const loop = (signed: boolean): Partial<NeutralRequest> => ({
      reasoning: { effort: 'high' },
      messages: [
        ...requestWith().messages,
        {
          role: 'assistant',
          parts: [
            ...(signed ? [{ type: 'reasoning', text: 'hm', signature: 's', by: 'anthropic' } as const] : []),
            { type: 'tool_call', id: 'a', name: 'f', arguments: '' },
          ],
        },
        { role: 'user', parts: [{ type: 'tool_result', id: 'a', parts: [] }] },
      ],
    })
    expect((await sent(loop(true))).thinking).toMatchObject({ type: 'enabled' })
    expect((await sent(loop(false))).thinking).toBeUndefined()
    expect((await sent(loop(false), 'claude-sonnet-5')).thinking).toEqual({ type: 'adaptive' })
    expect(await lost(requestWith(loop(false)))).toContain('reasoning')
    expect(await lost(requestWith(loop(true)))).not.toContain('reasoning')
  })
})

describe('tool choice', () => {
  const tools: NeutralRequest['tools'] = [
    { kind: 'function', name: 'f' },
    { kind: 'function', name: 'g' },
  ]

  test('has a form for every request', async () => {
    const choice = async (tool_choice: NeutralRequest['tool_choice'], more: Partial<NeutralRequest> = {}) =>
      (await sent({ tools, ...(tool_choice && { tool_choice }), ...more })).tool_choice
    expect(await choice('auto')).toEqual({ type: 'auto' })
    expect(await choice('none')).toEqual({ type: 'none' })
    expect(await choice('required')).toEqual({ type: 'any' })
    expect(await choice({ name: 'f' }, { parallel_tool_calls: false })).toEqual({
      type: 'tool',
      name: 'f',
      disable_parallel_tool_use: true,
    })
    expect(await choice(undefined, { parallel_tool_calls: false })).toEqual({
      type: 'auto',
      disable_parallel_tool_use: true,
    })
    expect(await choice(undefined)).toBeUndefined()
    expect((await sent({ tool_choice: 'required' })).tool_choice).toBeUndefined()
  })

  test('of some tools offers only these', async () => {
    const body = await sent({ tools, tool_choice: { allowed: ['g'], mode: 'required' } })
    expect(body).toMatchObject({ tools: [{ name: 'g' }], tool_choice: { type: 'any' } })
    expect(body.tools).toHaveLength(1)
  })

  test('of a tool that is not there is no demand, and reported', async () => {
    const absent = requestWith({ tools, tool_choice: { name: 'h' } })
    expect((await sent(absent)).tool_choice).toEqual({ type: 'auto' })
    expect(await lost(absent)).toEqual(['tool_choice'])
    expect(await lost(requestWith({ tool_choice: 'required' }))).toEqual(['tool_choice'])
    expect(await lost(requestWith({ tool_choice: 'auto' }))).toEqual([])
  })

  test('that is required is requested in the instructions where the family rejects it, and reported', async () => {
    const forced = { tools, tool_choice: { name: 'f' } }
    const body = await sent(forced, 'claude-opus-5-5')
    expect(body.tool_choice).toEqual({ type: 'auto' })
    expect(body.system).toEqual([{ type: 'text', text: 'Answer with a call of the tool f.' }])
    expect(await lost(requestWith(forced), 'claude-opus-5-5')).toContain('tool_choice')
    expect(await lost(requestWith(forced), 'claude-opus-5')).not.toContain('tool_choice')
  })

  test('that is required and thinking exclude each other: the one that was not requested yields', async () => {
    expect((await sent({ tools, tool_choice: 'required' }, 'claude-sonnet-5')).thinking).toEqual({ type: 'disabled' })
    const both = { tools, tool_choice: 'required', reasoning: { effort: 'low' } } as const
    expect(await sent(both)).toMatchObject({ tool_choice: { type: 'any' } })
    expect((await sent(both)).thinking).toBeUndefined()
    expect(await lost(requestWith(both))).toContain('reasoning')
  })
})

describe('tools', () => {
  const tool = (parameters: JsonObject): Partial<NeutralRequest> => ({
    tools: [{ kind: 'function', name: 'f', strict: true, parameters }],
  })
  const closed = { type: 'object', properties: { n: { type: 'integer' } } }

  test('are strict where schemas are enforced; others are reported', async () => {
    expect((await sent(tool(closed))).tools).toMatchObject([
      { strict: true, input_schema: { ...closed, additionalProperties: false } },
    ])
    expect(await lost(requestWith(tool(closed)))).toEqual([])
    const ranged = tool({ type: 'object', properties: { n: { type: 'integer', minimum: 1 } } })
    expect((await sent(ranged)).tools).toMatchObject([
      { strict: true, input_schema: { properties: { n: { type: 'integer', description: '(minimum: 1)' } } } },
    ])
    expect(await lost(requestWith(ranged))).toEqual(['tools.parameters'])
    const open = { type: 'object', additionalProperties: { type: 'string' } }
    for (const [parameters, model] of [
      [open, 'claude-haiku-4-5'],
      [closed, 'claude-sonnet-4-20250514'],
    ] as const) {
      const requested = tool(parameters)
      expect((await sent(requested, model)).tools).toEqual([
        { name: 'f', input_schema: { properties: {}, ...parameters } },
      ])
      expect(await lost(requestWith(requested), model)).toEqual(['tools.strict'])
    }
  })

  test('of one client API and of the provider are reported by their kind, and those of free text are functions', async () => {
    const requested = requestWith({
      tools: [
        { kind: 'function', name: 'f' },
        { kind: 'custom', name: 'c' },
        { kind: 'code_interpreter', by: 'responses', definition: { type: 'code_interpreter' } },
        { kind: 'bash_20250124', by: 'messages', definition: { type: 'bash_20250124' } },
      ],
    })
    expect((await sent(requested)).tools).toMatchObject([{ name: 'f' }, { name: 'c' }])
    expect(await lost(requested)).toEqual(['tools.code_interpreter', 'tools.bash_20250124'])
  })

  test('for searching take one list of domains, and the other one is not reported', async () => {
    const web_search: WebSearch = {
      max_uses: 2,
      allowed_domains: ['https://a.example'],
      blocked_domains: ['b.example'],
      context_size: 'low',
    }
    expect((await sent({ web_search })).tools).toEqual([
      { type: 'web_search_20250305', name: 'web_search', max_uses: 2, allowed_domains: ['a.example'] },
    ])
    expect((await lost(requestWith({ web_search }))).toSorted()).toEqual([
      'web_search.blocked_domains',
      'web_search.context_size',
    ])
    const without = { ...modelFacts('claude-haiku-4-5'), traits: { search_tool: false } }
    expect((await bench.written(requestWith({ web_search }), without)).dropped).toEqual(['web_search'])
  })
})

describe('sampling', () => {
  test('is clamped, and left out where the family or its thinking refuses it', async () => {
    const fields = { temperature: 1.7, top_p: 0.9, top_k: 40 }
    expect(await sent(fields, 'claude-opus-4-6')).toMatchObject({ temperature: 1, top_p: 0.9, top_k: 40 })
    const one = await sent(fields, 'claude-opus-4-5')
    expect([one.temperature, one.top_p, one.top_k]).toEqual([1, undefined, 40])
    for (const refusing of [
      await sent(fields, 'claude-sonnet-5'),
      await sent({ ...fields, reasoning: { effort: 'low' } }, 'claude-opus-4-6'),
      await sent({ ...fields, reasoning: { effort: 'low' } }, 'claude-opus-4-5'),
    ]) {
      expect([refusing.temperature, refusing.top_p, refusing.top_k]).toEqual([undefined, undefined, undefined])
    }
    expect(await lost(requestWith(fields), 'claude-sonnet-5')).toEqual(['temperature', 'top_p', 'top_k'])
    expect(await lost(requestWith({ temperature: 0.3, top_k: 3 }), 'claude-opus-4-6')).toEqual([])
  })

  test('the limit is that of the model when the client names none, and never more', async () => {
    expect((await sent({})).max_tokens).toBe(64_000)
    expect((await sent({ max_output_tokens: 200_000 })).max_tokens).toBe(64_000)
    expect((await bench.body(requestWith())).max_tokens).toBe(8_192)
  })
})

describe('the form of the answer', () => {
  const schema = { type: 'object', properties: { n: { type: ['integer', 'null'], maximum: 9 } }, required: ['n'] }
  const format = { type: 'json_schema', name: 'x', schema } as const

  test('is a narrowed schema where the family takes one', async () => {
    expect((await sent({ response_format: format })).output_config).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { n: { type: ['integer', 'null'], description: '(maximum: 9)' } },
          required: ['n'],
          additionalProperties: false,
        },
      },
    })
  })

  test('is requested in the instructions otherwise: older families, open schemas, web search, plain JSON', async () => {
    const open = { ...format, schema: { type: 'object', additionalProperties: { type: 'string' } } } as const
    for (const body of [
      await sent({ response_format: format }, 'claude-sonnet-4-20250514'),
      await sent({ response_format: open }),
      await sent({ response_format: format, web_search: {} }),
      await sent({ response_format: { type: 'json' } }),
    ]) {
      expect(body.output_config).toBeUndefined()
      expect(JSON.stringify(body.system)).toContain('one JSON value')
    }
    expect((await sent({ response_format: { type: 'text' } })).system).toBeUndefined()
  })

  test('has its description in the schema; strictness that is only requested in the instructions is reported', async () => {
    const requested = requestWith({ response_format: { ...format, description: 'A number.', strict: true } })
    expect((await sent(requested)).output_config).toMatchObject({ format: { schema: { description: 'A number.' } } })
    expect(await lost(requested)).toEqual(['response_format.schema'])
    expect(JSON.stringify((await sent(requested, 'claude-sonnet-4-20250514')).system)).toContain('A number.')
    expect(await lost(requested, 'claude-sonnet-4-20250514')).toEqual(['response_format.strict'])
    const expected = {
      ...requested,
      response_format: { ...format, schema: { ...schema, description: 'n.' }, description: 'N.' },
    }
    expect(await lost(expected as NeutralRequest)).toEqual(['response_format.schema', 'response_format.description'])
  })

  test('keeps every kind of schema', async () => {
    const rich = {
      type: 'object',
      properties: {
        when: { type: 'string', format: 'date-time' },
        id: { type: 'string', format: 'int64', pattern: '^[0-9]+$' },
        kind: { oneOf: [{ const: 'a' }, { $ref: '#/$defs/b' }] },
        list: { type: 'array', items: { type: 'object', properties: {} }, minItems: 1 },
        format: { type: 'string' },
      },
      $defs: { b: { type: 'string', enum: ['b'], maxLength: 1 } },
    }
    const { output_config } = await sent({ response_format: { ...format, schema: rich } })
    expect((output_config as { format: { schema: JsonObject } }).format.schema).toEqual({
      type: 'object',
      properties: {
        when: { type: 'string', format: 'date-time' },
        id: { type: 'string', description: '(format: "int64", pattern: "^[0-9]+$")' },
        kind: { anyOf: [{ const: 'a' }, { $ref: '#/$defs/b' }] },
        list: {
          type: 'array',
          items: { type: 'object', properties: {}, additionalProperties: false },
          minItems: 1,
        },
        format: { type: 'string' },
      },
      $defs: { b: { type: 'string', enum: ['b'], description: '(maxLength: 1)' } },
      additionalProperties: false,
    })
  })
})

describe('content', () => {
  const blocks = async (...parts: Message['parts']) => {
    const [message] = (await sent({ messages: [{ role: 'user', parts }] })).messages as { content: unknown[] }[]
    return message?.content
  }

  const document = 'ASCII %41, Ünïcode ÂÃ¿, 漢字 and 🎉\n'

  test('images and documents come as address, bytes or file id', async () => {
    expect(
      await blocks(
        { type: 'image', url: 'https://example.com/a.png', detail: 'high' },
        { type: 'image', data: 'AA==', media_type: 'image/jpg', cache: { ttl: '1h' } },
        { type: 'file', data: 'AA==', media_type: 'application/pdf', filename: 'a.pdf' },
        { type: 'file', url: 'https://example.com/b.pdf' },
        { type: 'file', file_id: 'file_1' },
        { type: 'file', data: 'AA==', media_type: 'image/png' },
        { type: 'file', data: Buffer.from(document).toString('base64'), media_type: 'text/markdown', filename: 'a.md' },
      ),
    ).toEqual([
      { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
      {
        type: 'image',
        source: { type: 'base64', media_type: 'image/jpeg', data: 'AA==' },
        cache_control: { type: 'ephemeral', ttl: '1h' },
      },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' }, title: 'a.pdf' },
      { type: 'document', source: { type: 'url', url: 'https://example.com/b.pdf' } },
      { type: 'document', source: { type: 'file', file_id: 'file_1' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: document }, title: 'a.md' },
    ])
  })

  test('fields without a counterpart are dropped and reported', async () => {
    const parts: Message['parts'] = [
      { type: 'text', text: 'a' },
      { type: 'audio', data: 'AA==', media_type: 'audio/wav' },
      { type: 'file', data: 'AA==', media_type: 'application/msword' },
      { type: 'opaque', by: 'someone', body: {} },
    ]
    expect(await blocks(...parts)).toEqual([{ type: 'text', text: 'a' }])
    expect((await lost(requestWith({ messages: [{ role: 'user', parts }] }))).toSorted()).toEqual([
      'parts.audio',
      'parts.file',
      'parts.opaque',
    ])
  })

  test('office documents are not text, even with xml in their type or name', async () => {
    const docx = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
    const text: Message['parts'][number] = { type: 'text', text: 'a' }
    for (const file of [
      { type: 'file', data: 'UEsDBA==', media_type: docx },
      { type: 'file', data: 'UEsDBA==', filename: 'a.docx' },
    ] as const) {
      expect(await blocks(text, file)).toEqual([text])
      expect(await lost(requestWith({ messages: [{ role: 'user', parts: [text, file] }] }))).toEqual(['parts.file'])
    }
    const named: Message['parts'][number] = {
      type: 'file',
      data: 'AA==',
      media_type: 'application/octet-stream',
      filename: 'a.pdf',
    }
    expect(await blocks(named)).toMatchObject([{ type: 'document', source: { media_type: 'application/pdf' } }])
  })

  test('media inside a tool result are sent or reported like others', async () => {
    const call: Message = { role: 'assistant', parts: [{ type: 'tool_call', id: 'a', name: 'f', arguments: '{}' }] }
    const result = (...parts: Message['parts']): Partial<NeutralRequest> => ({
      messages: [...requestWith().messages, call, { role: 'user', parts: [{ type: 'tool_result', id: 'a', parts }] }],
    })
    const zip = result({ type: 'text', text: 'done' }, { type: 'file', data: 'AA==', media_type: 'application/zip' })
    expect((await sent(zip)).messages).toMatchObject([
      {},
      {},
      { content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'done' }] }] },
    ])
    expect(await lost(requestWith(zip))).toEqual(['parts.file'])
    expect(await lost(requestWith(result({ type: 'image', data: 'AA==', media_type: 'image/png' })))).toEqual([])
  })

  test('images of the assistant are not sent back', async () => {
    const image: Message['parts'] = [{ type: 'image', data: 'AA==', media_type: 'image/png' }]
    const drawn: Message = { role: 'assistant', parts: [{ type: 'text', text: 'Here.' }, ...image] }
    const messages = [...requestWith().messages, drawn, ...requestWith().messages]
    expect((await sent({ messages })).messages).toMatchObject([{}, { content: [{ type: 'text' }] }, {}])
    expect(await lost(requestWith({ messages }))).toEqual(['parts.image'])
    expect(await lost(requestWith({ messages: [{ role: 'user', parts: image }] }))).toEqual([])
  })

  test('signed parts go back to their provider only', async () => {
    const by = (maker: string): Message => ({
      role: 'assistant',
      parts: [
        { type: 'reasoning', text: '', signature: 'sig', by: maker },
        { type: 'reasoning', encrypted: 'enc', by: maker },
        { type: 'search', id: 'srvtoolu_1', query: 'q', results: [], by: maker },
        { type: 'opaque', body: { type: 'compaction', content: 'c' }, by: maker },
        { type: 'text', text: 'so' },
      ],
    })
    const content = async (maker: string) => {
      const messages = [...requestWith().messages, by(maker), ...requestWith().messages]
      return ((await sent({ messages })).messages as { content: unknown }[])[1]?.content
    }
    expect(await content('anthropic')).toEqual([
      { type: 'thinking', thinking: '', signature: 'sig' },
      { type: 'redacted_thinking', data: 'enc' },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
      { type: 'compaction', content: 'c' },
      { type: 'text', text: 'so' },
    ])
    expect(await content('someone')).toEqual([{ type: 'text', text: 'so' }])
  })

  test('the last message is the user’s where the family does not continue the assistant’s', async () => {
    const messages: Message[] = [
      ...requestWith().messages,
      { role: 'assistant', parts: [{ type: 'text', text: 'So' }] },
    ]
    expect((await sent({ messages }, 'claude-haiku-4-5')).messages).toHaveLength(2)
    expect((await sent({ messages }, 'claude-sonnet-5')).messages).toMatchObject([{}, {}, { role: 'user' }])
  })
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
  max_output_tokens: 7,
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
  service_tier: 'default',
  verbosity: 'low',
  cache: { key: 'k' },
  user: 'u',
  safety_identifier: 'u',
  metadata: { a: 'b' },
  store: true,
  moderation: { mode: 'block' },
  stream: true,
  extensions: { unheard: 1 },
} satisfies { [field in Exclude<keyof NeutralRequest, 'origin' | 'unread'>]-?: NeutralRequest[field] }

test.each(Object.keys(samples) as (keyof typeof samples)[])(
  '%s is sent or reported as lost, not both',
  async (field) => {
    const tools = ['tool_choice', 'parallel_tool_calls'].includes(field) ? { tools: samples.tools } : {}
    const given = { ...tools, [field]: samples[field] }
    const changes = JSON.stringify(await sent(given)) !== JSON.stringify(await sent(tools))
    const reported = (await lost(requestWith(given))).some((name) => name.split('.')[0] === field)
    // The router records metadata itself, and a key of the cache is a hint.
    const isFree = field === 'metadata' || field === 'cache'
    expect([changes, reported]).toEqual(changes ? [true, false] : [false, !isFree])
  },
)

test('a demanded call costs an older family its thinking alone: sampling stays, and is not reported', async () => {
  const requested: Partial<NeutralRequest> = {
    tools: [{ kind: 'function', name: 'f' }],
    tool_choice: 'required',
    reasoning: { effort: 'high' },
    temperature: 0.5,
    top_k: 5,
  }
  const { body, dropped } = await bench.written(requestWith(requested), modelFacts('claude-haiku-4-5'))
  expect(body).toMatchObject({ tool_choice: { type: 'any' }, temperature: 0.5, top_k: 5 })
  expect(body.thinking).toBeUndefined()
  expect(dropped).toEqual(['reasoning'])
})

describe.skipIf(messagesSchemaMissing ?? recordingsMissing)(
  'requests of chat clients become bodies of the published schema',
  () => {
    const requested = recordings('openai-chat').filter(
      ({ request, response }) => request?.body && response.status === 200,
    )

    test.each(requested.map((recording) => [recording.case, recording.request?.body] as const))(
      '%s',
      async (_, wire) => {
        for (const model of ['claude-opus-5-5', 'claude-sonnet-5', 'claude-opus-4-6', 'claude-haiku-4-5']) {
          const request = { ...chat.read(wire), model }
          expect(messagesViolations(await bench.body(request, modelFacts(model)))).toEqual([])
          const named = new Set(Object.keys(request))
          for (const field of await lost(request, model))
            expect(named).toContain(field.replace('parts', 'messages').split('.')[0])
        }
      },
    )
  },
)
