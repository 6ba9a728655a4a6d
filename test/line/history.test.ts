import { describe, expect, test } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import type { ClientApi } from '../../src/api/client-api.ts'
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
  return target.provider.chat?.losses.some((loss) => loss.field === field && !loss.when)
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
      // A call that is told as that of a function is not lost, a tool that cannot be called any more is.
      const offers = JSON.stringify(body.tools ?? []).includes('custom')
      if (calls.length > 0)
        expect({ [id]: sent.dropped.includes('tools.custom') }).toEqual({ [id]: offers && !isKnown })
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
    { max_tokens: 9, messages: [{ role: 'user', content: 'Go.' }, { role: 'assistant', content: refusal }, answer] },
  ],
]

test.each(refusals)('a refusal in a history stays, as text where there are no others: %#', async (api, body) => {
  for (const id of await shippedTargets()) {
    const { body: sent, dropped, target } = await sentTo(id, api, body)
    const own = /^(openai|openai-responses|azure|openrouter)\//.test(id)
    const holders = objectsIn(sent).flatMap((one) =>
      Object.entries(one)
        .filter(([, value]) => value === refusal)
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
