import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Body } from '../clients/sdk-wire.ts'
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

describe('POST /v1/chat/completions', () => {
  const rules: FieldRule[] = [
    [
      '4.11: model is a required string',
      [],
      [
        [{ model: undefined }, 'model'],
        [{ model: 7 }, 'model'],
      ],
    ],
    [
      '4.12: messages is a required array',
      [],
      [
        [{ messages: undefined }, 'messages'],
        [{ messages: [] }, 'messages'],
        [{ messages: 'Hi' }, 'messages'],
      ],
    ],
    [
      '4.13: messages are {role, content}',
      [{ messages: [{ role: 'system', content: 'Be brief.' }, ...messages] }],
      [[{ messages: [{ content: 'Hi' }] }, 'messages[0].role']],
    ],
    [
      '4.14, 21.6: messages may have a name',
      [{ messages: [{ role: 'user', content: 'Hi', name: 'ann' }] }],
      [[{ messages: [{ role: 'user', content: 'Hi', name: 7 }] }, 'messages[0].name']],
    ],
    [
      '4.15, 20.2: max_tokens is an integer',
      [{ max_tokens: 20 }],
      [
        [{ max_tokens: 1.5 }, 'max_tokens'],
        [{ max_tokens: 'x' }, 'max_tokens'],
      ],
    ],
    ['4.16: temperature is a number', [{ temperature: 0.5 }], [[{ temperature: 'x' }, 'temperature']]],
    ['4.17: top_p is a number', [{ top_p: 0.5 }], [[{ top_p: 'x' }, 'top_p']]],
    ['4.18: stream is a boolean', [{ stream: true }, { stream: false }], [[{ stream: 'yes' }, 'stream']]],
    [
      '4.19, 21.3: tools are {type: function, function: {name, description, parameters}}',
      [{ tools: [weather] }],
      [[{ tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name']],
    ],
    [
      '4.20: tool_choice is auto, none, required or an object',
      ['auto', 'none', 'required', { type: 'function', function: { name: 'weather' } }].map((tool_choice) => ({
        tools: [weather],
        tool_choice,
      })),
      [[{ tools: [weather], tool_choice: 'sometimes' }, 'tool_choice']],
    ],
    [
      '4.21: response_format is an object',
      [{ response_format: { type: 'text' } }, { response_format: { type: 'json_schema', json_schema } }],
      [[{ response_format: 'json' }, 'response_format']],
    ],
    [
      '4.21: response_format takes JSON mode',
      [{ response_format: { type: 'json_object' }, messages: [{ role: 'user', content: 'In JSON' }] }],
      [],
    ],
  ]
  test.each(rules)('%s', async (_, taken, refused) => {
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
      '4.14: name of a message',
      { messages: [{ role: 'user', content: 'Hi', name: 'ann' }] },
      { messages: [{ name: 'ann' }] },
    ],
    ['4.15: max_tokens', { max_tokens: 20 }, { max_completion_tokens: 20 }],
    ['4.16: temperature', { temperature: 0.5 }, { temperature: 0.5 }],
    ['4.17: top_p', { top_p: 0.5 }, { top_p: 0.5 }],
    ['4.19: tools', { tools: [weather] }, { tools: [weather] }],
    ['4.20: tool_choice', { tools: [weather], tool_choice: 'required' }, { tool_choice: 'required' }],
    [
      '4.21: response_format',
      { response_format: { type: 'json_schema', json_schema } },
      { response_format: { json_schema } },
    ],
  ]
  test.each(arriving)('%s arrives at the provider', async (_, body, sent) => {
    expect(await ask(body)).toMatchObject({ status: 200, sent })
  })

  const searches: [id: string, model: string, sent: object][] = [
    ['1.18', models.native, { tools: [{ type: 'web_search' }] }],
    ['1.16', models.anthropic, { tools: [expect.objectContaining({ name: 'web_search' })] }],
    ['1.17', models.google, { tools: [{ googleSearch: {} }] }],
    ['1.19', 'openai/gpt-4o-search-preview', { web_search_options: {} }],
  ]
  test.each(searches)('8.3, 21.1, %s: tools may contain {type: web_search}: %s', async (_, model, sent) => {
    const answer = await ask({ model, tools: [{ type: 'web_search' }] })
    expect(answer.headers.get('x-router-dropped')).toBe(null)
    expect(answer).toMatchObject({ status: 200, sent })
  })

  test('1.19: a web search is never lost silently where a model has none', async () => {
    const answer = await ask({ model: 'openai/gpt-3.5-turbo', tools: [{ type: 'web_search' }] })
    expect([answer.status, answer.headers.get('x-router-dropped')]).toEqual([200, 'tools.web_search'])
    expect(answer.sent).not.toHaveProperty('tools')
  })
})

describe('Chat completion', () => {
  const fields: [statement: string, expected: object][] = [
    ['4.1: id is a string', { id: expect.stringMatching(/./) }],
    ['4.2: object is a string', { object: 'chat.completion' }],
    ['4.3: created is an integer', { created: expect.any(Number) }],
    ['4.4: model is a string', { model: expect.stringMatching(/^[a-z-]+\/./) }],
    ['4.5: choices have an index', { choices: [{ index: 0 }] }],
    [
      '4.6: choices have a message {role, content}',
      { choices: [{ message: { role: 'assistant', content: said.text } }] },
    ],
    ['4.7: choices have a finish_reason', { choices: [{ finish_reason: 'stop' }] }],
    [
      '4.8: usage has prompt_tokens, completion_tokens and total_tokens',
      { usage: { prompt_tokens: 40, completion_tokens: 12, total_tokens: 52 } },
    ],
    ['4.9, 1.15: usage may have cost, in USD', { usage: { cost: expect.any(Number) } }],
  ]
  let replies: [string, Body][]
  beforeAll(async () => {
    replies = []
    for (const model of everyModel) replies.push([model, (await ask({ model })).body])
  })
  test.each(fields)('%s', (_, expected) => {
    for (const [model, body] of replies) expect([model, body]).toMatchObject([model, expected])
  })
  test('4.10: the name of a message is a string where there is one', () => {
    for (const [, { choices }] of replies) expect(typeof (choices[0].message.name ?? '')).toBe('string')
  })
  test('8.1: the answer is application/json', async () => {
    expect((await ask({})).headers.get('content-type')).toMatch(/^application\/json/)
  })
  test('4.6, 1.7: tool calls are in the message', async () => {
    for (const model of everyModel) {
      const { body } = await ask({ model, tools: [weather] }, { step: called })
      const call = { type: 'function', function: { name: 'weather', arguments: '{"city":"Graz"}' } }
      const expected = { finish_reason: 'tool_calls', message: { tool_calls: [call] } }
      expect([model, body.choices]).toMatchObject([model, [expected]])
    }
  })
  test('8.2, 18.10: with stream: true it is streamed', async () => {
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
  test('1.8: a model is addressed as <provider_slug>/<model_name>', async () => {
    expect(await ask({ model: 'openai/gpt-4.1' })).toMatchObject({ status: 200, sent: { model: 'gpt-4.1' } })
    expect(await ask({ model: 'gpt-4.1' })).toMatchObject({ status: 404, sent: undefined })
  })
  test('1.9: managed policies are addressed by their bare id', async () => {
    const { status, headers } = await ask({ model: 'best' })
    expect([status, headers.get('x-router-model')]).toEqual([200, models.ordinary])
  })
  test('1.15, 2.42: the cost of a request is that of its tokens at the listed prices', async () => {
    const entry = (await (await world.router.call(`/v1/models/${models.ordinary}`)).json()) as Body
    const [{ input_price, output_price }] = entry.pricing
    expect((await ask({})).body.usage.cost).toBeCloseTo(40 * input_price + 12 * output_price, 12)
  })
  test('20.9: dated model ids select a stable model version', async () => {
    const { status, sent } = await ask({ model: 'openai/gpt-4.1-2025-04-14' })
    expect([status, sent.model]).toEqual([200, 'gpt-4.1-2025-04-14'])
  })
})

describe('POST /v1/messages', () => {
  const create = (body: object) =>
    world.ask('/v1/messages', { model: models.anthropic, max_tokens: 50, messages, ...body })

  test('10.1, 1.1: a messages-style request is accepted, for every provider, and usage has cost', async () => {
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
  test('10.2, 20.3, 21.2: the web search tool is {type: web_search_20250305, name: web_search, max_uses: <integer>}', async () => {
    const tool = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 }
    expect(await create({ tools: [tool] })).toMatchObject({ status: 200, sent: { tools: [tool] } })
    for (const max_uses of [0, -1, 1.5, 'x']) {
      const { status, body, sent } = await create({ tools: [{ ...tool, max_uses }] })
      expect([status, body.error.param, sent]).toEqual([400, 'tools[0].max_uses', undefined])
    }
  })
})
