import { describe, expect, it } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { knownNames } from '../../src/api/chat/fields.ts'
import { RouterError } from '../../src/core/errors.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { type Recording, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { propertiesOf, schemaMissing } from './chatSchema.ts'

const hello = { model: 'maker/model', messages: [{ role: 'user', content: 'hello' }] }
const read = (members: object) => chat.read({ ...hello, ...members })
const history = (...messages: object[]) => chat.read({ model: 'maker/model', messages })

function refusal(body: unknown): RouterError {
  try {
    chat.read(body)
  } catch (error) {
    if (error instanceof RouterError) return error
    throw error
  }
  throw new Error('the body was accepted')
}

describe('a chat body read as a neutral request', () => {
  it('keeps the original body', () => {
    expect(chat.read(hello)).toEqual({
      model: 'maker/model',
      messages: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }],
      origin: { api: 'chat', body: hello },
    })
  })

  it('takes null for absent', () => {
    const nulls = Object.fromEntries([...knownNames].filter((name) => name !== 'messages').map((name) => [name, null]))
    expect(chat.read({ ...nulls, ...hello, unknown: null })).toEqual({
      ...chat.read(hello),
      origin: { api: 'chat', body: { ...nulls, ...hello, unknown: null } },
    })
  })

  it('reads every sampling field', () => {
    const body = {
      temperature: 0,
      top_p: 1,
      top_k: 40,
      seed: 7,
      frequency_penalty: -2,
      presence_penalty: 2,
      logit_bias: { '50256': -100 },
      n: 2,
      parallel_tool_calls: false,
      modalities: ['text', 'audio'],
      audio: { voice: { id: 'v1' }, format: 'wav' },
      prediction: { type: 'content', content: 'so it goes' },
      service_tier: 'flex',
      verbosity: 'low',
      user: 'u',
      safety_identifier: 's',
      metadata: { team: 'blue' },
      store: true,
      moderation: { model: 'm' },
      stream: true,
    }
    expect(read(body)).toMatchObject(body)
    expect(read({ stop: 'END' }).stop).toEqual(['END'])
    expect(read({ stop: ['a', 'b'] }).stop).toEqual(['a', 'b'])
    expect(read({ stop: [] })).not.toHaveProperty('stop')
    expect(read({ logprobs: true, top_logprobs: 3 }).logprobs).toEqual({ top: 3 })
    expect(read({ logprobs: true }).logprobs).toEqual({})
    expect(read({ logprobs: false })).not.toHaveProperty('logprobs')
    expect(read({ max_tokens: 5 }).max_output_tokens).toBe(5)
    expect(read({ max_tokens: 5, max_completion_tokens: 6 }).max_output_tokens).toBe(6)
    expect(read({ prompt_cache_key: 'k', prompt_cache_retention: '24h' }).cache).toEqual({ key: 'k', retention: '24h' })
  })

  it('reads reasoning settings in all their forms', () => {
    expect(read({ reasoning_effort: 'xhigh' }).reasoning).toEqual({ effort: 'xhigh' })
    expect(read({ reasoning: { effort: 'low', summary: 'auto' } }).reasoning).toEqual({
      effort: 'low',
      summary: 'auto',
      visible: true,
    })
    expect(read({ reasoning: { max_tokens: 2000 } }).reasoning).toEqual({ budget: 2000, visible: true })
    expect(read({ reasoning: { enabled: true } }).reasoning).toEqual({ effort: 'medium', visible: true })
    expect(read({ reasoning: { enabled: false } }).reasoning).toEqual({ effort: 'none', visible: true })
    expect(read({ thinking: { type: 'enabled', budget_tokens: 1024 } }).reasoning).toEqual({ budget: 1024 })
    expect(read({ thinking: { type: 'disabled' } }).reasoning).toEqual({ effort: 'none' })
    expect(read({ thinking: { type: 'enabled' }, reasoning_effort: 'high' }).reasoning).toEqual({ effort: 'high' })
  })

  it('keeps provider-specific fields as extensions', () => {
    expect(read({ min_p: 0.1, guidance: { scale: 2 } }).extensions).toEqual({ min_p: 0.1, guidance: { scale: 2 } })
    expect(read({ min_p: 0.1, provider: { order: ['a'] }, models: ['a/b'] }).extensions).toEqual({ min_p: 0.1 })
    expect(read({ reasoning_effort: 'default' })).toMatchObject({ extensions: { reasoning_effort: 'default' } })
    expect(read({ reasoning_effort: 'default' })).not.toHaveProperty('reasoning')
    expect(read({ reasoning: { effort: 'low', exclude: true } })).toMatchObject({
      reasoning: { effort: 'low' },
      extensions: { reasoning: { exclude: true } },
    })
    expect(read({ response_format: { type: 'regex', pattern: 'a+' } }).extensions).toEqual({
      response_format: { type: 'regex', pattern: 'a+' },
    })
    const hostile = chat.read(JSON.parse(JSON.stringify(hello).replace('{', '{"__proto__":{"a":1},')))
    expect(JSON.stringify(hostile.extensions)).toBe('{"__proto__":{"a":1}}')
    expect(Object.getPrototypeOf(hostile.extensions)).toBe(Object.prototype)
  })

  it('reads response formats', () => {
    const schema = { type: 'object', properties: {} }
    expect(read({ response_format: { type: 'text' } }).response_format).toEqual({ type: 'text' })
    expect(read({ response_format: { type: 'json_object' } }).response_format).toEqual({ type: 'json' })
    const json_schema = { name: 'answer', description: 'd', schema, strict: true }
    expect(read({ response_format: { type: 'json_schema', json_schema } }).response_format).toEqual({
      type: 'json_schema',
      ...json_schema,
    })
    expect(
      read({ response_format: { type: 'json_schema', json_schema: { name: 'a', strict: null } } }).response_format,
    ).toEqual({ type: 'json_schema', name: 'a' })
  })
})

describe('tools of a chat body', () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } } }

  it('are functions, custom tools and web searches', () => {
    const request = read({
      tools: [
        { type: 'function', function: { name: 'weather', description: 'd', parameters, strict: true } },
        { type: 'function', function: { name: 'now' }, cache_control: { type: 'ephemeral', ttl: '1h' } },
        { type: 'custom', custom: { name: 'shell', format: { type: 'text' } } },
        { type: 'web_search', max_uses: 2, allowed_domains: ['a.example'], search_context_size: 'low' },
      ],
    })
    expect(request.tools).toEqual([
      { kind: 'function', name: 'weather', description: 'd', parameters, strict: true },
      { kind: 'function', name: 'now', cache: { ttl: '1h' } },
      { kind: 'custom', name: 'shell', format: { type: 'text' } },
    ])
    expect(request.web_search).toEqual({ max_uses: 2, allowed_domains: ['a.example'], context_size: 'low' })
  })

  it.each([
    [{ tools: [{ type: 'web_search' }] }, {}],
    [
      { tools: [{ type: 'web_search_20250305', name: 'web_search', blocked_domains: ['b'] }] },
      { blocked_domains: ['b'] },
    ],
    [{ tools: [{ type: 'web_search_preview', filters: { allowed_domains: ['a'] } }] }, { allowed_domains: ['a'] }],
    [{ tools: [{ type: 'some:web_search', parameters: { excluded_domains: ['b'] } }] }, { blocked_domains: ['b'] }],
    [{ web_search_options: {} }, {}],
    [
      {
        web_search_options: {
          search_context_size: 'high',
          user_location: { type: 'approximate', approximate: { city: 'Rome', country: 'IT' } },
        },
      },
      { context_size: 'high', user_location: { city: 'Rome', country: 'IT' } },
    ],
    [
      { tools: [{ type: 'web_search', user_location: { type: 'approximate', city: 'Rome' } }] },
      { user_location: { city: 'Rome' } },
    ],
  ])('ask for web search as %j', (members, search) => {
    expect(read(members).web_search).toEqual(search)
    expect(read(members)).not.toHaveProperty('tools')
    expect(read(members)).not.toHaveProperty('extensions')
  })

  it.each([
    ['auto', 'auto'],
    ['none', 'none'],
    ['required', 'required'],
    ['any', 'required'],
    [{ type: 'function', function: { name: 'f' } }, { name: 'f' }],
    [{ type: 'custom', custom: { name: 'c' } }, { name: 'c' }],
    [
      {
        type: 'allowed_tools',
        allowed_tools: {
          mode: 'required',
          tools: [
            { type: 'function', function: { name: 'f' } },
            { type: 'custom', custom: { name: 'c' } },
          ],
        },
      },
      { mode: 'required', allowed: ['f', 'c'] },
    ],
  ])('are chosen by %j', (tool_choice, choice) => {
    expect(read({ tool_choice }).tool_choice).toEqual(choice)
  })

  it('may still be functions in the former way', () => {
    const request = history(
      { role: 'user', content: 'twice' },
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: 'one' },
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":2}' } },
      { role: 'function', name: 'f', content: null },
    )
    expect(request.messages.slice(1).flatMap(({ parts }) => parts)).toEqual([
      { type: 'tool_call', id: 'call_1', name: 'f', arguments: '{}' },
      { type: 'tool_result', id: 'call_1', name: 'f', parts: [{ type: 'text', text: 'one' }] },
      { type: 'tool_call', id: 'call_3', name: 'f', arguments: '{"a":2}' },
      { type: 'tool_result', id: 'call_3', name: 'f', parts: [] },
    ])
    expect(read({ functions: [{ name: 'f', parameters }], function_call: { name: 'f' } })).toMatchObject({
      tools: [{ kind: 'function', name: 'f', parameters }],
      tool_choice: { name: 'f' },
    })
  })
})

describe('messages of a chat body', () => {
  it('put leading instructions apart and leave later ones in their place', () => {
    const request = history(
      { role: 'system', content: 'a' },
      { role: 'developer', content: [{ type: 'text', text: 'b', cache_control: { type: 'ephemeral' } }] },
      { role: 'user', content: 'c', name: 'Ann' },
      { role: 'developer', content: 'd' },
    )
    expect(request.system).toEqual([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b', cache: {} },
    ])
    expect(request.messages).toEqual([
      { role: 'user', parts: [{ type: 'text', text: 'c' }], name: 'Ann' },
      { role: 'system', parts: [{ type: 'text', text: 'd' }] },
    ])
  })

  it('gather the results of tools into one user message, with the names of their calls', () => {
    const request = history(
      { role: 'user', content: 'both' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [
          { id: '1', type: 'function', function: { name: 'add', arguments: '{"a": 1}' } },
          { id: '2', type: 'custom', custom: { name: 'shell', input: 'ls' } },
        ],
      },
      { role: 'tool', tool_call_id: '1', content: '3' },
      {
        role: 'tool',
        tool_call_id: '2',
        content: [
          { type: 'text', text: 'x' },
          { type: 'text', text: 'y' },
        ],
      },
      { role: 'user', content: 'and?' },
    )
    expect(request.messages.slice(1)).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'tool_call', id: '1', name: 'add', arguments: '{"a": 1}' },
          { type: 'tool_call', id: '2', name: 'shell', arguments: 'ls', kind: 'custom' },
        ],
      },
      {
        role: 'user',
        parts: [
          { type: 'tool_result', id: '1', name: 'add', parts: [{ type: 'text', text: '3' }] },
          {
            type: 'tool_result',
            id: '2',
            name: 'shell',
            parts: [
              { type: 'text', text: 'x' },
              { type: 'text', text: 'y' },
            ],
          },
        ],
      },
      { role: 'user', parts: [{ type: 'text', text: 'and?' }] },
    ])
  })

  it.each([
    [
      { type: 'image_url', image_url: { url: 'data:image/PNG;base64,AAAA', detail: 'low' } },
      { type: 'image', data: 'AAAA', media_type: 'image/png', detail: 'low' },
    ],
    [
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
      { type: 'image', url: 'https://a.example/b.png' },
    ],
    [
      { type: 'image_url', image_url: 'gs://bucket/b.png' },
      { type: 'image', url: 'gs://bucket/b.png' },
    ],
    [
      { type: 'image_url', image_url: { url: 'data:image/svg+xml,%3Csvg%2F%3E' } },
      { type: 'image', data: 'PHN2Zy8+', media_type: 'image/svg+xml' },
    ],
    [
      { type: 'input_audio', input_audio: { data: 'BBBB', format: 'mp3' } },
      { type: 'audio', data: 'BBBB', media_type: 'audio/mpeg' },
    ],
    [
      { type: 'input_audio', input_audio: { data: 'BBBB', format: 'wav' } },
      { type: 'audio', data: 'BBBB', media_type: 'audio/wav' },
    ],
    [
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,CCCC' } },
      { type: 'file', data: 'CCCC', media_type: 'application/pdf', filename: 'a.pdf' },
    ],
    [
      { type: 'file', file: { filename: 'a.csv', file_data: 'CCCC' } },
      { type: 'file', data: 'CCCC', media_type: 'text/csv', filename: 'a.csv' },
    ],
    [
      { type: 'file', file: { file_data: 'https://a.example/a.pdf' } },
      { type: 'file', url: 'https://a.example/a.pdf' },
    ],
    [
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'file', file_id: 'file-1' },
    ],
    [
      { type: 'video_url', video_url: { url: 'https://a.example/a.mp4' } },
      { type: 'video', url: 'https://a.example/a.mp4' },
    ],
    [
      { type: 'document_url', document_url: 'https://a.example/a.pdf' },
      { type: 'file', url: 'https://a.example/a.pdf' },
    ],
    [
      { type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } },
      { type: 'text', text: 'a', cache: {} },
    ],
    [
      {
        type: 'image_url',
        image_url: { url: 'https://a.example/b.png' },
        cache_control: { type: 'ephemeral', ttl: '5m' },
      },
      { type: 'image', url: 'https://a.example/b.png', cache: { ttl: '5m' } },
    ],
  ])('hold the part %j', (part, neutral) => {
    expect(history({ role: 'user', content: [part] }).messages[0]?.parts).toEqual([neutral])
  })

  it.each([
    [{ content: null, refusal: 'no' }, [{ type: 'refusal', text: 'no' }]],
    [
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      [
        { type: 'text', text: 'a' },
        { type: 'refusal', text: 'no' },
      ],
    ],
    [{ content: null, audio: { id: 'audio_1' } }, [{ type: 'audio', id: 'audio_1' }]],
    [{ content: '' }, [{ type: 'text', text: '' }]],
    [{}, [{ type: 'text', text: '' }]],
    [
      { content: 'b', reasoning_content: 'a' },
      [
        { type: 'reasoning', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    ],
    [
      { content: 'b', reasoning: 'a', refusal: null, annotations: [], function_call: null },
      [
        { type: 'reasoning', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    ],
    [
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'a' }] },
          { type: 'text', text: 'b' },
        ],
      },
      [
        { type: 'reasoning', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    ],
    [
      { tool_calls: [{ id: '1', function: { name: 'f' } }] },
      [{ type: 'tool_call', id: '1', name: 'f', arguments: '' }],
    ],
    [
      { tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: { a: 1 } } }] },
      [{ type: 'tool_call', id: '1', name: 'f', arguments: '{"a":1}' }],
    ],
    [
      {
        tool_calls: [
          {
            id: '1',
            type: 'function',
            function: { name: 'f', arguments: '{}' },
            extra_content: { maker: { thought_signature: 'S' } },
          },
        ],
      },
      [{ type: 'tool_call', id: '1', name: 'f', arguments: '{}', signature: 'S', by: 'maker' }],
    ],
    [
      {
        content: 'c',
        reasoning: 'ignored beside details',
        reasoning_details: [
          { type: 'reasoning.summary', summary: 's', format: 'x-v1', index: 0 },
          { type: 'reasoning.encrypted', data: 'E', id: 'rs_1', format: 'x-v1', index: 0 },
          { type: 'reasoning.text', text: 'half ', format: 'y', index: 1 },
          { type: 'reasoning.text', text: 'and half', format: 'y', index: 1 },
          { type: 'reasoning.text', text: '', signature: 'S', format: 'y', index: 1 },
          { type: 'something.new' },
          null,
        ],
      },
      [
        { type: 'reasoning', summary: 's', encrypted: 'E', id: 'rs_1', by: 'x-v1' },
        { type: 'reasoning', text: 'half and half', signature: 'S', by: 'y' },
        { type: 'text', text: 'c' },
      ],
    ],
  ])('hold the assistant message %j', (message, parts) => {
    expect(history({ role: 'assistant', ...message }).messages[0]?.parts).toEqual(parts)
  })
})

describe('a chat body that is wrong', () => {
  const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  const call = { id: '1', type: 'function', function: { name: 'f', arguments: '{}' } }

  it.each<[object, string, string]>([
    [{ model: undefined }, 'model', 'missing'],
    [{ model: 7 }, 'model', 'a string that is not empty, not 7'],
    [{ model: '' }, 'model', 'an empty string'],
    [{ messages: undefined }, 'messages', 'missing'],
    [{ messages: [] }, 'messages', 'at least one message'],
    [{ messages: 'hello' }, 'messages', 'an array'],
    [{ messages: ['hello'] }, 'messages[0]', 'an object'],
    [{ messages: [{ content: 'a' }] }, 'messages[0].role', 'missing'],
    [{ messages: [{ role: 'robot', content: 'a' }] }, 'messages[0].role', "not 'robot'"],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content', 'missing'],
    [{ messages: [{ role: 'system', content: null }] }, 'messages[0].content', 'missing'],
    [user(7), 'messages[0].content', 'a string or an array of content parts, not 7'],
    [user([]), 'messages[0].content', 'at least one'],
    [user([{ text: 'a' }]), 'messages[0].content[0].type', 'missing'],
    [user([{ type: 'text' }]), 'messages[0].content[0].text', 'missing'],
    [user([{ type: 'image_url' }]), 'messages[0].content[0].image_url', 'missing'],
    [
      user([
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: 5 } },
      ]),
      'messages[0].content[1].image_url.url',
      'not 5',
    ],
    [
      user([{ type: 'image_url', image_url: { url: 'picture.png' } }]),
      'messages[0].content[0].image_url.url',
      'an http(s) URL or a data URL',
    ],
    [
      user([{ type: 'input_audio', input_audio: { data: 'A' } }]),
      'messages[0].content[0].input_audio.format',
      'missing',
    ],
    [user([{ type: 'file', file: { filename: 'a' } }]), 'messages[0].content[0].file', 'file_data or file_id'],
    [user([{ type: 'refusal', refusal: 'no' }]), 'messages[0].content[0].type', 'one of'],
    [{ messages: [{ role: 'tool', content: 'a' }] }, 'messages[0].tool_call_id', 'missing'],
    [{ messages: [{ role: 'tool', tool_call_id: '1' }] }, 'messages[0].content', 'missing'],
    [{ messages: [{ role: 'assistant', tool_calls: {} }] }, 'messages[0].tool_calls', 'an array'],
    [
      { messages: [{ role: 'assistant', tool_calls: [{ ...call, id: null }] }] },
      'messages[0].tool_calls[0].id',
      'missing',
    ],
    [
      { messages: [{ role: 'assistant', tool_calls: [{ id: '1', type: 'function' }] }] },
      'messages[0].tool_calls[0].function',
      'missing',
    ],
    [
      { messages: [{ role: 'assistant', tool_calls: [{ id: '1', function: { name: 'f', arguments: 3 } }] }] },
      'messages[0].tool_calls[0].function.arguments',
      'a string, not 3',
    ],
    [{ temperature: 2.1 }, 'temperature', 'a number from 0 to 2, not 2.1'],
    [{ temperature: '1' }, 'temperature', "not '1'"],
    [{ top_p: -0.1 }, 'top_p', 'from 0 to 1'],
    [{ n: 0 }, 'n', 'a whole number from 1 to 128, not 0'],
    [{ n: 1.5 }, 'n', 'whole number'],
    [{ max_tokens: 0 }, 'max_tokens', 'at least 1'],
    [{ max_completion_tokens: '9' }, 'max_completion_tokens', 'whole number'],
    [{ frequency_penalty: 3 }, 'frequency_penalty', 'from -2 to 2'],
    [{ logit_bias: { a: 'b' } }, 'logit_bias.a', 'a number from -100 to 100'],
    [{ top_logprobs: 21 }, 'top_logprobs', 'from 0 to 20'],
    [{ stop: [1] }, 'stop[0]', 'a string'],
    [{ stop: 1 }, 'stop', 'an array'],
    [{ stream: 'yes' }, 'stream', 'true or false'],
    [{ stream_options: { include_usage: 1 } }, 'stream_options.include_usage', 'true or false'],
    [{ metadata: { a: 1 } }, 'metadata.a', 'a string'],
    [{ modalities: 'text' }, 'modalities', 'an array'],
    [{ audio: { voice: 'a' } }, 'audio.format', 'missing'],
    [{ prediction: { type: 'content' } }, 'prediction.content', 'missing'],
    [{ tools: {} }, 'tools', 'an array'],
    [{ tools: [{}] }, 'tools[0].type', 'missing'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function', 'missing'],
    [{ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', 'missing'],
    [
      { tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }] },
      'tools[0].function.parameters',
      'an object',
    ],
    [{ tools: [{ type: 'web_search', max_uses: 0 }] }, 'tools[0].max_uses', 'at least 1'],
    [{ tool_choice: 'sometimes' }, 'tool_choice', "not 'sometimes'"],
    [{ tool_choice: { type: 'function' } }, 'tool_choice.function.name', 'missing'],
    [
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'x', tools: [] } } },
      'tool_choice.allowed_tools.mode',
      "not 'x'",
    ],
    [{ response_format: 'json' }, 'response_format', 'an object'],
    [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema', 'missing'],
    [{ response_format: { type: 'json_schema', json_schema: {} } }, 'response_format.json_schema.name', 'missing'],
    [{ reasoning_effort: -3 }, 'reasoning_effort', 'a whole number from 0'],
    [{ reasoning_effort: [] }, 'reasoning_effort', 'a level or a number of tokens'],
    [{ reasoning: { summary: 'verbose' } }, 'reasoning.summary', "one of 'auto', 'concise', 'detailed'"],
    [{ usage: { include: 'yes' } }, 'usage.include', 'true or false'],
    [{ requesty: [] }, 'requesty', 'an object'],
    [{ requesty: { auto_cache: 1 } }, 'requesty.auto_cache', 'true or false'],
    [{ reasoning: { max_tokens: -1 } }, 'reasoning.max_tokens', 'at least 1'],
    [{ web_search_options: { search_context_size: 'huge' } }, 'web_search_options.search_context_size', "not 'huge'"],
  ])('%j is refused with the field named', (members, param, message) => {
    const error = refusal({ ...hello, ...members })
    expect(error).toMatchObject({ code: 'invalid_request', status: 400, param })
    expect(error.message).toContain(`'${param}'`)
    expect(error.message).toContain(message)
  })

  it.each([[undefined], [null], [[]], ['text'], [7]])('%j is no body at all', (body) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_request', status: 400 })
  })

  it('is never repeated at length', () => {
    expect(refusal({ ...hello, stream: 'x'.repeat(10_000) }).message.length).toBeLessThan(120)
  })
})

describe.skipIf(schemaMissing)('the published request schema', () => {
  it('has no property that this face does not know', () => {
    const properties = propertiesOf('CreateChatCompletionRequest')
    expect(properties.length).toBeGreaterThan(30)
    expect(properties.filter((name) => !knownNames.has(name))).toEqual([])
  })
})

describe.skipIf(recordingsMissing)('recorded chat requests', () => {
  const formats = [
    'openai-chat',
    'openrouter',
    'groq',
    'deepseek',
    'xai',
    'mistral',
    'together',
    'azure-openai',
    'openai-compatible',
    'perplexity',
  ]
  // This provider does without the name that the published schema requires.
  const exceptions = ['perplexity/structured__perplexity.sonar__f8ee52']
  const sent = formats
    .flatMap(recordings)
    .filter((recording) => recording.request?.body?.messages && !exceptions.includes(recording.case))

  it('are many', () => expect(sent.length).toBeGreaterThan(100))

  it.each(sent.map((recording): [string, Recording] => [`${recording.dialect} ${recording.case}`, recording]))(
    '%s is understood',
    (_, recording) => {
      const body = recording.request?.body as JsonObject
      const request = chat.read(body)
      const history = (body.messages as JsonObject[]).filter(({ role }) => role !== 'system' && role !== 'developer')
      const tools = history.filter(({ role }) => role === 'tool' || role === 'function')
      const results = request.messages.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool_result'))
      expect(results.length).toBe(tools.length)
      expect(request.messages.every(({ parts }) => parts.length > 0)).toBe(true)
      expect(request.messages.filter(({ role }) => role === 'assistant').length).toBe(
        history.filter(({ role }) => role === 'assistant').length,
      )
    },
  )
})
