import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
import { writeForeignSignature } from '../../src/api/foreign-signature.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import { type Sent, sentTo, shippedTargets } from '../helpers/sent.ts'

/** Every object in a body. */
function objectsIn(value: Json | undefined): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(objectsIn)
  return isObject(value) ? [value, ...Object.values(value).flatMap(objectsIn)] : []
}

const member = (value: Json | undefined, name: string) => (isObject(value) ? value[name] : undefined)

/** The ids of calls and of results, in the words of all formats. */
function idsIn(body: JsonObject): { calls: Json[]; results: Json[] } {
  const objects = objectsIn(body)
  const found = (values: (Json | undefined)[]) => values.filter((id) => id !== undefined).toSorted()
  const ofType = (types: string[], name: string) =>
    objects.map((one) => (types.includes(String(one.type)) ? one[name] : undefined))
  return {
    calls: found([
      ...objects.flatMap(({ tool_calls }) =>
        Array.isArray(tool_calls) ? tool_calls.map((call) => member(call, 'id')) : [],
      ),
      ...ofType(['tool_use'], 'id'),
      ...ofType(['function_call', 'custom_tool_call'], 'call_id'),
      ...objects.flatMap(({ toolUse, functionCall }) => [member(toolUse, 'toolUseId'), member(functionCall, 'id')]),
    ]),
    results: found([
      ...objects.map(({ tool_call_id }) => tool_call_id),
      ...ofType(['tool_result'], 'tool_use_id'),
      ...ofType(['function_call_output', 'custom_tool_call_output'], 'call_id'),
      ...objects.flatMap(({ toolResult, functionResponse }) => [
        member(toolResult, 'toolUseId'),
        member(functionResponse, 'id'),
      ]),
    ]),
  }
}

const parameters = { type: 'object', properties: {} }
const chatTools: JsonObject[] = [
  { type: 'function', function: { name: 'f', parameters } },
  { type: 'custom', custom: { name: 'c' } },
]
const chatHistory = {
  messages: [
    { role: 'user', content: 'Go.' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'call_aaaa', type: 'function', function: { name: 'f', arguments: '{}' } },
        { id: 'call_bbbb', type: 'custom', custom: { name: 'c', input: 'free text' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_aaaa', content: 'Done.' },
    { role: 'tool', tool_call_id: 'call_bbbb', content: 'Done as well.' },
  ],
}
const flatTools = [
  { type: 'function', name: 'f', parameters },
  { type: 'custom', name: 'c' },
]
const flatHistory = {
  input: [
    { role: 'user', content: 'Go.' },
    { type: 'function_call', call_id: 'call_aaaa', name: 'f', arguments: '{}' },
    { type: 'custom_tool_call', call_id: 'call_bbbb', name: 'c', input: 'free text' },
    { type: 'function_call_output', call_id: 'call_aaaa', output: 'Done.' },
    { type: 'custom_tool_call_output', call_id: 'call_bbbb', output: 'Done as well.' },
  ],
}
const selections = [[], [0], [1], [0, 1]]
const histories: readonly [ClientApi, JsonObject][] = [
  ...selections.map((chosen): [ClientApi, JsonObject] => {
    const tools = chosen.map((index) => chatTools[index] as Json)
    return [chat, { ...chatHistory, ...(tools.length > 0 && { tools }) }]
  }),
  ...selections.map((chosen): [ClientApi, JsonObject] => {
    const tools = chosen.map((index) => flatTools[index] as Json)
    return [responses, { ...flatHistory, ...(tools.length > 0 && { tools }) }]
  }),
]

const isDeclared = ({ target }: Sent, field: string) => {
  return target.provider.chat?.unsupported.some((loss) => loss.field === field && !loss.when)
}

describe('every result in a history has its call, also of custom tools', () => {
  test.each(histories)('%#', async (api, body) => {
    for (const id of await shippedTargets()) {
      const sent = await sentTo(id, api, body)
      const { calls, results } = idsIn(sent.body)
      expect({ [id]: results }).toEqual({ [id]: calls })
      const isKnown =
        ['chat', 'responses'].includes(String(sent.target.provider.sameAs)) &&
        !(id === 'azure/grok-4' || isDeclared(sent, 'tools.custom'))
      const custom = objectsIn(sent.body).filter(({ type }) => /^custom/.test(String(type)))
      if (!isKnown) expect({ [id]: custom }).toEqual({ [id]: [] })
      if (calls.length > 0) expect(JSON.stringify(sent.body)).toContain('free text')
      // A custom tool is a function there.
      expect({ [id]: sent.dropped.includes('tools.custom') }).toEqual({ [id]: false })
    }
  })
})

const refusal = 'That I will not do.'
const answer = { role: 'user', content: 'Then not.' }
const refusals: readonly [ClientApi, JsonObject][] = [
  [chat, { messages: [{ role: 'user', content: 'Go.' }, { role: 'assistant', content: null, refusal }, answer] }],
  [chat, { messages: [{ role: 'user', content: 'Go.' }, { role: 'assistant', content: '', refusal }, answer] }],
  [
    chat,
    {
      messages: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: [{ type: 'refusal', refusal }] },
        answer,
      ],
    },
  ],
  [
    responses,
    {
      input: [{ role: 'user', content: 'Go.' }, { role: 'assistant', content: [{ type: 'refusal', refusal }] }, answer],
    },
  ],
  [
    responses,
    {
      input: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: [{ type: 'output_refusal', text: refusal }] },
        answer,
      ],
    },
  ],
  [
    messages,
    { max_tokens: 99, messages: [{ role: 'user', content: 'Go.' }, { role: 'assistant', content: refusal }, answer] },
  ],
]

test.each(refusals)('a refusal in a history stays, as text where there are no others: %#', async (api, body) => {
  for (const id of await shippedTargets()) {
    const { body: sent, dropped, target } = await sentTo(id, api, body)
    // Refusals are part of the Responses format.
    const own = /^(openai|azure|openrouter|[\w-]+-responses)\//.test(id)
    const holders = objectsIn(sent).flatMap((one) =>
      Object.entries(one)
        .filter(([, value]) => typeof value === 'string' && value.includes(refusal))
        .map(([name]) => name),
    )
    expect({ [id]: [holders.length, dropped] }).toEqual({ [id]: [1, []] })
    if (!own) expect({ [id]: holders }).not.toEqual({ [id]: ['refusal'] })
    expect(target.provider.slug).toBe(id.slice(0, id.indexOf('/')))
  }
})

test('a refusal beside text is text after it', async () => {
  const body = (content: Json) => ({
    messages: [{ role: 'user', content: 'Go.' }, { role: 'assistant', content, refusal }, answer],
  })
  const said = async (content: Json) => ((await sentTo('groq/x', chat, body(content))).body.messages as JsonObject[])[1]
  expect(await said('Hm. ')).toEqual({ role: 'assistant', content: `Hm. ${refusal}` })
  expect(await said([{ type: 'text', text: 'Hm.' }])).toEqual({
    role: 'assistant',
    content: [
      { type: 'text', text: 'Hm.' },
      { type: 'text', text: refusal },
    ],
  })
  expect(await said([{ type: 'refusal', refusal: 'No.' }])).toEqual({
    role: 'assistant',
    content: [
      { type: 'text', text: 'No.' },
      { type: 'text', text: refusal },
    ],
  })
})

describe('audio of an earlier reply is known by its id where it was made', () => {
  const spoken = (more: JsonObject): JsonObject => ({
    messages: [
      { role: 'user', content: 'Sing.' },
      { role: 'assistant', content: null, audio: { id: 'audio_1', ...more } },
      answer,
    ],
  })
  test('goes there, is text elsewhere, and is named where it has no words', async () => {
    for (const id of await shippedTargets()) {
      const said = await sentTo(id, chat, spoken({ transcript: 'La la.' }))
      const json = JSON.stringify(said.body)
      const isNamed = said.dropped.includes('parts.audio')
      expect({ [id]: [json.includes('audio_1'), json.includes('La la.'), isNamed].includes(true) }).toEqual({
        [id]: true,
      })
      const silent = await sentTo(id, chat, spoken({}))
      const isSent = JSON.stringify(silent.body).includes('audio_1')
      expect({ [id]: silent.names.some((name) => /audio/.test(name)) }).toEqual({ [id]: !isSent })
    }
  })
})

describe('reasoning that is only sealed', () => {
  const sealed = { by: 'somebody', encrypted: 'U2VhbGVk' }
  const detail = { type: 'reasoning.encrypted', data: sealed.encrypted, format: sealed.by, index: 0 }
  const place = { after: { content: 0, tool_calls: 0 } }
  const blob = writeForeignSignature(sealed) as string
  const ofChat = (more: JsonObject): JsonObject => ({
    messages: [{ role: 'user', content: 'Go.' }, { role: 'assistant', content: 'Hm.', ...more }, answer],
  })
  const ofMessages = (block: JsonObject): JsonObject => ({
    max_tokens: 99,
    messages: [
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: [block, { type: 'text', text: 'Hm.' }] },
      answer,
    ],
  })
  const ofResponses = (item: JsonObject): JsonObject => ({
    input: [{ role: 'user', content: 'Go.' }, item, { role: 'assistant', content: 'Hm.' }, answer],
  })
  const lost: readonly [ClientApi, JsonObject, string][] = [
    [chat, ofChat({ reasoning_details: [{ ...detail, ...place }] }), 'messages.reasoning_details'],
    [
      responses,
      ofResponses({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: blob }),
      'input.reasoning',
    ],
    [messages, ofMessages({ type: 'redacted_thinking', data: blob }), 'messages.thinking'],
    [messages, ofMessages({ type: 'thinking', thinking: '', signature: blob }), 'messages.thinking'],
  ]
  test.each(lost)('by another maker is named wherever it is left out: %#', async (api, body, name) => {
    for (const id of await shippedTargets()) {
      const { body: sent, names } = await sentTo(id, api, body)
      expect({ [id]: [JSON.stringify(sent).includes(sealed.encrypted), names] }).toEqual({ [id]: [false, [name]] })
    }
  })

  test('is no loss where its words are sent, or where it is only the seal of a call', async () => {
    const said = ofChat({ reasoning_content: 'Let me see.', reasoning_details: [{ ...detail, ...place }] })
    expect((await sentTo('deepseek/deepseek-v4-pro', chat, said)).names).toEqual([])
    const ofCall = writeForeignSignature({ by: 'somebody', signature: 'S', call: 'call_1' }) as string
    const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: ofCall }
    expect((await sentTo('openai-responses/gpt-5.4', responses, ofResponses(item))).names).toEqual([])
  })
})

test('an output limit below what a format makes is raised and named, in edited bodies too', async () => {
  for (const id of ['openai-responses/gpt-5.4', 'azure/gpt-5.1-codex']) {
    const own = (limit: number) => sentTo(id, responses, { input: 'Hi', max_output_tokens: limit })
    const other = (limit: number) => sentTo(id, chat, { messages: [answer], max_tokens: limit })
    const low = [await own(1), await own(15), await other(5)]
    expect(low.map(({ body, names }) => [body.max_output_tokens, names])).toEqual([
      [16, ['max_output_tokens']],
      [16, ['max_output_tokens']],
      [16, ['max_tokens']],
    ])
    const enough = [await own(16), await other(100)]
    expect(enough.map(({ body, names }) => [body.max_output_tokens, names])).toEqual([
      [16, []],
      [100, []],
    ])
  }
})

test('settings of Messages that Responses has in another form are named there', async () => {
  const body = { max_tokens: 100, messages: [answer], context_management: { edits: [] } }
  const { body: sent, names } = await sentTo('openai-responses/gpt-5.4', messages, body)
  expect([sent.context_management, names]).toEqual([undefined, ['context_management']])
})

test('parameters of strict tools that are narrowed are named, streamed or not, among others that are not', async () => {
  const tool = (name: string, a: JsonObject) => ({
    type: 'function',
    function: {
      name,
      strict: true,
      parameters: { type: 'object', additionalProperties: false, required: ['a'], properties: { a } },
    },
  })
  const tools = [tool('f', { type: 'string' }), tool('g', { type: 'string', minLength: 3 })]
  for (const id of ['anthropic/claude-sonnet-4-5', 'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0']) {
    for (const stream of [true, false]) {
      const { body, names } = await sentTo(id, chat, { messages: [answer], tools, stream, max_tokens: 100 })
      expect(JSON.stringify(body)).toContain('(minLength: 3)')
      expect(names).toEqual(['tools.parameters'])
    }
  }
})
