import { describe, expect, it } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { Finish } from '../../src/core/reply.ts'
import { type Recording, recordedEvents, recordings, recordingsMissing } from '../helpers/recordings.ts'
import { schemaMissing, violations } from './chatSchema.ts'

const model = 'maker/model'
const facts = { model, usage: { input: 10, output: 5 }, costUsd: 0.25 }
const hello = { model: 'maker/model', messages: [{ role: 'user', content: 'hello' }] }
const edit = (members: object, dropped: string[] = [], stream = false) => {
  return chat.editRequest({ ...hello, ...members }, { model: 'own-name', stream, dropped })
}

describe('a body for a provider of the same format', () => {
  it('goes as it came, under the provider’s own name of the model', () => {
    const body = { ...hello, temperature: 1, unknown: { a: [1, null] } }
    expect(chat.editRequest({ ...body, stop: null }, { model: 'own-name', stream: false, dropped: [] })).toEqual({
      ...body,
      model: 'own-name',
    })
  })

  it('is never the client’s own object', () => {
    const body = { ...hello, tools: [{ type: 'web_search' }], messages: [{ role: 'user', content: 'x', name: 'Ann' }] }
    const before = structuredClone(body)
    edit(body, ['web_search', 'messages.name', 'temperature'], true)
    expect(body).toEqual(before)
  })

  it('always requests usage in streams, and omits stream options otherwise', () => {
    expect(edit({ stream: true, stream_options: { include_obfuscation: false } }, [], true)).toMatchObject({
      stream: true,
      stream_options: { include_obfuscation: false, include_usage: true },
    })
    expect(edit({ stream: true, stream_options: { include_usage: false } }, [], true).stream_options).toEqual({
      include_usage: true,
    })
    expect(edit({ stream: false, stream_options: { include_usage: true } })).toEqual({
      ...hello,
      model: 'own-name',
      stream: false,
    })
  })

  it.each<[string, JsonObject]>([
    ['max_output_tokens', { max_tokens: 5, max_completion_tokens: 5 }],
    ['logprobs', { logprobs: true, top_logprobs: 2 }],
    ['reasoning', { reasoning_effort: 'low', reasoning: { effort: 'low' }, thinking: { type: 'enabled' } }],
    ['cache', { prompt_cache_key: 'k', prompt_cache_options: {}, prompt_cache_retention: '24h' }],
    ['web_search', { web_search_options: {} }],
    ['web_search', { tools: [{ type: 'web_search' }], tool_choice: 'auto' }],
    [
      'tools',
      { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'auto', parallel_tool_calls: true },
    ],
    ['tools.custom', { tools: [{ type: 'custom', custom: { name: 'c' } }] }],
    ['seed', { seed: 1 }],
    ['logprobs.top', { top_logprobs: 2 }],
    ['reasoning_format', { reasoning_format: 'parsed' }],
  ])('goes without %s', (field, members) => {
    expect(edit(members, [field])).toEqual({ ...hello, model: 'own-name' })
  })

  it.each<[string, JsonObject, JsonObject]>([
    ['messages.name', { role: 'user', content: 'a', name: 'Ann' }, { role: 'user', content: 'a' }],
    ['messages.name', { role: 'function', content: 'a', name: 'f' }, { role: 'function', content: 'a', name: 'f' }],
    [
      'parts.detail',
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example', detail: 'low' } }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example' } }] },
    ],
    [
      'parts.cache',
      { role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] },
      { role: 'user', content: [{ type: 'text', text: 'a' }] },
    ],
    [
      'parts.video',
      { role: 'user', content: [{ type: 'video_url', video_url: { url: 'https://a.example' } }] },
      { role: 'user', content: '(unsupported content omitted)' },
    ],
    [
      'parts.reasoning',
      { role: 'assistant', content: 'a', reasoning: 'b', reasoning_content: 'b', reasoning_details: [{ type: 'x' }] },
      { role: 'assistant', content: 'a' },
    ],
    [
      'parts.signature',
      { role: 'assistant', tool_calls: [{ id: '1', function: { name: 'f', arguments: '' }, extra_content: {} }] },
      { role: 'assistant', tool_calls: [{ id: '1', function: { name: 'f', arguments: '' } }] },
    ],
  ])('goes without %s inside its messages', (field, message, edited) => {
    expect(edit({ messages: [message] }, [field]).messages).toEqual([edited])
  })

  it('drops single options and keeps the others', () => {
    expect(edit({ reasoning: { effort: 'low', summary: 'auto' } }, ['reasoning.summary']).reasoning).toEqual({
      effort: 'low',
    })
    const search = { type: 'web_search', max_uses: 2, allowed_domains: ['a'] }
    expect(edit({ tools: [search] }, ['web_search.max_uses']).tools).toEqual([
      { type: 'web_search', allowed_domains: ['a'] },
    ])
  })

  it('keeps signatures of the provider itself and removes those of others', () => {
    const ours = { type: 'reasoning.text', text: 'a', signature: 'S', format: 'other', index: 0, after: { content: 0 } }
    const own = { type: 'reasoning.encrypted', data: 'E', format: 'own-v1', index: 0 }
    const message = { role: 'assistant', content: 'b', replay_parts: [{ part: {} }], reasoning_details: [ours, own] }
    expect(edit({ messages: [message] }).messages).toEqual([
      { role: 'assistant', content: 'b', reasoning_details: [own] },
    ])
    expect(edit({ messages: [{ ...message, reasoning_details: [ours] }] }).messages).toEqual([
      { role: 'assistant', content: 'b' },
    ])
  })
})

describe('the client’s names of a field', () => {
  it.each([
    ['max_output_tokens', ['max_completion_tokens', 'max_tokens']],
    ['web_search', ['tools.web_search', 'web_search_options']],
    ['messages.name', ['messages.name']],
    ['parts.reasoning', ['messages.reasoning_content', 'messages.reasoning', 'messages.reasoning_details']],
    ['something_new', ['something_new']],
  ])('%s is %j', (field, names) => {
    expect(chat.wireNames(field)).toEqual(names)
  })
})

const finishes: { [word: string]: Finish } = {
  eos: 'stop',
  model_length: 'length',
  sensitive: 'content_filter',
  insufficient_system_resource: 'error',
  stop: 'error',
}
const finishOf = (word: string) => finishes[word]

const stream = (include_usage?: boolean) => {
  const stream_options = include_usage === undefined ? {} : { stream_options: { include_usage } }
  return chat.openStream(chat.read({ ...hello, stream: true, ...stream_options }), { model, id: 'call-1', finishOf })
}

/** The chunks that a client receives for these chunks of a provider. */
function edited(payloads: readonly JsonObject[], include_usage?: boolean): JsonObject[] {
  const writer = stream(include_usage)
  const text = payloads.map((payload) => writer.edit(payload)).join('') + writer.end(facts)
  const lines = text.split('\n\n').filter(Boolean)
  expect(lines.pop()).toBe('data: [DONE]')
  return lines.map((line) => JSON.parse(line.slice('data: '.length)))
}

describe('chunks of a provider of the same format', () => {
  const shared = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'own-name', provider: 'kept' }
  const written = {
    ...shared,
    choices: [{ index: 0, delta: { content: 'a', odd: 1 }, finish_reason: null }],
    usage: null,
  }
  const ended = { ...shared, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: null }
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, extra: 1 }
  const counted = { ...shared, choices: [], usage }
  const without = ({ usage: _, ...chunk }: JsonObject) => ({ ...chunk, model })

  it('keep unknown members, and name the model that served', () => {
    expect(edited([written, ended])).toEqual([without(written), without(ended)])
  })

  it('report usage once, last and with the cost, to a client that requested it', () => {
    const [first, second, last] = edited([written, ended, counted], true)
    // There are clients for which a null is not a missing count.
    expect([first, second]).toEqual([without(written), without(ended)])
    expect(last).toEqual({ ...counted, model, usage: { ...usage, cost: 0.25 } })
  })

  it('report none to a client that did not request it', () => {
    expect(edited([written, ended, counted])).toEqual([without(written), without(ended)])
    expect(edited([written, ended, counted], false)).toEqual([without(written), without(ended)])
  })

  it('move usage to the end from any position', () => {
    const chunks = [
      { ...written, usage: { ...usage, completion_tokens: 1 } },
      { ...ended, usage },
    ]
    expect(edited(chunks, true)).toEqual([
      without(written),
      without(ended),
      {
        id: 'x',
        object: 'chat.completion.chunk',
        created: 1,
        model,
        choices: [],
        usage: { ...usage, cost: 0.25 },
      },
    ])
    expect(edited(chunks)).toEqual([without(written), without(ended)])
  })

  it('get usage from the router’s own count when the provider never reported any', () => {
    expect(edited([written, ended], true).at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 10, cost: 0.25 },
    })
  })

  it('pass when they have no choices and are not about usage', () => {
    const prompt = {
      id: '',
      object: '',
      created: 0,
      model: '',
      choices: [],
      prompt_filter_results: [{ prompt_index: 0 }],
    }
    expect(edited([prompt, written])[0]).toEqual({ ...prompt, object: 'chat.completion.chunk', model })
  })

  it('are completed where the provider omitted required members', () => {
    expect(edited([{ ...shared, choices: [{ delta: { content: 'a' } }] }])[0]?.choices).toEqual([
      { index: 0, delta: { content: 'a' }, finish_reason: null },
    ])
  })

  it('have arguments for every call in the end, so that clients can read them', () => {
    const call = (tool_calls: JsonObject[], finish_reason: string | null = null): JsonObject => {
      return { ...shared, choices: [{ index: 0, delta: { tool_calls }, finish_reason }] }
    }
    const opened = (index: number, args?: string): JsonObject => {
      return { index, id: `${index}`, function: { name: 'f', ...(args !== undefined && { arguments: args }) } }
    }
    const filled = (index: number): JsonObject => ({ index, function: { arguments: '{}' } })
    const written = (chunks: JsonObject[]) => edited(chunks).map((chunk) => (chunk.choices as JsonObject[])[0]?.delta)
    const done = { ...shared, choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }
    const [first, second, , last] = written([
      call([opened(0, ''), opened(1)]),
      call([{ index: 0, function: { arguments: '' } }]),
      call([{ index: 1, function: { arguments: '{"a":1}' } }]),
      done,
    ])
    expect(first).toEqual({ tool_calls: [opened(0, ''), opened(1, '')] })
    expect(second).toEqual({ tool_calls: [{ index: 0, function: { arguments: '' } }] })
    expect(last).toEqual({ tool_calls: [filled(0)] })
    expect(written([call([opened(0)], 'tool_calls')])).toEqual([{ tool_calls: [opened(0, ''), filled(0)] }])
    expect(written([call([opened(0, '{}')]), done]).at(-1)).toEqual({})
    const cut = { ...shared, choices: [{ index: 0, delta: {}, finish_reason: 'length' }] }
    expect(written([call([opened(0)]), cut]).at(-1)).toEqual({})
  })

  const called = (...pieces: JsonObject[]): JsonObject => part(0, { tool_calls: pieces })
  const piecesOf = (payloads: readonly JsonObject[]) => {
    return edited(payloads).flatMap(({ choices }) => {
      const [choice] = choices as { delta: JsonObject }[]
      return (choice?.delta.tool_calls ?? []) as JsonObject[]
    })
  }

  it('have a text of arguments in every piece of a call', () => {
    const signed = { extra_content: { google: { thought_signature: 'S' } } }
    const pieces = [
      { index: 0, id: 'a', type: 'function', function: { name: 'f' } },
      { index: 0, id: null, type: null, function: { name: null, arguments: '{}' } },
      { index: 0, function: { arguments: null } },
      { index: 0, ...signed },
      { index: 1, id: 'b', type: 'custom', custom: { name: 'g', input: '' } },
    ]
    expect(piecesOf([...pieces.map((piece) => called(piece)), ended])).toEqual([
      { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } },
      { index: 0, function: { arguments: '{}' } },
      { index: 0, function: { arguments: '' } },
      { index: 0, ...signed, function: { arguments: '' } },
      { index: 1, id: 'b', type: 'custom', custom: { name: 'g', input: '' } },
    ])
  })

  it('number calls that share an index but have different ids, and calls without an index', () => {
    const one = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":' } }
    const other = { index: 0, id: 'b', type: 'function', function: { name: 'g', arguments: '{"b":' } }
    const rest = { index: 0, function: { arguments: '2}' } }
    const again = { index: 0, id: 'b', function: { arguments: '' } }
    const third = { index: 1, id: 'c', type: 'function', function: { name: 'h', arguments: '{}' } }
    const expected = [
      one,
      { ...other, index: 1 },
      { ...rest, index: 1 },
      { ...again, index: 1 },
      { ...third, index: 2 },
    ]
    const apart = [one, other, rest, again, third].map((piece) => called(piece))
    expect(piecesOf([...apart, ended])).toEqual(expected)
    expect(piecesOf([called(one, other, rest, again, third), ended])).toEqual(expected)
    const { index: _, ...unnumbered } = one
    expect(piecesOf([called(unnumbered), called({ ...unnumbered, id: 'b' }), ended])).toMatchObject([
      { index: 0, id: 'a' },
      { index: 1, id: 'b' },
    ])
  })

  it('number any count of calls in the same time for each', () => {
    const writer = stream()
    const call = (id: number) => called({ index: 0, id: `${id}`, type: 'function', function: { name: 'f' } })
    const before = process.cpuUsage()
    for (let id = 0; id < 30_000; id++) writer.edit(call(id))
    const { user } = process.cpuUsage(before)
    expect(writer.edit(call(30_000))).toContain('"index":30000')
    expect(user).toBeLessThan(5_000_000)
  })

  it('say once why a choice ended', () => {
    const stop = part(0, {}, 'stop')
    const repeated = { ...part(0, { role: 'assistant', content: '' }, 'stop'), usage }
    expect(edited([part(0, { content: 'a' }), stop, repeated]).map(ending)).toEqual([[null], ['stop']])
    // The first one stands, and what else comes still arrives.
    const late = part(0, { content: '', annotations: [{ type: 'url_citation' }] }, 'stop')
    expect(edited([part(0, { content: 'a' }, 'length'), late])).toMatchObject([
      { choices: [{ finish_reason: 'length' }] },
      { choices: [{ delta: { annotations: [{}] }, finish_reason: null }] },
    ])
    const both = {
      ...shared,
      choices: [...(stop.choices as JsonObject[]), { index: 1, delta: {}, finish_reason: 'stop' }],
    }
    expect(edited([part(1, { content: 'b' }), stop, both]).map(ending)).toEqual([[null], ['stop'], ['stop']])
  })

  it('have reasoning under the name of this API, and under the one that the client uses', () => {
    const thought = (members: JsonObject) => {
      const writer = chat.openStream(chat.read({ ...hello, stream: true, ...members }), { model, id: 'call-1' })
      return ['reasoning', 'reasoning_content'].map((name) => {
        const [line] = writer.edit(part(0, { [name]: 'Hm.' })).split('\n\n')
        return JSON.parse(line?.slice('data: '.length) ?? '').choices[0].delta
      })
    }
    const both = { reasoning: 'Hm.', reasoning_content: 'Hm.' }
    expect(thought({})).toEqual([both, { reasoning_content: 'Hm.' }])
    expect(thought({ reasoning: {} })).toEqual([both, both])
    expect(thought({ include_reasoning: true })).toEqual([both, both])
  })

  const ending = ({ choices }: JsonObject) => (choices as JsonObject[]).map(({ finish_reason }) => finish_reason)
  const part = (index: number, delta: JsonObject, finish_reason: string | null = null): JsonObject => {
    return { ...shared, choices: [{ index, delta, finish_reason }] }
  }

  it('end with a reason for each choice that the provider gave none', () => {
    const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'f' } }] }
    const former = { function_call: { name: 'f', arguments: '{}' } }
    const chunks = [part(0, { content: 'a' }), part(1, { content: 'b' }, 'length'), part(2, call), part(3, former)]
    const [, , , , last, usageChunk, ...more] = edited([...chunks, counted], true)
    expect(last).toEqual({
      id: 'x',
      object: 'chat.completion.chunk',
      created: 1,
      model,
      choices: [
        { index: 0, delta: {}, finish_reason: 'stop' },
        {
          index: 2,
          delta: { tool_calls: [{ index: 0, function: { arguments: '{}' } }] },
          finish_reason: 'tool_calls',
        },
        { index: 3, delta: {}, finish_reason: 'function_call' },
      ],
    })
    expect(usageChunk).toMatchObject({ choices: [], usage: { total_tokens: 5 } })
    expect(more).toEqual([])
    expect(edited([part(0, { content: 'a' }), ended])).toHaveLength(2)
  })

  it('never have an empty reason', () => {
    expect(edited([part(0, { content: 'a' }, '')]).map(ending)).toEqual([[null], ['stop']])
  })

  it.each([
    ['eos', 'stop'],
    ['model_length', 'length'],
    ['sensitive', 'content_filter'],
    ['insufficient_system_resource', 'length'],
  ])('end with %s as %s, the provider’s own reason beside it', (word, finish_reason) => {
    const last = edited([part(0, { content: 'a' }), part(0, {}, word)]).at(-1)
    expect(last?.choices).toEqual([{ index: 0, delta: {}, finish_reason, native_finish_reason: word }])
  })

  it('end with `tool_calls` after tools were called', () => {
    const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] }
    expect(edited([part(0, call), part(0, {}, 'eos')]).map(ending)).toEqual([[null], ['tool_calls']])
  })

  it.each(['stop', 'length', 'tool_calls', 'content_filter', 'function_call', 'unheard_of'])(
    'keep the reason %s as it is',
    (word) => {
      expect(edited([part(0, { content: 'a' }, word)])).toMatchObject([{ choices: [{ finish_reason: word }] }])
      expect(edited([part(0, { content: 'a' }, word)])[0]?.choices).not.toMatchObject([
        { native_finish_reason: expect.anything() },
      ])
    },
  )

  it('are left as they are for everyone else', () => {
    const before = structuredClone(written)
    stream(true).edit(written)
    expect(written).toEqual(before)
  })
})

describe('a reply of a provider of the same format', () => {
  const message = { role: 'assistant', content: 'a', refusal: null, odd: 1 }
  const body = {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'own-name',
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop', odd: 2 }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, extra: 1 },
    odd: 3,
  }

  it('has the model that served and the cost, all else untouched', () => {
    expect(chat.editReply(body, facts)).toEqual({ ...body, model, usage: { ...body.usage, cost: 0.25 } })
    expect(chat.editReply(body, { model, usage: {} })).toEqual({ ...body, model })
  })

  it('gets usage from the router’s own count when the provider reported none', () => {
    expect(chat.editReply({ ...body, usage: null }, facts).usage).toMatchObject({ total_tokens: 15, cost: 0.25 })
  })

  it('is completed where the provider omitted required members', () => {
    const bare = {
      message: { tool_calls: [{ id: '1', function: { name: 'f', arguments: '' } }] },
      finish_reason: 'tool_calls',
    }
    expect(chat.editReply({ ...body, choices: [bare] }, facts).choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          refusal: null,
          tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ])
  })

  it('ends with a reason that the API defines, the provider’s own beside it', () => {
    const ended = (finish_reason: string, more: JsonObject = {}) => {
      const choices = [{ message: { ...message, ...more }, finish_reason }]
      return chat.editReply({ ...body, choices }, { ...facts, finishOf }).choices
    }
    const native = (word: string, finish_reason: string) => [{ finish_reason, native_finish_reason: word }]
    expect(ended('eos')).toMatchObject(native('eos', 'stop'))
    expect(ended('model_length')).toMatchObject(native('model_length', 'length'))
    expect(ended('sensitive')).toMatchObject(native('sensitive', 'content_filter'))
    expect(ended('eos', { tool_calls: [] })).toMatchObject(native('eos', 'stop'))
    expect(ended('eos', { function_call: { name: 'f' } })).toMatchObject(native('eos', 'function_call'))
    const cut = { tool_calls: [{ id: '1', type: 'function', function: { name: 'f' } }] }
    expect(ended('eos', cut)).toMatchObject(native('eos', 'tool_calls'))
    expect(ended('model_length', cut)).toMatchObject([{ message: { tool_calls: [{ function: { arguments: '' } }] } }])
    for (const word of ['stop', 'unheard_of']) {
      expect(ended(word)).toEqual([{ index: 0, logprobs: null, message, finish_reason: word }])
    }
  })

  it('keeps arguments that were cut off before their first character', () => {
    const called = (args: JsonObject) => [{ id: '1', type: 'function', function: { name: 'f', ...args } }]
    const cut = (args: JsonObject) => ({ message: { tool_calls: called(args) }, finish_reason: 'length' })
    const choices = [cut({ arguments: '' }), cut({})]
    expect(chat.editReply({ ...body, choices }, facts).choices).toMatchObject([
      { message: { tool_calls: called({ arguments: '' }) } },
      { message: { tool_calls: called({ arguments: '' }) } },
    ])
  })
})

describe('reasoning in a reply of a provider of the same format', () => {
  const replied = (message: JsonObject, members: JsonObject) => {
    const request = chat.read({ ...hello, ...members })
    const reply = chat.editReply({ choices: [{ message }] }, { ...facts, request })
    const [choice] = reply.choices as { message: JsonObject }[]
    return choice?.message
  }

  it('has the name of this API, and the one that the client uses', () => {
    const both = { reasoning: 'Hm.', reasoning_content: 'Hm.' }
    expect(replied({ reasoning: 'Hm.' }, {})).toMatchObject(both)
    expect(replied({ reasoning_content: 'Hm.' }, {})).not.toHaveProperty('reasoning')
    expect(replied({ reasoning_content: 'Hm.' }, { reasoning: {} })).toMatchObject(both)
    expect(replied({ reasoning: null, reasoning_content: 'Hm.' }, { include_reasoning: true })).toMatchObject(both)
    expect(replied({ reasoning: null }, { reasoning: {} })).not.toHaveProperty('reasoning_content')
  })
})

describe.skipIf(recordingsMissing || schemaMissing)('recorded answers, edited', () => {
  const formats = [
    'openai-chat',
    'openrouter',
    'groq',
    'deepseek',
    'xai',
    'mistral',
    'together',
    'openai-compatible',
    'azure-openai',
  ]
  const answers = formats.flatMap(recordings).filter(({ response }) => response.status === 200)
  // Members of these providers beyond the published schema are passed on unchanged.
  const exceptions = [
    /service_tier must/, // on_demand
    /message\/annotations\/\d+/, // of files
    /content must/, // lists of thinking and text
  ]
  const unexpected = (found: string[]) => found.filter((item) => !exceptions.some((known) => known.test(item)))
  const named = (list: Recording[]) => list.map((recording): [string, Recording] => [recording.case, recording])
  const whole = answers.filter(({ response }) => response.body?.choices)
  const streams = answers.filter(({ response }) => response.sse !== undefined)

  it.each(named(whole))('%s is a chat completion', (_, { response }) => {
    const reply = chat.editReply(response.body, facts)
    expect(unexpected(violations('CreateChatCompletionResponse', reply))).toEqual([])
  })

  it.each(named(streams))('%s is made of chat completion chunks', (_, recording) => {
    const payloads = recordedEvents(recording)
      .filter(({ data }) => data !== '[DONE]')
      .map(({ data }) => JSON.parse(data))
      .filter((payload) => !payload.error)
    const chunks = edited(payloads, true)
    const found = chunks.flatMap((chunk) => violations('CreateChatCompletionStreamResponse', chunk))
    expect(unexpected(found)).toEqual([])
    expect(chunks.slice(0, -1).some((chunk) => 'usage' in chunk)).toBe(false)
    expect(chunks.at(-1)).toMatchObject({ model, choices: [], usage: { cost: 0.25 } })
  })
})

it('a chunk without id and time has those of its stream, or empty ones', () => {
  const writer = chat.openStream({ model, messages: [], origin: { api: 'chat', body: {} } }, { model, id: 'call-1' })
  const read = (payload: JsonObject) => JSON.parse(writer.edit(payload).replace(/^data: /, ''))
  expect(read({ choices: [], prompt_filter_results: [] })).toMatchObject({ id: '', created: 0 })
  expect(read({ id: 'c1', created: 7, choices: [] })).toMatchObject({ id: 'c1', created: 7 })
  expect(read({ choices: [] })).toMatchObject({ id: 'c1', created: 7 })
})
