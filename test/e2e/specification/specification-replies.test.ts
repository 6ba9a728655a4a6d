import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Body } from '../clients/sdk-wire.ts'
import { called, everyModel, models, said, searched, specificationWorld, type World } from './specification-world.ts'

// The contract of what POST /v1/responses answers, statement by statement.

let world: World
beforeAll(async () => {
  world = await specificationWorld({ models: { 'gpt-4o-search-preview': { api: 'chat' } } })
})
afterAll(() => world.end())

const ask = (body: object, more = {}) =>
  world.ask('/v1/responses', { model: models.native, input: 'Hi', ...body }, more)
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const weather = { type: 'function', name: 'weather', description: 'The weather', parameters, strict: false }
describe('Web search', () => {
  const sent: [id: string, model: string, expected: object][] = [
    ['1.18', models.native, { tools: [{ type: 'web_search' }] }],
    ['1.16', models.anthropic, { tools: [expect.objectContaining({ name: 'web_search' })] }],
    ['1.17', models.google, { tools: [{ googleSearch: {} }] }],
    ['1.19', 'openai/gpt-4o-search-preview', { web_search_options: {} }],
  ]
  test.each(sent)(
    "9.39, 21.1, %s: {type: web_search} is translated into the provider's format: %s",
    async (_, model, expected) => {
      const answer = await ask({ model, tools: [{ type: 'web_search' }] })
      expect([answer.status, answer.headers.get('x-router-dropped')]).toEqual([200, null])
      expect(answer.sent).toMatchObject(expected)
    },
  )

  test('3.12, 3.13: web search produces web_search_call items and url_citation annotations on text parts', async () => {
    for (const model of [models.native, models.anthropic, models.google]) {
      const { body } = await ask({ model, tools: [{ type: 'web_search' }] }, { step: searched })
      // Between them may be what the provider says of its search.
      const [search, message] = [body.output[0], body.output.at(-1)]
      expect([model, search.type, message.type]).toEqual([model, 'web_search_call', 'message'])
      expect(message.content[0]).toMatchObject({ type: 'output_text', annotations: [{ type: 'url_citation' }] })
    }
  })
})

describe('Response object', () => {
  const fields: [statement: string, expected: object][] = [
    ['3.1: id is required', { id: expect.stringMatching(/./) }],
    ['3.2: object is always response', { object: 'response' }],
    ['3.3: created_at is in Unix seconds', { created_at: expect.any(Number) }],
    ['3.4: model is required', { model: expect.stringMatching(/^[a-z-]+\/./) }],
    ['3.5: status is completed', { status: 'completed' }],
    ['3.6: output is an array', { output: [expect.anything()] }],
    [
      '3.7: a message item has role, status, id and content',
      { output: [{ type: 'message', role: 'assistant', status: 'completed', id: expect.any(String), content: [{}] }] },
    ],
    [
      '3.8: a content part has the type output_text and text',
      { output: [{ content: [{ type: 'output_text', text: said.text }] }] },
    ],
    ['3.14: incomplete_details is optional', { incomplete_details: null }],
    ['3.15: error is optional', { error: null }],
    ['3.16: usage has input_tokens', { usage: { input_tokens: 40 } }],
    ['3.17: usage has input_tokens_details.cached_tokens', { usage: { input_tokens_details: { cached_tokens: 0 } } }],
    ['3.18: usage has output_tokens', { usage: { output_tokens: 12 } }],
    [
      '3.19: usage has output_tokens_details.reasoning_tokens',
      { usage: { output_tokens_details: { reasoning_tokens: 0 } } },
    ],
    ['3.20: usage has total_tokens', { usage: { total_tokens: 52 } }],
    ['3.21, 9.40: usage has cost in USD, when not streamed as well', { usage: { cost: expect.any(Number) } }],
  ]
  let replies: [string, Body][]
  beforeAll(async () => {
    replies = []
    for (const model of everyModel) replies.push([model, (await ask({ model })).body])
  })
  test.each(fields)('%s', (_, expected) => {
    for (const [model, body] of replies) expect([model, body]).toMatchObject([model, expected])
  })

  test('3.10: items are function_call items', async () => {
    for (const model of everyModel) {
      const { body } = await ask({ model, tools: [weather] }, { step: called })
      const item = {
        type: 'function_call',
        name: 'weather',
        call_id: expect.any(String),
        arguments: expect.any(String),
      }
      expect([model, body.output]).toMatchObject([model, [item]])
    }
  })

  test('3.11: items are reasoning items', async () => {
    for (const model of [models.native, models.anthropic, models.google]) {
      const { body } = await ask({ model }, { step: { thought: 'Let me see.', ...said } })
      expect([model, body.output[0].type]).toEqual([model, 'reasoning'])
    }
  })

  test('3.5, 3.14: status is incomplete, with incomplete_details', async () => {
    for (const model of everyModel) {
      const { body } = await ask({ model }, { step: { ...said, ended: 'length' } })
      const expected = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
      expect([model, body]).toMatchObject([model, expected])
    }
  })

  test('3.22: status is in_progress while it is written and failed when that fails', async () => {
    const { events } = await ask({ model: models.ordinary, stream: true }, { step: 'fail' })
    expect(events[0].response.status).toBe('in_progress')
    expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { status: 'failed' } })
  })
})

describe('Routes', () => {
  test("1.10: the native prefix routes through the provider's Responses API", async () => {
    expect(await ask({})).toMatchObject({ status: 200, path: '/responses', sent: { model: 'gpt-4.1', input: 'Hi' } })
  })
  test('1.12: the native prefix has full Responses parity, file inputs included: the request arrives as it was sent', async () => {
    const file = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0xLjQK' }
    const body = {
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'What is it?' }, file] }],
      ...{
        instructions: 'Be brief.',
        max_output_tokens: 50,
        temperature: 1,
        top_p: 1,
        truncation: 'auto',
        store: false,
      },
      ...{ tools: [weather, { type: 'web_search' }], tool_choice: 'auto', parallel_tool_calls: true, user: 'u-1' },
      ...{ text: { format: { type: 'json_schema', name: 'place', strict: false, schema: parameters } }, stream: true },
      ...{ include: ['web_search_call.action.sources'], metadata: { team: 'a' } },
    }
    const { status, sent, headers } = await ask(body)
    expect([status, headers.get('x-router-dropped')]).toEqual([200, null])
    expect(sent).toEqual({ ...body, model: 'gpt-4.1' })
  })
  test('1.11: the ordinary prefix routes through chat completions', async () => {
    const { status, path, sent } = await ask({ model: models.ordinary })
    expect([status, path, sent.messages]).toEqual([200, '/chat/completions', [{ role: 'user', content: 'Hi' }]])
  })
  test('1.14: the request shape is converted for providers that do not speak the Responses format', async () => {
    expect(await ask({ model: models.anthropic })).toMatchObject({
      status: 200,
      path: expect.stringMatching(/messages$/),
    })
    expect(await ask({ model: models.google })).toMatchObject({ status: 200, path: expect.stringMatching(/:generate/) })
  })
})

describe('Events', () => {
  test('18.1, 18.2, 18.3, 18.4, 1.13: the stream is of named events, among them response.created, response.output_text.delta, response.completed', async () => {
    for (const model of everyModel) {
      const { text, events } = await ask({ model, stream: true })
      const names = [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)
      expect(names).toEqual(events.map(({ type }) => type))
      expect([names[0], names.at(-1)]).toEqual(['response.created', 'response.completed'])
      expect(names).toContain('response.output_text.delta')
    }
  })
  test('18.5, 18.6: response.completed carries the full usage with cost, without an extra parameter', async () => {
    for (const model of everyModel) {
      const { usage } = (await ask({ model, stream: true })).events.at(-1).response
      const expected = { input_tokens: 40, output_tokens: 12, total_tokens: 52, cost: expect.any(Number) }
      expect([model, usage]).toMatchObject([model, expected])
    }
  })
})
