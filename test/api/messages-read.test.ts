import { describe, expect, it } from 'vitest'
import { messages } from '../../src/api/messages/api.ts'
import { knownNames } from '../../src/api/messages/fields.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { Json, JsonObject } from '../../src/core/json.ts'
import { type Recording, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { propertiesOf, schemaMissing } from './messagesSchema.ts'

const hello = { model: 'maker/model', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] }
const read = (members: object) => messages.read({ ...hello, ...members })
const turn = (...content: object[]) => read({ messages: [{ role: 'user', content }] }).messages[0]?.parts
const answer = (...content: object[]) => {
  return read({ messages: [...hello.messages, { role: 'assistant', content }] }).messages[1]?.parts
}

function refusal(body: unknown): RouterError {
  try {
    messages.read(body)
  } catch (error) {
    if (error instanceof RouterError) return error
    throw error
  }
  throw new Error('the body was accepted')
}

describe('a Messages body read as a neutral request', () => {
  it('keeps the original body', () => {
    expect(messages.read(hello)).toEqual({
      model: 'maker/model',
      max_output_tokens: 100,
      messages: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }],
      origin: { api: 'messages', body: hello },
    })
  })

  it('takes null for absent', () => {
    const nulls = Object.fromEntries([...knownNames].filter((name) => !(name in hello)).map((name) => [name, null]))
    const body = { ...nulls, ...hello, unknown: null }
    expect(messages.read(body)).toEqual({ ...messages.read(hello), origin: { api: 'messages', body } })
  })

  it('reads every sampling field', () => {
    const body = { temperature: 0, top_p: 1, top_k: 40, service_tier: 'standard_only', stream: true }
    expect(read(body)).toMatchObject(body)
    expect(read({ stop_sequences: ['a', 'b'] }).stop).toEqual(['a', 'b'])
    expect(read({ stop_sequences: [] })).not.toHaveProperty('stop')
    expect(read({ metadata: { user_id: 'u' } }).user).toBe('u')
    expect(read({ metadata: { user_id: null } })).not.toHaveProperty('user')
    expect(read({ cache_control: { type: 'ephemeral', ttl: '1h' } }).cache).toEqual({
      options: { type: 'ephemeral', ttl: '1h' },
    })
    expect(read({ max_tokens: 0 })).not.toHaveProperty('max_output_tokens')
  })

  it.each([
    [{ thinking: { type: 'enabled', budget_tokens: 2_000 } }, { budget: 2_000 }],
    [{ thinking: { type: 'adaptive' } }, { effort: 'medium' }],
    [{ thinking: { type: 'adaptive', display: 'summarized' } }, { effort: 'medium', summary: 'auto' }],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'max' } }, { effort: 'max' }],
    [{ thinking: { type: 'disabled' } }, { effort: 'none' }],
    [{ thinking: { type: 'between_tools' } }, { effort: 'none' }],
    [{ output_config: { effort: 'low' } }, { effort: 'low' }],
    [{ output_config: { effort: null } }, undefined],
  ])('reads %j as a wish to reason', (members, reasoning) => {
    expect(read({ max_tokens: 4_000, ...members }).reasoning).toEqual(reasoning)
  })

  it('reads the form of the answer, in its new and its former place', () => {
    const format = { type: 'json_schema', schema: { type: 'object' } }
    const form = { type: 'json_schema', name: 'output', schema: { type: 'object' }, strict: true }
    expect(read({ output_config: { format } }).response_format).toEqual(form)
    expect(read({ output_format: format }).response_format).toEqual(form)
  })

  it('keeps provider-specific fields as extensions', () => {
    const body = { container: 'c', speed: 'fast', context_management: { edits: [] }, mcp_servers: [] }
    expect(read(body).extensions).toEqual(body)
    expect(read({ output_config: { effort: 'low', task_budget: { total: 1 } } }).extensions).toEqual({
      output_config: { task_budget: { total: 1 } },
    })
    const tools = [{ type: 'bash_20250124', name: 'bash' }]
    expect(read({ tools }).tools).toMatchObject([{ kind: 'bash_20250124', by: 'messages', definition: tools[0] }])
    const cached = { ...tools[0], cache_control: { type: 'ephemeral', ttl: '1h' } }
    expect(read({ tools: [cached] }).tools).toMatchObject([{ definition: cached, cache: { ttl: '1h' } }])
  })

  it('reads the system text as blocks or a string', () => {
    expect(read({ system: 'Be brief.' }).system).toEqual([{ type: 'text', text: 'Be brief.' }])
    const system = [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '5m' } }]
    expect(read({ system }).system).toEqual([{ type: 'text', text: 'Be brief.', cache: { ttl: '5m' } }])
    expect(read({ system: '' })).not.toHaveProperty('system')
  })
})

describe('tools of a Messages body', () => {
  const input_schema = { type: 'object', properties: { city: { type: 'string' } } }

  it('are the client’s own, and web searches', () => {
    const request = read({
      tools: [
        { name: 'weather', description: 'd', input_schema, strict: true },
        { type: 'custom', name: 'now', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } },
        {
          type: 'web_search_20250305',
          name: 'web_search',
          max_uses: 2,
          allowed_domains: ['a.example'],
          user_location: { type: 'approximate', city: 'Rome', country: 'IT' },
        },
      ],
    })
    expect(request.tools).toEqual([
      { kind: 'function', name: 'weather', description: 'd', parameters: input_schema, strict: true },
      { kind: 'function', name: 'now', parameters: { type: 'object' }, cache: {} },
    ])
    expect(request.web_search).toEqual({
      max_uses: 2,
      allowed_domains: ['a.example'],
      user_location: { city: 'Rome', country: 'IT' },
    })
    expect(request).not.toHaveProperty('extensions')
  })

  it.each([
    [{ type: 'auto' }, { tool_choice: 'auto' }],
    [{ type: 'any' }, { tool_choice: 'required' }],
    [{ type: 'none' }, { tool_choice: 'none' }],
    [{ type: 'tool', name: 'f' }, { tool_choice: { name: 'f' } }],
    [
      { type: 'any', disable_parallel_tool_use: true },
      { tool_choice: 'required', parallel_tool_calls: false },
    ],
  ])('are chosen by %j', (tool_choice, chosen) => {
    expect(read({ tool_choice })).toMatchObject(chosen)
  })
})

describe('messages of a Messages body', () => {
  it('have media by data, URL or id', () => {
    expect(
      turn(
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        { type: 'image', source: { type: 'url', url: 'https://a.example/x.png' } },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }, title: 'T' },
        { type: 'document', source: { type: 'file', file_id: 'file_1' }, cache_control: { type: 'ephemeral' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'é' }, context: 'A letter.' },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'inside' }] } },
        { type: 'search_result', source: 'https://a.example', title: 'A', content: [{ type: 'text', text: 'found' }] },
      ),
    ).toEqual([
      { type: 'image', data: 'AAAA', media_type: 'image/png' },
      { type: 'image', url: 'https://a.example/x.png' },
      { type: 'file', data: 'AAAA', media_type: 'application/pdf', filename: 'T' },
      { type: 'file', file_id: 'file_1', cache: {} },
      { type: 'text', text: 'A letter.' },
      { type: 'file', data: 'w6k=', media_type: 'text/plain' },
      { type: 'text', text: 'inside' },
      { type: 'text', text: 'A — https://a.example\nfound' },
    ])
  })

  it('have calls and their results, with the names of the calls', () => {
    const request = read({
      messages: [
        ...hello.messages,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } }] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', is_error: true, content: 'broken' },
            { type: 'tool_result', tool_use_id: 'b' },
            { type: 'text', text: 'go on' },
          ],
        },
      ],
    })
    expect(request.messages.slice(1)).toEqual([
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'a', name: 'f', arguments: '{"x":1}' }] },
      {
        role: 'user',
        parts: [
          { type: 'tool_result', id: 'a', name: 'f', parts: [{ type: 'text', text: 'broken' }], is_error: true },
          { type: 'tool_result', id: 'b', parts: [] },
          { type: 'text', text: 'go on' },
        ],
      },
    ])
  })

  it('have reasoning with signatures of the provider', () => {
    expect(
      answer(
        { type: 'thinking', thinking: 'hm', signature: 'S' },
        { type: 'thinking', thinking: 'hm', signature: '' },
        { type: 'redacted_thinking', data: 'D' },
      ),
    ).toEqual([
      { type: 'reasoning', text: 'hm', signature: 'S' },
      { type: 'reasoning', text: 'hm' },
      { type: 'reasoning', encrypted: 'D' },
    ])
  })

  it('have searches with their results as one part, and unknown blocks unchanged', () => {
    const results = [{ type: 'web_search_result', url: 'u', title: 't', encrypted_content: 'E' }]
    const strange = { type: 'novelty', x: 1 }
    expect(
      answer(
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: results },
        strange,
      ),
    ).toEqual([
      { type: 'search', id: 'srvtoolu_1', query: 'q', results, status: 'completed' },
      { type: 'opaque', body: strange },
    ])
  })

  it('may give instructions in the middle', () => {
    const later = [...hello.messages, { role: 'system', content: 'From now on, rhyme.' }]
    expect(read({ messages: later }).messages[1]).toMatchObject({ role: 'system' })
  })
})

describe('a Messages body that is wrong', () => {
  const { max_tokens: _limit, ...unlimited } = hello
  const blocks = (...content: Json[]) => ({ messages: [{ role: 'user', content }] })

  it('without a limit is refused for that', () => {
    expect(refusal(unlimited)).toMatchObject({ code: 'invalid_request', status: 400, param: 'max_tokens' })
  })

  it.each<[object, string, string]>([
    [{ model: undefined }, 'model', 'missing'],
    [{ model: '' }, 'model', 'empty'],
    [{ model: 3 }, 'model', 'not 3'],
    [{ max_tokens: -1 }, 'max_tokens', 'at least 0'],
    [{ max_tokens: 1.5 }, 'max_tokens', 'whole number'],
    [{ max_tokens: '100' }, 'max_tokens', "not '100'"],
    [{ messages: undefined }, 'messages', 'missing'],
    [{ messages: 'hello' }, 'messages', 'an array'],
    [{ messages: [] }, 'messages', 'empty'],
    [{ messages: ['hello'] }, 'messages[0]', 'an object'],
    [{ messages: [{ content: 'x' }] }, 'messages[0].role', 'missing'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].role', "not 'tool'"],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content', 'missing'],
    [{ messages: [{ role: 'user', content: 7 }] }, 'messages[0].content', 'not 7'],
    [blocks('x'), 'messages[0].content[0]', 'an object'],
    [blocks({}), 'messages[0].content[0].type', 'missing'],
    [blocks({ type: 'text' }), 'messages[0].content[0].text', 'missing'],
    [blocks({ type: 'image' }), 'messages[0].content[0].source', 'missing'],
    [blocks({ type: 'image', source: { type: 'x' } }), 'messages[0].content[0].source.type', "not 'x'"],
    [
      blocks({ type: 'image', source: { type: 'base64', data: 'A' } }),
      'messages[0].content[0].source.media_type',
      'missing',
    ],
    [blocks({ type: 'document', source: { type: 'url' } }), 'messages[0].content[0].source.url', 'missing'],
    [blocks({ type: 'tool_use', name: 'f' }), 'messages[0].content[0].id', 'missing'],
    [blocks({ type: 'tool_use', id: 'a' }), 'messages[0].content[0].name', 'missing'],
    [blocks({ type: 'tool_use', id: 'a', name: 'f', input: '{}' }), 'messages[0].content[0].input', 'an object'],
    [blocks({ type: 'tool_result' }), 'messages[0].content[0].tool_use_id', 'missing'],
    [blocks({ type: 'tool_result', tool_use_id: 'a', content: 7 }), 'messages[0].content[0].content', 'not 7'],
    [blocks({ type: 'tool_result', tool_use_id: 'a', is_error: 'no' }), 'messages[0].content[0].is_error', "not 'no'"],
    [blocks({ type: 'thinking' }), 'messages[0].content[0].thinking', 'missing'],
    [{ system: 7 }, 'system', 'not 7'],
    [{ system: [{ type: 'text', text: 7 }] }, 'system[0].text', 'not 7'],
    [{ temperature: 1.5 }, 'temperature', 'from 0 to 1'],
    [{ temperature: 'hot' }, 'temperature', "not 'hot'"],
    [{ top_p: 2 }, 'top_p', 'from 0 to 1'],
    [{ top_k: -1 }, 'top_k', 'at least 0'],
    [{ stop_sequences: 'END' }, 'stop_sequences', 'an array'],
    [{ stop_sequences: [1] }, 'stop_sequences[0]', 'a string'],
    [{ stream: 'yes' }, 'stream', 'true or false'],
    [{ metadata: 'u' }, 'metadata', 'an object'],
    [{ metadata: { user_id: 7 } }, 'metadata.user_id', 'a string'],
    [{ service_tier: 7 }, 'service_tier', 'a string'],
    [{ cache_control: 'yes' }, 'cache_control', 'an object'],
    [{ tools: {} }, 'tools', 'an array'],
    [{ tools: [{}] }, 'tools[0].name', 'missing'],
    [{ tools: [{ name: 'f', input_schema: 'x' }] }, 'tools[0].input_schema', 'an object'],
    [{ tools: [{ name: 'f' }] }, 'tools[0].input_schema', 'missing'],
    [{ tools: [{ type: 'web_search_20250305', max_uses: 0 }] }, 'tools[0].max_uses', 'at least 1'],
    [{ tool_choice: 'auto' }, 'tool_choice', 'an object'],
    [{ tool_choice: {} }, 'tool_choice.type', 'missing'],
    [{ tool_choice: { type: 'sometimes' } }, 'tool_choice.type', "not 'sometimes'"],
    [{ tool_choice: { type: 'tool' } }, 'tool_choice.name', 'missing'],
    [{ thinking: true }, 'thinking', 'an object'],
    [{ thinking: { type: 'maybe' } }, 'thinking.type', "not 'maybe'"],
    [{ thinking: { type: 'enabled' } }, 'thinking.budget_tokens', 'missing'],
    [{ thinking: { type: 'enabled', budget_tokens: 100 } }, 'thinking.budget_tokens', 'at least 1024'],
    [{ output_config: { effort: 'some' } }, 'output_config.effort', "not 'some'"],
    [{ output_config: { format: { type: 'text' } } }, 'output_config.format.type', "not 'text'"],
    [{ output_config: { format: { type: 'json_schema' } } }, 'output_config.format.schema', 'missing'],
    [{ output_format: { type: 'json_schema' } }, 'output_format.schema', 'missing'],
  ])('%j is refused with the field named', (members, param, message) => {
    const error = refusal({ ...hello, ...members })
    expect(error).toMatchObject({ code: 'invalid_request', status: 400, param })
    expect(error.message).toContain(`'${param}'`)
    expect(error.message).toContain(message)
    expect(messages.writeError(error, 'req_1')).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: error.message, param },
      request_id: 'req_1',
    })
  })

  it.each([[undefined], [null], [[]], ['text'], [7]])('%j is no body at all', (body) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_request', status: 400 })
  })

  it('is never repeated at length', () => {
    expect(refusal({ ...hello, stream: 'x'.repeat(10_000) }).message.length).toBeLessThan(120)
  })
})

describe.skipIf(schemaMissing)('the published request schema', () => {
  it('has no property that this face neither reads nor passes on', () => {
    const passedOn = ['container', 'diagnostics', 'inference_geo', 'speed', 'user_profile_id', 'workspace_id']
    const properties = ['MessageCreateParamsNonStreaming', 'MessageCreateParamsStreaming'].flatMap(propertiesOf)
    expect(properties.length).toBeGreaterThan(30)
    for (const name of new Set(properties)) {
      expect(knownNames.has(name) !== passedOn.includes(name), name).toBe(true)
    }
    const passed = Object.fromEntries(passedOn.map((name) => [name, 'x']))
    expect(read(passed).extensions).toEqual(passed)
  })
})

describe.skipIf(recordingsMissing)('recorded requests for Messages', () => {
  // Its provider rejected it as well: the schema of its tool is `true`.
  const exceptions = ['anthropic-messages/error-400__anthropic.claude-sonnet-4-6__618c0f']
  const sent = recordings('anthropic-messages').filter((recording) => {
    return recording.request?.body?.messages && !exceptions.includes(recording.case)
  })

  it('are many', () => expect(sent.length).toBeGreaterThan(50))

  it.each(sent.map((recording): [string, Recording] => [recording.case, recording]))('%s', (_, recording) => {
    // One cloud has the model in the address.
    const body: JsonObject = { model: 'in-the-address', ...recording.request?.body }
    const request = messages.read(body)
    const history = body.messages as JsonObject[]
    expect(request.messages.map(({ role }) => role)).toEqual(history.map(({ role }) => role))
    expect(request.messages.every(({ parts }) => parts.length > 0)).toBe(true)
    const calls = (type: string) => JSON.stringify(history).split(`"type":"${type}"`).length - 1
    const read = (type: string) => request.messages.flatMap(({ parts }) => parts).filter((part) => part.type === type)
    expect(read('tool_call').length).toBe(calls('tool_use'))
    expect(read('tool_result').length).toBe(calls('tool_result'))
    const stream = body.stream === true
    const edited = messages.editRequest(body, { model: 'other', stream, dropped: [] })
    expect(edited).toEqual({ ...body, model: 'other' })
  })
})
