import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Body } from './sdk-wire.ts'
import {
  called,
  everyModel,
  type FieldRule,
  models,
  said,
  specificationWorld,
  type World,
} from './specification-world.ts'

// The contract of POST /v1/chat/completions and POST /v1/messages, statement by statement.

let world: World
beforeAll(async () => {
  const search = { 'gpt-4o-search-preview': { api: 'chat' } }
  const policies = { best: { targets: [models.ordinary, models.anthropic] } }
  world = await specificationWorld({ models: search, settings: { policies } })
})
afterAll(() => world.end())

const messages = [{ role: 'user', content: 'Hi' }]
const ask = (body: object, more = {}) =>
  world.ask('/v1/chat/completions', { model: models.ordinary, messages, ...body }, more)
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const weather = { type: 'function', function: { name: 'weather', description: 'The weather', parameters } }
const json_schema = { name: 'place', strict: false, schema: parameters }

describe('Request', () => {
  const rules: FieldRule[] = [
    [
      'model is a required string',
      [],
      [
        [{ model: undefined }, 'model'],
        [{ model: 7 }, 'model'],
      ],
    ],
    [
      'messages is a required array',
      [],
      [
        [{ messages: undefined }, 'messages'],
        [{ messages: [] }, 'messages'],
        [{ messages: 'Hi' }, 'messages'],
      ],
    ],
    [
      'messages are {role, content}',
      [{ messages: [{ role: 'system', content: 'Be brief.' }, ...messages] }],
      [[{ messages: [{ content: 'Hi' }] }, 'messages[0].role']],
    ],
    [
      'messages may have a name',
      [{ messages: [{ role: 'user', content: 'Hi', name: 'ann' }] }],
      [[{ messages: [{ role: 'user', content: 'Hi', name: 7 }] }, 'messages[0].name']],
    ],
    [
      'max_tokens is an integer',
      [{ max_tokens: 20 }],
      [
        [{ max_tokens: 1.5 }, 'max_tokens'],
        [{ max_tokens: 'x' }, 'max_tokens'],
      ],
    ],
    ['temperature is a number', [{ temperature: 0.5 }], [[{ temperature: 'x' }, 'temperature']]],
    ['top_p is a number', [{ top_p: 0.5 }], [[{ top_p: 'x' }, 'top_p']]],
    ['stream is a boolean', [{ stream: true }, { stream: false }], [[{ stream: 'yes' }, 'stream']]],
    [
      'tools are {type: function, function: {name, description, parameters}}',
      [{ tools: [weather] }],
      [[{ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name']],
    ],
    [
      'tool_choice is auto, none, required or an object',
      ['auto', 'none', 'required', { type: 'function', function: { name: 'weather' } }].map((tool_choice) => ({
        tools: [weather],
        tool_choice,
      })),
      [[{ tools: [weather], tool_choice: 'sometimes' }, 'tool_choice']],
    ],
    [
      'response_format is an object',
      [{ response_format: { type: 'text' } }, { response_format: { type: 'json_schema', json_schema } }],
      [[{ response_format: 'json' }, 'response_format']],
    ],
    [
      'response_format takes JSON mode',
      [{ response_format: { type: 'json_object' }, messages: [{ role: 'user', content: 'In JSON' }] }],
      [],
    ],
  ]
  test.each(rules)('Chat: %s', async (_, taken, refused) => {
    for (const body of taken) {
      for (const model of everyModel) {
        const { status, text } = await ask({ model, ...body })
        expect([model, status, text]).toEqual([model, 200, expect.anything()])
      }
    }
    for (const [body, param] of refused) {
      const { status, body: answer, sent } = await ask(body)
      expect([status, answer.error.param, sent]).toEqual([400, param, undefined])
    }
  })

  const arriving: [statement: string, body: object, sent: object][] = [
    [
      'name of a message',
      { messages: [{ role: 'user', content: 'Hi', name: 'ann' }] },
      { messages: [{ name: 'ann' }] },
    ],
    ['max_tokens', { max_tokens: 20 }, { max_completion_tokens: 20 }],
    ['temperature', { temperature: 0.5 }, { temperature: 0.5 }],
    ['top_p', { top_p: 0.5 }, { top_p: 0.5 }],
    ['tools', { tools: [weather] }, { tools: [weather] }],
    ['tool_choice', { tools: [weather], tool_choice: 'required' }, { tool_choice: 'required' }],
    [
      'response_format',
      { response_format: { type: 'json_schema', json_schema } },
      { response_format: { json_schema } },
    ],
  ]
  test.each(arriving)('Chat: %s arrives at the provider', async (_, body, sent) => {
    expect(await ask(body)).toMatchObject({ status: 200, sent })
  })

  const searches: [model: string, sent: object][] = [
    [models.native, { tools: [{ type: 'web_search' }] }],
    [models.anthropic, { tools: [expect.objectContaining({ name: 'web_search' })] }],
    [models.google, { tools: [{ googleSearch: {} }] }],
    ['openai/gpt-4o-search-preview', { web_search_options: {} }],
  ]
  test.each(searches)('Chat: tools may contain {type: web_search}: %s', async (model, sent) => {
    const answer = await ask({ model, tools: [{ type: 'web_search' }] })
    expect(answer.headers.get('x-router-dropped')).toBe(null)
    expect(answer).toMatchObject({ status: 200, sent })
  })

  test('Chat: a web search is never lost silently where a model has none', async () => {
    const answer = await ask({ tools: [{ type: 'web_search' }] })
    expect([answer.status, answer.headers.get('x-router-dropped')]).toEqual([200, 'tools.web_search'])
    expect(answer.sent).not.toHaveProperty('tools')
  })
})

describe('Completion', () => {
  const fields: [statement: string, expected: object][] = [
    ['id is a string', { id: expect.stringMatching(/./) }],
    ['object is a string', { object: 'chat.completion' }],
    ['created is an integer', { created: expect.any(Number) }],
    ['model is a string', { model: expect.stringMatching(/^[a-z-]+\/./) }],
    ['choices have an index', { choices: [{ index: 0 }] }],
    ['choices have a message {role, content}', { choices: [{ message: { role: 'assistant', content: said.text } }] }],
    ['choices have a finish_reason', { choices: [{ finish_reason: 'stop' }] }],
    [
      'usage has prompt_tokens, completion_tokens and total_tokens',
      { usage: { prompt_tokens: 40, completion_tokens: 12, total_tokens: 52 } },
    ],
    ['usage may have cost, in USD', { usage: { cost: expect.any(Number) } }],
  ]
  let replies: [string, Body][]
  beforeAll(async () => {
    replies = []
    for (const model of everyModel) replies.push([model, (await ask({ model })).body])
  })
  test.each(fields)('Chat completion: %s', (_, expected) => {
    for (const [model, body] of replies) expect([model, body]).toMatchObject([model, expected])
  })
  test('Chat completion: the name of a message is a string where there is one', () => {
    for (const [, { choices }] of replies) expect(typeof (choices[0].message.name ?? '')).toBe('string')
  })
  test('Chat completion: the answer is application/json', async () => {
    expect((await ask({})).headers.get('content-type')).toMatch(/^application\/json/)
  })
  test('Chat completion: tool calls are in the message', async () => {
    for (const model of everyModel) {
      const { body } = await ask({ model, tools: [weather] }, { step: called })
      const call = { type: 'function', function: { name: 'weather', arguments: '{"city":"Graz"}' } }
      const expected = { finish_reason: 'tool_calls', message: { tool_calls: [call] } }
      expect([model, body.choices]).toMatchObject([model, [expected]])
    }
  })
  test('Chat completion: with stream: true it is streamed', async () => {
    for (const model of everyModel) {
      const { headers, events, text } = await ask({ model, stream: true, stream_options: { include_usage: true } })
      expect(headers.get('content-type')).toMatch(/^text\/event-stream/)
      const words = events.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
      const usage = { total_tokens: 52, cost: expect.any(Number) }
      expect([model, words, events.at(-1).usage]).toMatchObject([model, said.text, usage])
      expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
    }
  })
})

describe('Models', () => {
  test('Service: a model is addressed as <provider_slug>/<model_name>', async () => {
    expect(await ask({ model: 'openai/gpt-4.1' })).toMatchObject({ status: 200, sent: { model: 'gpt-4.1' } })
    expect(await ask({ model: 'gpt-4.1' })).toMatchObject({ status: 404, sent: undefined })
  })
  test('Service: managed policies are addressed by their bare id', async () => {
    const { status, headers } = await ask({ model: 'best' })
    expect([status, headers.get('x-router-model')]).toEqual([200, models.ordinary])
  })
  test('Service: the cost of a request is that of its tokens at the listed prices', async () => {
    const entry = (await (await world.router.call(`/v1/models/${models.ordinary}`)).json()) as Body
    const [{ input_price, output_price }] = entry.pricing
    expect((await ask({})).body.usage.cost).toBeCloseTo(40 * input_price + 12 * output_price, 12)
  })
  test('Versioning: dated model ids select a stable model version', async () => {
    const { status, sent } = await ask({ model: 'openai/gpt-4.1-2025-04-14' })
    expect([status, sent.model]).toEqual([200, 'gpt-4.1-2025-04-14'])
  })
})

describe('POST /v1/messages', () => {
  const create = (body: object) =>
    world.ask('/v1/messages', { model: models.anthropic, max_tokens: 50, messages, ...body })

  test('Messages: a messages-style request is accepted, for every provider, and usage has cost', async () => {
    for (const model of everyModel) {
      const { status, body } = await create({ model })
      const expected = {
        type: 'message',
        content: [{ type: 'text', text: said.text }],
        usage: { cost: expect.any(Number) },
      }
      expect([model, status, body]).toMatchObject([model, 200, expected])
    }
  })
  test('Messages: the web search tool is {type: web_search_20250305, name: web_search, max_uses: <integer>}', async () => {
    const tool = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 }
    expect(await create({ tools: [tool] })).toMatchObject({ status: 200, sent: { tools: [tool] } })
    for (const max_uses of [0, -1, 1.5, 'x']) {
      const { status, body, sent } = await create({ tools: [{ ...tool, max_uses }] })
      expect([status, body.error.param, sent]).toEqual([400, 'tools[0].max_uses', undefined])
    }
  })
})
