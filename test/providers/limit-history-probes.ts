import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'
import type { FamilyRules } from '../../src/manifest/limits.ts'
import { type Ask, called, type Probe, pixel, type Seen, textInside, textsIn } from './limit-asks.ts'

/** What is asked of conversations in both ways; what translated ones alone need is a matter of their format. */
export function historyProbes(rules: FamilyRules['history']): Probe[] {
  const { tool_id, mid_system, user_after_tool, alternate } = rules
  const probes: Probe[] = [...turnProbes(rules)]
  if (tool_id) {
    const { pattern, length, max_length } = tool_id
    const max = length ?? max_length
    const inside = textInside({ ...(pattern && { pattern }), max: max ?? 40 })
    const outside = max === undefined ? 'a b|c' : `b${'a'.repeat(max)}`
    const has = (id: string) => (seen: Seen) => textsIn(seen.body).includes(id)
    probes.push({
      limit: 'history.tool_id',
      inside: { callId: inside, tools: [called] },
      unchanged: has(inside),
      outside: { callId: outside, tools: [called] },
      within: (seen) => !has(outside)(seen),
    })
  }
  const text = 'Instructions of the middle.'
  if (mid_system === 'head')
    probes.push({
      limit: 'history.mid_system',
      inside: {},
      unchanged: () => true,
      outside: { middle: text },
      within: ({ arrived }) => arrived.system.includes(text) && !arrived.turns.some((turn) => turn.text.includes(text)),
    })
  if (mid_system === 'user')
    probes.push({
      limit: 'history.mid_system',
      inside: {},
      unchanged: () => true,
      outside: { middle: text },
      within: ({ arrived }) => arrived.turns.some(({ role, text: words }) => role === 'user' && words.includes(text)),
    })
  if (user_after_tool === false)
    probes.push({
      limit: 'history.user_after_tool',
      inside: { callId: 'abc123xyz', tools: [called] },
      unchanged: ({ arrived }) => arrived.turns.length === 3,
      outside: { callId: 'abc123xyz', afterResult: 'Stop.', tools: [called] },
      within: ({ arrived }) => arrived.turns.length === 5,
    })
  if (alternate)
    probes.push({
      limit: 'history.alternate',
      inside: {},
      unchanged: () => true,
      outside: { twice: true },
      within: ({ body }) =>
        isObject(body) &&
        [body.messages, body.contents].flat().filter((one) => isObject(one) && one.role === 'user').length === 1,
    })
  return probes
}

const question = { role: 'user', content: 'Hi' }
const [first, second] = ['abc123xyz', 'xyz123abc']

/** Turns in the form of each API: what a turn is made of has no common words. */
function chatCall(id: string, words: string, text: string | null = null): JsonObject {
  return {
    role: 'assistant',
    content: text,
    tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: words } }],
  }
}

function chatResult(id: string): JsonObject {
  return { role: 'tool', tool_call_id: id, content: 'Done.' }
}

function use(id: string): JsonObject {
  return { type: 'tool_use', id, name: 'f', input: {} }
}

function result(id: string, content: Json = 'Done.', more: JsonObject = {}): JsonObject {
  return { type: 'tool_result', tool_use_id: id, content, ...more }
}

function item(id: string, words = '{}'): JsonObject {
  return { type: 'function_call', call_id: id, name: 'f', arguments: words }
}

function output(id: string): JsonObject {
  return { type: 'function_call_output', call_id: id, output: 'Done.' }
}

type Turns = NonNullable<Ask['conversation']>

function probe(limit: keyof FamilyRules['history'], inside: Turns, outside: Turns, within: Probe['within']): Probe {
  const ask = (conversation: Turns): Ask => ({ conversation, tools: [called] })
  const made = { limit: `history.${limit}`, inside: ask(inside), unchanged: () => true, outside: ask(outside) }
  return { ...made, ...(within && { within }) }
}

const paired: Turns = {
  chat: [question, chatCall(first, '{}'), chatResult(first)],
  messages: [question, { role: 'assistant', content: [use(first)] }, { role: 'user', content: [result(first)] }],
  responses: [question, item(first), output(first)],
}

function turnProbes(rules: FamilyRules['history']): Probe[] {
  const texts = (seen: Seen) => JSON.stringify(seen.body)
  return [
    ...(rules.pair_tools ? [pairProbe()] : []),
    ...(rules.results_first ? [resultsProbe()] : []),
    ...(rules.calls_together ? [togetherProbe()] : []),
    ...(rules.json_arguments
      ? [
          probe(
            'json_arguments',
            paired,
            {
              chat: [question, chatCall(first, 'oops'), chatResult(first)],
              responses: [question, item(first, 'oops'), output(first)],
            },
            (seen) => !textsIn(seen.body).includes('oops'),
          ),
        ]
      : []),
    ...(rules.media_in_errors === false ? [errorMediaProbe()] : []),
    ...(rules.no_empty_text
      ? [
          probe(
            'no_empty_text',
            { chat: [question], messages: [question], responses: [question] },
            {
              chat: [
                {
                  role: 'user',
                  content: [
                    { type: 'text', text: 'Hi' },
                    { type: 'text', text: '' },
                  ],
                },
              ],
              messages: [
                {
                  role: 'user',
                  content: [
                    { type: 'text', text: 'Hi' },
                    { type: 'text', text: '' },
                  ],
                },
              ],
              responses: [
                {
                  role: 'user',
                  content: [
                    { type: 'input_text', text: 'Hi' },
                    { type: 'input_text', text: '' },
                  ],
                },
              ],
            },
            (seen) => !/"(text|content)":""/.test(texts(seen)),
          ),
        ]
      : []),
    ...(rules.first_user ? [firstProbe()] : []),
    ...(rules.max_cache_hints ? [hintProbe(rules.max_cache_hints)] : []),
  ]
}

function pairProbe(): Probe {
  const unanswered: Turns = {
    chat: [question, chatCall(first, '{}'), { role: 'user', content: 'Well?' }],
    messages: [question, { role: 'assistant', content: [use(first)] }, { role: 'user', content: 'Well?' }],
    responses: [question, item(first), { role: 'user', content: 'Well?' }],
  }
  const within = ({ arrived: { turns } }: Seen) =>
    turns.flatMap(({ calls }) => calls).length === turns.flatMap(({ results }) => results).length
  return probe('pair_tools', paired, unanswered, within)
}

/** A text before the result: only the Messages API can say that in one turn. */
function resultsProbe(): Probe {
  const late = { role: 'user', content: [{ type: 'text', text: 'Before.' }, result(first)] }
  const turns = [question, { role: 'assistant', content: [use(first)] }, late]
  const within = ({ body }: Seen) => {
    const sent = JSON.stringify(body)
    return sent.indexOf('Done.') < sent.indexOf('Before.')
  }
  return probe('results_first', paired, { messages: turns }, within)
}

function togetherProbe(): Probe {
  const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Between.' }] }
  const outputs = [output(first), output(second)]
  const blocks = [use(first), { type: 'text', text: 'Between.' }, use(second)]
  const within = ({ body }: Seen) => {
    const sent = JSON.stringify(body)
    return sent.indexOf('Between.') < sent.indexOf(first)
  }
  return probe(
    'calls_together',
    { ...paired, responses: [question, item(first), item(second), ...outputs] },
    {
      messages: [
        question,
        { role: 'assistant', content: blocks },
        { role: 'user', content: [result(first), result(second)] },
      ],
      responses: [question, item(first), said, item(second), ...outputs],
    },
    within,
  )
}

function errorMediaProbe(): Probe {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } }
  const failed = (content: Json): Turns => ({
    messages: [
      question,
      { role: 'assistant', content: [use(first)] },
      { role: 'user', content: [result(first, content, { is_error: true })] },
    ],
  })
  const within = ({ arrived, body }: Seen) =>
    arrived.turns.every(({ results }) => results.every(({ images = 0 }) => images === 0)) &&
    textsIn(body).includes(pixel)
  return probe('media_in_errors', failed('Failed.'), failed([{ type: 'text', text: 'Failed.' }, image]), within)
}

function firstProbe(): Probe {
  const answer = { role: 'assistant', content: 'Hello.' }
  const all = (turns: JsonObject[]): Turns => ({ chat: turns, messages: turns, responses: turns })
  const within = ({ arrived }: Seen) => arrived.turns[0]?.role === 'user'
  return probe('first_user', all([question]), all([answer, question]), within)
}

/** Marks of the Messages API, which providers of its format and some others take. */
function hintProbe(most: number): Probe {
  const marked = (count: number): Turns => ({
    messages: [
      {
        role: 'user',
        content: Array.from({ length: count }, () => ({
          type: 'text',
          text: 'Hi',
          cache_control: { type: 'ephemeral' },
        })),
      },
    ],
  })
  const within = ({ body }: Seen) => (JSON.stringify(body).match(/cache_control|cachePoint/g)?.length ?? 0) <= most
  return probe('max_cache_hints', marked(most), marked(most + 1), within)
}
