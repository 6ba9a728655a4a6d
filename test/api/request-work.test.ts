import { describe } from 'vitest'
import { chat } from '../../src/api/chat/api.ts'
import { messages } from '../../src/api/messages/api.ts'
import { responses } from '../../src/api/responses/api.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { repairHistory } from '../../src/manifest/run/repair-history.ts'
import { estimatePromptTokens } from '../../src/money/meter.ts'
import { testEach } from '../helpers/slow.ts'
import { expectLinear } from '../helpers/time.ts'

/** How an API writes a text, a call and a result. */
const apis = {
  chat: {
    api: chat,
    body: (turns: JsonObject[], more: JsonObject) => ({ messages: turns, ...more }),
    text: (text: string): JsonObject => ({ type: 'text', text }),
    call: (id: string): JsonObject => ({
      role: 'assistant',
      tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
    }),
    result: (id: string): JsonObject => ({ role: 'tool', tool_call_id: id, content: 'ok' }),
  },
  messages: {
    api: messages,
    body: (turns: JsonObject[], more: JsonObject) => ({ max_tokens: 9, messages: turns, ...more }),
    text: (text: string): JsonObject => ({ type: 'text', text }),
    call: (id: string): JsonObject => ({
      role: 'assistant',
      content: [{ type: 'tool_use', id, name: 'f', input: {} }],
    }),
    result: (id: string): JsonObject => ({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: id, content: 'ok' }],
    }),
  },
  responses: {
    api: responses,
    body: (turns: JsonObject[], more: JsonObject) => ({ input: turns, ...more }),
    text: (text: string): JsonObject => ({ type: 'input_text', text }),
    call: (id: string): JsonObject => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' }),
    result: (id: string): JsonObject => ({ type: 'function_call_output', call_id: id, output: 'ok' }),
  },
}
type Written = (typeof apis)['chat' | 'messages' | 'responses']

function many<T>(count: number, one: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => one(index))
}

const named = (count: number): JsonObject => Object.fromEntries(many(count, (index) => [`x${index}`, index]))
const user = (content: string | JsonObject[]): JsonObject => ({ role: 'user', content })

/** Bodies with many of something. */
const shapes: { [shape: string]: (written: Written, count: number) => JsonObject } = {
  'unknown fields': ({ body }, count) => body([user('Hi')], named(count)),
  'unknown members of a part': ({ body, text }, count) => body([user([{ ...text('Hi'), ...named(count) }])], {}),
  'parts with unknown members': ({ body, text }, count) =>
    body([user(many(count, (index) => ({ ...text('Hi'), [`x${index}`]: 1 })))], {}),
  parts: ({ body, text }, count) => body([user(many(count, () => text('Hi')))], {}),
  'messages of one role': ({ body }, count) =>
    body(
      many(count, () => user('Hi')),
      {},
    ),
  turns: ({ body }, count) =>
    body(
      many(count, (index) => ({ role: index % 2 ? 'assistant' : 'user', content: 'Hi' })),
      {},
    ),
  'calls with their results': ({ body, call, result }, count) =>
    body([user('Hi'), ...many(count, (index) => [call(`c${index}`), result(`c${index}`)]).flat()], {}),
  'calls and then their results': ({ body, call, result }, count) =>
    body(
      [
        user('Hi'),
        ...many(count, (index) => call(`c${index}`)),
        ...many(count, (index) => result(`c${count - index - 1}`)),
      ],
      {},
    ),
  'calls of one id': ({ body, call, result }, count) =>
    body([user('Hi'), ...many(count, () => call('c')), ...many(count, () => result('c'))], {}),
  'calls without results': ({ body, call }, count) =>
    body([user('Hi'), ...many(count, (index) => call(`c${index}`))], {}),
  'results without calls': ({ body, result }, count) =>
    body([user('Hi'), ...many(count, (index) => result(`c${index}`))], {}),
}

const strict = { alternate: true, first_user: true, pair_tools: true, results_first: true, no_empty_text: true }
const rules = [
  { ...strict, max_cache_hints: 4, mid_system: 'user' as const, tool_id: { pattern: /^[a-z0-9]{1,4}$/ } },
  { pair_tools: true },
]

/** Reads a body, counts it, repairs its history and edits it. */
function workOn(written: Written, body: JsonObject): void {
  const request = written.api.read({ model: 'a/m', ...body })
  estimatePromptTokens(request)
  for (const each of rules) repairHistory(request, each)
  written.api.editRequest({ model: 'a/m', ...body }, { model: 'm', stream: false, dropped: ['seed', 'parts.image'] })
}

describe.each(Object.entries(apis))('a body of %s', (_, written) => {
  // Eight times as many may not cost the square of it, 64 times as much.
  testEach(Object.keys(shapes), { slowIf: (shape) => shape !== 'calls and then their results' })(
    'costs the same for each, however many %s it has',
    (shape) => {
      const sizes = { small: 1_000, large: 8_000, slack: 4, floorMs: 250 }
      expectLinear((count) => workOn(written, shapes[shape]?.(written, count) ?? {}), sizes)
    },
  )
})
