import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openapi } from '../../helpers/openapi.ts'
import { type LoopbackProvider, loopbackProvider } from '../../helpers/provider.ts'
import { testKey } from '../../helpers/router.ts'
import { pdf, pixel } from '../clients/sdk-conversations.ts'
import type { Body } from '../clients/sdk-wire.ts'
import { everyModel, type FieldRule, models, specificationWorld, type World } from './specification-world.ts'

// The contract of POST /v1/responses, statement by statement.

let world: World
let host: LoopbackProvider
beforeAll(async () => {
  host = await loopbackProvider((_, response) => {
    response.writeHead(200, { 'content-type': 'application/pdf' }).end(Buffer.from(pdf, 'base64'))
  })
  const media = { schemes: ['https', 'http'], allow_hosts: [new URL(host.url).host] }
  world = await specificationWorld({ settings: { media } })
})
afterAll(async () => {
  await world.end()
  await host.close()
})

const ask = (body: object, more = {}) =>
  world.ask('/v1/responses', { model: models.native, input: 'Hi', ...body }, more)
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const weather = { type: 'function', name: 'weather', description: 'The weather', parameters, strict: false }
const user = (...content: object[]) => ({ input: [{ role: 'user', content }] })
const json = (value: unknown) => JSON.stringify(value)

describe('POST /v1/responses', () => {
  const rules: FieldRule[] = [
    ['9.3: model is required', [], [[{ model: undefined }, 'model']]],
    ['9.7: input is required', [], [[{ input: undefined }, 'input']]],
    [
      '9.5, 9.6: input is a string or an array of input items',
      [{ input: 'Hi' }, { input: [{ role: 'user', content: 'Hi' }] }],
      [[{ input: 7 }, 'input']],
    ],
    ['9.8: instructions is a string', [{ instructions: 'Be brief.' }], [[{ instructions: 7 }, 'instructions']]],
    [
      '9.9, 20.2: max_output_tokens is an integer >= 1',
      [{ max_output_tokens: 1 }, { max_output_tokens: 500 }],
      [
        [{ max_output_tokens: 0 }, 'max_output_tokens'],
        [{ max_output_tokens: 1.5 }, 'max_output_tokens'],
      ],
    ],
    ['9.10: stream is a boolean', [{ stream: true }, { stream: false }], [[{ stream: 'yes' }, 'stream']]],
    [
      '9.11, 20.2: temperature is from 0 to 2',
      [{ temperature: 0 }, { temperature: 2 }],
      [
        [{ temperature: -0.1 }, 'temperature'],
        [{ temperature: 2.1 }, 'temperature'],
      ],
    ],
    [
      '9.12, 20.2: top_p is from 0 to 1',
      [{ top_p: 0 }, { top_p: 1 }],
      [
        [{ top_p: -0.1 }, 'top_p'],
        [{ top_p: 1.1 }, 'top_p'],
      ],
    ],
    [
      '9.13: parallel_tool_calls is a boolean',
      [{ parallel_tool_calls: true }, { parallel_tool_calls: false }],
      [[{ parallel_tool_calls: 'no' }, 'parallel_tool_calls']],
    ],
    [
      '9.14, 9.15, 9.16: tool_choice is auto, none or required',
      ['auto', 'none', 'required'].map((tool_choice) => ({ tools: [weather], tool_choice })),
      [[{ tools: [weather], tool_choice: 'any' }, 'tool_choice']],
    ],
    ['9.17: tool_choice is an object', [{ tools: [weather], tool_choice: { type: 'function', name: 'weather' } }], []],
    [
      '9.18, 9.19, 9.20: reasoning.effort is low, medium or high',
      ['low', 'medium', 'high'].map((effort) => ({ reasoning: { effort } })),
      [[{ reasoning: { effort: 'huge' } }, 'reasoning.effort']],
    ],
    [
      '9.21: reasoning.summary is auto, concise or detailed',
      ['auto', 'concise', 'detailed'].map((summary) => ({ reasoning: { summary } })),
      [[{ reasoning: { summary: 'verbose' } }, 'reasoning.summary']],
    ],
    [
      '9.22, 21.5: text.format is {type: json_schema, name, strict, schema}',
      [{ text: { format: { type: 'json_schema', name: 'place', strict: false, schema: parameters } } }],
      [[{ text: { format: { type: 'xml' } } }, 'text.format.type']],
    ],
    ['9.23: text.format takes JSON mode', [{ text: { format: { type: 'json_object' } }, input: 'Answer in JSON' }], []],
    [
      '9.24: include is an array of strings',
      [{ include: ['reasoning.encrypted_content'] }],
      [[{ include: 'all' }, 'include']],
    ],
    [
      '9.25: metadata is an object of key-value pairs',
      [{ metadata: { team: 'a' } }],
      [[{ metadata: 'a' }, 'metadata']],
    ],
    ['9.26: store is a boolean', [{ store: true }, { store: false }], [[{ store: 'yes' }, 'store']]],
    [
      '9.27: truncation is a strategy',
      [{ truncation: 'auto' }, { truncation: 'disabled' }],
      [[{ truncation: 'weird' }, 'truncation']],
    ],
    ['9.28: user is a string', [{ user: 'u-1' }], [[{ user: 7 }, 'user']]],
    [
      '9.38, 21.4: tools are {type: function, name, description, parameters, strict}',
      [{ tools: [weather] }, { tools: [{ ...weather, strict: true }] }],
      [[{ tools: [{ type: 'function' }] }, 'tools[0].name']],
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

  test('9.1: Content-Type must be application/json', async () => {
    const send = (headers: Record<string, string>) =>
      fetch(`${world.router.url}/v1/responses`, {
        method: 'POST',
        headers: { 'x-api-key': testKey, ...headers },
        body: Buffer.from(json({ model: models.native, input: 'Hi' })),
      })
    const types = ['text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded']
    for (const headers of [{}, ...types.map((type) => ({ 'content-type': type }))]) {
      expect([headers, (await send(headers)).status]).toEqual([headers, 415])
    }
    expect((await ask({}, { headers: { 'content-type': 'application/json; charset=utf-8' } })).status).toBe(200)
  })

  test('9.2, 17.7: one of Authorization or x-api-key is required', async () => {
    const status = async (headers: object) => {
      const body = json({ model: 'nothing/x', input: 'Hi' })
      const all = { 'content-type': 'application/json', ...headers }
      return (await fetch(`${world.router.url}/v1/responses`, { method: 'POST', headers: all, body })).status
    }
    expect(await status({})).toBe(401)
    expect(await status({ authorization: `Bearer ${testKey}` })).toBe(404)
    expect(await status({ 'x-api-key': testKey })).toBe(404)
  })

  test('9.4: the default of model is a native-Responses-prefixed id', () => {
    const { ResponseRequest } = (openapi.components as Body).schemas
    expect(ResponseRequest.properties.model.default).toMatch(/^openai-responses\//)
    expect(ResponseRequest.required).toContain('model')
  })

  test('9.8: instructions are placed first in context', async () => {
    for (const model of everyModel) {
      const { sent } = await ask({ model, instructions: 'FIRST', input: 'SECOND' })
      const placed = sent.instructions ?? sent.system ?? sent.systemInstruction ?? sent.messages[0]
      expect([model, json(placed)]).toEqual([model, expect.stringContaining('FIRST')])
    }
  })

  test('9.25: metadata is recorded, which is no loss', async () => {
    for (const model of everyModel) {
      const { status, headers } = await ask(
        { model, metadata: { team: 'a' } },
        { headers: { 'x-router-strict': 'true' } },
      )
      expect([model, status, headers.get('x-router-dropped')]).toEqual([model, 200, null])
    }
  })

  test('9.26: store keeps the response for later retrieval', async () => {
    const status = async (store: boolean) => {
      const { body } = await ask({ model: models.anthropic, store })
      return (await world.router.call(`/v1/responses/${body.id}`)).status
    }
    expect([await status(true), await status(false)]).toEqual([200, 404])
  })
})

describe('Input', () => {
  const image = `data:image/png;base64,${pixel}`
  const remote = 'https://example.com/cat.png'
  const report = { type: 'input_file', filename: 'report.pdf', file_data: `data:application/pdf;base64,${pdf}` }
  const items: [statement: string, body: object, arrives: string[]][] = [
    ['9.29: messages are {role, content} with a string', { input: [{ role: 'user', content: 'WORDS' }] }, ['WORDS']],
    ['9.30, 21.7: a part input_text has text', user({ type: 'input_text', text: 'WORDS' }), ['WORDS']],
    ['9.32, 21.7: a part input_image has a base64 data URL', user({ type: 'input_image', image_url: image }), [pixel]],
    ['9.33, 21.7: a part input_file has filename and file_data as a base64 data URL', user(report), [pdf]],
    [
      '9.36, 9.37, 21.9: function_call {name, call_id, arguments} and function_call_output {call_id, output} return a tool result',
      {
        tools: [weather],
        input: [
          { role: 'user', content: 'Weather?' },
          { type: 'function_call', name: 'weather', call_id: 'call_1', arguments: '{"city":"Graz"}' },
          { type: 'function_call_output', call_id: 'call_1', output: 'SUNNY' },
        ],
      },
      ['weather', 'Graz', 'SUNNY'],
    ],
    [
      '21.10: output_text and output_refusal are parts of earlier replies',
      {
        input: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: [{ type: 'output_text', text: 'BEFORE' }] },
          { role: 'user', content: 'And?' },
          { role: 'assistant', content: [{ type: 'output_refusal', text: 'REFUSED' }] },
          { role: 'user', content: 'Why?' },
        ],
      },
      ['BEFORE', 'REFUSED'],
    ],
  ]
  test.each(items)('%s', async (_, body, arrives) => {
    for (const model of everyModel) {
      const { status, sent, text } = await ask({ model, ...body })
      expect([model, status, text]).toEqual([model, 200, expect.anything()])
      for (const words of arrives) expect([model, json(sent)]).toEqual([model, expect.stringContaining(words)])
    }
  })

  test('9.31: a part input_image has a URL', async () => {
    for (const model of [models.ordinary, models.native, models.anthropic]) {
      const { status, sent } = await ask({ model, ...user({ type: 'input_image', image_url: remote }) })
      expect([model, status, json(sent)]).toEqual([model, 200, expect.stringContaining(`"${remote}"`)])
    }
  })

  test.each([
    ['9.35, 21.8', 'file_data'],
    ['9.34', 'file_url'],
  ] as const)('%s: a part input_file has a remote URL for PDFs in %s', async (_, member) => {
    const link = `${host.url}/report.pdf`
    const file = { type: 'input_file', filename: 'report.pdf', [member]: link }
    // A provider that reads PDFs by their address gets the address, the others the document; none gets one as the other.
    const expected = new Map([
      [models.native, `"file_url":"${link}"`],
      [models.anthropic, `"url":"${link}"`],
      [models.ordinary, `"file_data":"data:application/pdf;base64,${pdf}"`],
      [models.google, `"data":"${pdf}"`],
    ])
    for (const [model, words] of expected) {
      const { status, sent } = await ask({ model, ...user(file) })
      expect([model, status, json(sent)]).toEqual([model, 200, expect.stringContaining(words)])
      expect(json(sent)).not.toMatch(/(data"|base64,)[":]*http/)
    }
  })
})
