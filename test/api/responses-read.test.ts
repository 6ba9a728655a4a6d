import { describe, expect, it } from 'vitest'
import { responses } from '../../src/api/responses/api.ts'
import type { RouterError } from '../../src/core/errors.ts'
import type { Json, JsonObject } from '../../src/core/json.ts'
import type { Part } from '../../src/core/parts.ts'
import type { Reply } from '../../src/core/reply.ts'
import type { NeutralRequest } from '../../src/core/request.ts'
import { recordings, recordingsMissing } from '../helpers/recordings.ts'
import { choicesOf, propertiesOf, schemaMissing } from './chatSchema.ts'

const requested = { model: 'maker/model', input: 'Hello' }
const read = (members: JsonObject): NeutralRequest => responses.read({ ...requested, ...members })
const refused = (members: JsonObject): RouterError => {
  try {
    read(members)
  } catch (error) {
    return error as RouterError
  }
  throw new Error('it was accepted')
}

/** Each field of the published request: valid values, and their neutral form. */
const fields: { readonly [name: string]: { good: Json; becomes: Partial<NeutralRequest> } } = {
  model: { good: 'other/model', becomes: { model: 'other/model' } },
  input: { good: 'Hi', becomes: { messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] } },
  instructions: { good: 'Be brief.', becomes: { system: [{ type: 'text', text: 'Be brief.' }] } },
  max_output_tokens: { good: 1, becomes: { max_output_tokens: 1 } },
  temperature: { good: 2, becomes: { temperature: 2 } },
  top_p: { good: 0, becomes: { top_p: 0 } },
  top_logprobs: { good: 5, becomes: { logprobs: { top: 5 } } },
  include: { good: ['message.output_text.logprobs'], becomes: { logprobs: {} } },
  stream: { good: true, becomes: { stream: true } },
  stream_options: { good: { include_obfuscation: false }, becomes: {} },
  store: { good: false, becomes: { store: false } },
  metadata: { good: { team: 'one' }, becomes: { metadata: { team: 'one' } } },
  user: { good: 'me', becomes: { user: 'me' } },
  safety_identifier: { good: 'me', becomes: { safety_identifier: 'me' } },
  service_tier: { good: 'flex', becomes: { service_tier: 'flex' } },
  prompt_cache_key: { good: 'k', becomes: { cache: { key: 'k' } } },
  prompt_cache_retention: { good: '24h', becomes: { cache: { retention: '24h' } } },
  prompt_cache_options: { good: { mode: 'auto' }, becomes: { cache: { options: { mode: 'auto' } } } },
  parallel_tool_calls: { good: false, becomes: { parallel_tool_calls: false } },
  moderation: { good: { model: 'm' }, becomes: { moderation: { model: 'm' } } },
  reasoning: {
    good: { effort: 'low', summary: 'auto' },
    becomes: { reasoning: { effort: 'low', summary: 'auto' } },
  },
  text: {
    good: { format: { type: 'json_schema', name: 'n', schema: {}, strict: true }, verbosity: 'low' },
    becomes: {
      response_format: { type: 'json_schema', name: 'n', schema: {}, strict: true },
      verbosity: 'low',
    },
  },
  tools: {
    good: [
      { type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
      { type: 'custom', name: 'c', format: { type: 'text' } },
      { type: 'web_search', filters: { allowed_domains: ['a.at'] }, search_context_size: 'low' },
      { type: 'file_search', vector_store_ids: ['v'] },
    ],
    becomes: {
      tools: [
        { kind: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
        { kind: 'custom', name: 'c', format: { type: 'text' } },
        {
          kind: 'file_search',
          by: 'responses',
          definition: { type: 'file_search', vector_store_ids: ['v'] },
        },
      ],
      web_search: { allowed_domains: ['a.at'], context_size: 'low' },
    },
  },
  tool_choice: { good: { type: 'function', name: 'f' }, becomes: { tool_choice: { name: 'f' } } },
  truncation: { good: 'auto', becomes: { extensions: { truncation: 'auto' } } },
  max_tool_calls: { good: 3, becomes: { extensions: { max_tool_calls: 3 } } },
  prompt: { good: { id: 'p' }, becomes: { extensions: { prompt: { id: 'p' } } } },
  conversation: { good: 'conv_1', becomes: { extensions: { conversation: 'conv_1' } } },
  context_management: {
    good: [{ type: 'compaction' }],
    becomes: { extensions: { context_management: [{ type: 'compaction' }] } },
  },
  background: { good: false, becomes: {} },
  previous_response_id: { good: 'resp_1', becomes: {} },
}

/** Values that are wrong, and the field that the error names where it is not the whole one. */
const wrong: readonly [name: string, value: Json, param?: string][] = [
  ['model', 7],
  ['model', ''],
  ['model', null],
  ['input', null],
  ['input', ''],
  ['input', []],
  ['input', 7],
  ['input', { role: 'user', content: 'Hi' }],
  ['input', ['Hi'], 'input[0]'],
  ['input', [{ content: 'Hi' }], 'input[0].role'],
  ['input', [{ role: 'tool', content: 'Hi' }], 'input[0].role'],
  ['input', [{ role: 'user' }], 'input[0].content'],
  ['input', [{ role: 'user', content: 7 }], 'input[0].content'],
  ['input', [{ role: 'user', content: ['Hi'] }], 'input[0].content[0]'],
  ['input', [{ role: 'user', content: [{ text: 'Hi' }] }], 'input[0].content[0].type'],
  ['input', [{ role: 'user', content: [{ type: 'input_text' }] }], 'input[0].content[0].text'],
  ['input', [{ role: 'user', content: [{ type: 'input_image' }] }], 'input[0].content[0].image_url'],
  ['input', [{ role: 'user', content: [{ type: 'input_file' }] }], 'input[0].content[0]'],
  ['input', [{ type: 'function_call', name: 'f', arguments: '{}' }], 'input[0].call_id'],
  ['input', [{ type: 'function_call', call_id: 'c', arguments: '{}' }], 'input[0].name'],
  ['input', [{ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }], 'input[0].arguments'],
  ['input', [{ type: 'custom_tool_call', call_id: 'c', name: 'f' }], 'input[0].input'],
  ['input', [{ type: 'function_call_output', output: 'rain' }], 'input[0].call_id'],
  ['input', [{ type: 'function_call_output', call_id: 'c', output: 7 }], 'input[0].output'],
  ['instructions', ['Be brief.']],
  ['max_output_tokens', 0],
  ['max_output_tokens', -1],
  ['max_output_tokens', 1.5],
  ['max_output_tokens', '100'],
  ['temperature', 2.1],
  ['temperature', -0.1],
  ['temperature', '1'],
  ['top_p', 1.1],
  ['top_p', -0.1],
  ['top_logprobs', 21],
  ['top_logprobs', -1],
  ['include', 'reasoning.encrypted_content'],
  ['include', [7], 'include[0]'],
  ['stream', 'true'],
  ['stream_options', true],
  ['store', 'false'],
  ['metadata', { team: 1 }, 'metadata.team'],
  ['metadata', []],
  ['user', 7],
  ['safety_identifier', 7],
  ['service_tier', 7],
  ['prompt_cache_key', 7],
  ['prompt_cache_retention', 7],
  ['prompt_cache_options', 'auto'],
  ['parallel_tool_calls', 1],
  ['moderation', 'model'],
  ['reasoning', 'low'],
  ['reasoning', { effort: 'lots' }, 'reasoning.effort'],
  ['reasoning', { summary: 7 }, 'reasoning.summary'],
  ['reasoning', { summary: 'verbose' }, 'reasoning.summary'],
  ['reasoning', { generate_summary: 'verbose' }, 'reasoning.generate_summary'],
  ['text', 'json'],
  ['text', { format: 'json_object' }, 'text.format'],
  ['text', { format: { type: 'yaml' } }, 'text.format.type'],
  ['text', { format: { type: 'json_schema', name: 'n' } }, 'text.format.schema'],
  ['text', { format: { type: 'json_schema', schema: {} } }, 'text.format.name'],
  ['text', { verbosity: 1 }, 'text.verbosity'],
  ['tools', {}],
  ['tools', [{}], 'tools[0].type'],
  ['tools', [{ type: 'function' }], 'tools[0].name'],
  ['tools', [{ type: 'function', name: 'f', parameters: 'none' }], 'tools[0].parameters'],
  ['tools', [{ type: 'web_search', search_context_size: 'huge' }], 'tools[0].search_context_size'],
  ['tool_choice', 'any'],
  ['tool_choice', { type: 'function' }, 'tool_choice.name'],
  ['tool_choice', { type: 'allowed_tools', mode: 'auto' }, 'tool_choice.tools'],
  ['truncation', 'middle'],
  ['max_tool_calls', 0],
  ['prompt', 'p'],
  ['conversation', 7],
  ['context_management', {}],
  ['background', 'no'],
  ['background', true],
  ['previous_response_id', 7],
  ['previous_response_id', ''],
]

describe('a Responses request', () => {
  it.skipIf(schemaMissing)('has no published field that is not tested here', () => {
    expect(propertiesOf('CreateResponse').toSorted()).toEqual(Object.keys(fields).toSorted())
    expect(new Set(wrong.map(([name]) => name))).toEqual(new Set(Object.keys(fields)))
  })

  it.each(Object.entries(fields))('keeps %s', (name, { good, becomes }) => {
    const { origin, ...request } = read({ [name]: good })
    const { origin: _origin, ...bare } = read({})
    expect(request).toEqual({ ...bare, ...becomes })
    expect(origin).toEqual({ api: 'responses', body: { ...requested, [name]: good } })
  })

  it.each(Object.keys(fields).filter((name) => name !== 'model' && name !== 'input'))(
    'takes null for no %s',
    (name) => {
      const { origin: _origin, ...request } = read({ [name]: null })
      const { origin: _bare, ...bare } = read({})
      expect(request).toEqual(bare)
    },
  )

  it.each(wrong)('is refused with %s: %j', (name, value, param = name) => {
    const error = refused({ [name]: value })
    expect([error.code, error.param]).toEqual(['invalid_request', param])
    expect(error.message).toContain(`'${param}'`)
  })

  it('is refused without model or input, and when it is no object', () => {
    expect(() => responses.read({ input: 'Hello' })).toThrow("'model' is missing")
    expect(() => responses.read({ model: 'm' })).toThrow("'input' is missing: it must be a string or an array")
    for (const body of [null, 'Hello', []]) expect(() => responses.read(body)).toThrow('must be a JSON object')
  })

  it('refers to earlier turns in one way only', () => {
    expect(refused({ conversation: 'c', previous_response_id: 'r' }).param).toBe('conversation')
  })

  it('keeps fields that nobody knows', () => {
    expect(read({ brand_new: { a: [1] } }).extensions).toEqual({ brand_new: { a: [1] } })
  })

  it.skipIf(recordingsMissing).each(recordings('openai-responses').filter(({ request }) => request?.body))(
    'of $case is accepted and stays as it is, except for nulls',
    ({ request }) => {
      const before = structuredClone(request?.body)
      const { origin } = responses.read(request?.body)
      expect(origin.body).toEqual(before)
      const facts = { model: before.model, stream: before.stream === true, dropped: [] }
      const filled = (body: unknown) => JSON.parse(JSON.stringify(body), (_, value) => value ?? undefined)
      expect(filled(responses.editRequest(origin.body, facts))).toEqual(filled(before))
    },
  )
})

describe('input', () => {
  const partOf = (part: JsonObject): Part | undefined =>
    read({ input: [{ role: 'user', content: [part] }] }).messages[0]?.parts[0]
  const turnOf = (...items: Json[]): Part[] => {
    const { messages } = read({ input: [{ role: 'user', content: 'Hello' }, ...items] })
    expect(messages.length).toBeLessThanOrEqual(2)
    return messages[1]?.parts ?? []
  }

  it.each<[JsonObject, Part]>([
    [
      { type: 'input_text', text: 'Hi' },
      { type: 'text', text: 'Hi' },
    ],
    [
      { type: 'input_text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit' } },
      { type: 'text', text: 'Hi', cache: {} },
    ],
    [
      { type: 'input_image', image_url: 'https://a.at/b.png', detail: 'low' },
      { type: 'image', url: 'https://a.at/b.png', detail: 'low' },
    ],
    [
      { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
      { type: 'image', data: 'AAAA', media_type: 'image/png' },
    ],
    [
      { type: 'input_image', file_id: 'file-1', image_url: null },
      { type: 'image', file_id: 'file-1' },
    ],
    [
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' },
      { type: 'file', data: 'AAAA', media_type: 'application/pdf', filename: 'a.pdf' },
    ],
    [
      { type: 'input_file', file_data: 'AAAA' },
      { type: 'file', data: 'AAAA', media_type: 'application/pdf' },
    ],
    [
      { type: 'input_file', file_url: 'https://a.at/b.pdf' },
      { type: 'file', url: 'https://a.at/b.pdf' },
    ],
    [
      { type: 'input_file', file_id: 'file-1' },
      { type: 'file', file_id: 'file-1' },
    ],
    [
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'audio', data: 'AAAA', media_type: 'audio/wav' },
    ],
    [
      { type: 'input_hologram', depth: 3 },
      { type: 'opaque', body: { type: 'input_hologram', depth: 3 } },
    ],
  ])('part %j', (part, expected) => {
    expect(partOf(part)).toEqual(expected)
  })

  it('has the messages of an assistant, with refusals under both of their names', () => {
    const annotation = { type: 'url_citation', url: 'https://a.at', title: 'A', start_index: 0, end_index: 2 }
    const content = [
      { type: 'output_text', text: 'Hi', annotations: [annotation, { type: 'file_path', file_id: 'f', index: 0 }] },
      { type: 'refusal', refusal: 'No.' },
      { type: 'output_refusal', refusal: 'Never.' },
    ]
    expect(turnOf({ type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content })).toEqual([
      { type: 'text', text: 'Hi', citations: [{ url: 'https://a.at', title: 'A', start: 0, end: 2 }] },
      { type: 'refusal', text: 'No.' },
      { type: 'refusal', text: 'Never.' },
    ])
  })

  it('keeps instructions in the middle where they are, and the leading ones before', () => {
    const input = [
      { role: 'developer', content: 'One.' },
      { role: 'system', content: 'Two.' },
      { role: 'user', content: 'Hello' },
      { role: 'developer', content: 'Three.' },
    ]
    const { system, messages } = read({ instructions: 'Zero.', input })
    expect(system?.map((part) => (part as { text: string }).text)).toEqual(['Zero.', 'One.', 'Two.'])
    expect(messages.map(({ role }) => role)).toEqual(['user', 'system'])
  })

  it('puts the results of calls right after them, together, with the names of their tools', () => {
    const call = (id: string) => ({ type: 'function_call', call_id: id, name: `f${id}`, arguments: '{}' })
    const output = (id: string, result: Json) => ({ type: 'function_call_output', call_id: id, output: result })
    const input = [
      { role: 'user', content: 'Hello' },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed' },
      call('1'),
      call('2'),
      { role: 'user', content: 'Faster!' },
      output('2', [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }]),
      output('1', 'rain'),
    ]
    expect(read({ input }).messages.slice(1)).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', encrypted: 'sealed', id: 'rs_1' },
          { type: 'tool_call', id: '1', name: 'f1', arguments: '{}' },
          { type: 'tool_call', id: '2', name: 'f2', arguments: '{}' },
        ],
      },
      {
        role: 'user',
        parts: [
          {
            type: 'tool_result',
            id: '2',
            name: 'f2',
            parts: [{ type: 'image', data: 'AAAA', media_type: 'image/png' }],
          },
          { type: 'tool_result', id: '1', name: 'f1', parts: [{ type: 'text', text: 'rain' }] },
        ],
      },
      { role: 'user', parts: [{ type: 'text', text: 'Faster!' }] },
    ])
  })

  const known = ['message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output']
  const ofTools = ['apply_patch_call', 'shell_call', 'local_shell_call', 'computer_call'].flatMap((type) => [
    type,
    `${type}_output`,
  ])
  const handled = new Set([
    ...known,
    ...ofTools,
    'additional_tools',
    'reasoning',
    'web_search_call',
    'image_generation_call',
  ])

  it.skipIf(schemaMissing)('keeps every published item, those of one provider as they are', () => {
    const types = new Set([...choicesOf('Item').keys(), 'item_reference', 'compaction_trigger'])
    for (const type of handled) expect(types).toContain(type)
    for (const type of types) {
      const item = { type, id: 'x_1', what: 'ever' }
      if (!handled.has(type)) expect(turnOf(item)).toEqual([{ type: 'opaque', body: item }])
    }
  })

  it('reads searches and images that were made', () => {
    expect(
      turnOf(
        { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'news' } },
        { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AAAA', output_format: 'webp' },
        { type: 'image_generation_call', id: 'ig_2', status: 'completed', result: 'BBBB' },
      ),
    ).toEqual([
      { type: 'search', id: 'ws_1', query: 'news', status: 'completed' },
      { type: 'image', data: 'AAAA', media_type: 'image/webp' },
      { type: 'image', data: 'BBBB', media_type: 'image/png' },
    ])
  })
})

describe('a reply that the client sends back', () => {
  const readBack = (parts: Part[], change = (item: JsonObject) => item): Part[] => {
    const reply: Reply = { id: 'r', created: 1, parts, finish: 'stop', usage: {} }
    const { output } = responses.writeReply(reply, { model: 'maker/model', usage: {}, id: '0198' })
    const items = JSON.parse(JSON.stringify(output)).map(change)
    const question = { role: 'user', content: 'Hello' }
    return read({ input: [question, ...items, question] }).messages[1]?.parts ?? []
  }
  const by = 'maker'
  const parts: Part[] = [
    { type: 'reasoning', by, text: 'Think.', signature: 'sig' },
    { type: 'reasoning', by, summary: 'In short.', encrypted: 'blob', id: 'rs_9' },
    { type: 'reasoning', by, text: 'At length.', summary: 'In brief.' },
    { type: 'reasoning', by, encrypted: 'redacted' },
    {
      type: 'search',
      by,
      id: 'srv_1',
      query: 'news',
      status: 'completed',
      results: [{ url: 'https://a.at', signed: 'x' }],
    },
    { type: 'text', text: 'It rains.', citations: [{ url: 'https://a.at', title: 'A', start: 0, end: 2 }] },
    { type: 'text', text: ' A lot.', signature: 'text-seal', by },
    { type: 'opaque', by, body: { type: 'server_tool', deep: [1] } },
    { type: 'tool_call', id: 'c1', name: 'f', arguments: '{"a": 1}', signature: 'call-seal', by },
    { type: 'tool_call', id: 'c2', name: 'g', arguments: 'free text', kind: 'custom' },
    { type: 'image', data: 'AAAA', media_type: 'image/webp' },
    { type: 'refusal', text: 'No more.' },
  ]

  it('comes back whole: reasoning, searches, signatures, calls, in order', () => {
    expect(readBack(parts)).toEqual(parts)
  })

  it('comes back from clients that leave out ids and states', () => {
    const expected = parts.map((part) => {
      if (part.type !== 'search') return part
      const { status: _status, ...search } = part
      return search
    })
    expect(readBack(parts, ({ id: _id, status: _status, ...item }) => item)).toEqual(expected)
  })

  it('never reaches a provider of this format with signatures that this router wrote', () => {
    const reply: Reply = { id: 'r', created: 1, parts, finish: 'stop', usage: {} }
    const { output } = responses.writeReply(reply, { model: 'maker/model', usage: {}, id: '0198' })
    const body = { ...requested, input: output as Json[] }
    const edited = responses.editRequest(body, { model: 'm', stream: false, dropped: [] })
    expect(JSON.stringify(edited)).not.toContain('router1.')
    expect((edited.input as JsonObject[]).map(({ type }) => type)).toEqual([
      'web_search_call',
      'message',
      'function_call',
      'custom_tool_call',
      'image_generation_call',
      'message',
    ])
  })
})
