import { frame, type Wire } from './openai-sdk-provider.ts'
import { citySchema, counted, offered, pictures, pieces, pixel, placeSchema, type Said } from './openai-sdk-talks.ts'

const input = {
  input_tokens: counted.input - counted.cached,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: counted.cached,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
}

const message = {
  id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
  type: 'message',
  role: 'assistant',
  model: 'claude-haiku-4-5-20251001',
  stop_sequence: null,
}

type Block = { type: string; [member: string]: unknown }

/** The thinking before a call: sealed with its text, or wholly hidden. */
const thinkingBlocks: Record<string, Block> = {
  'First the weather.': {
    type: 'thinking',
    thinking: 'First the weather.',
    signature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h==',
  },
  'Then the time.': { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4a' },
}

function blocks({ thought, text, calls = [] }: Said): Block[] {
  const thinking = thought === undefined ? undefined : thinkingBlocks[thought]
  return [
    ...(thinking ? [thinking] : []),
    ...(text === undefined ? [] : [{ type: 'text', text }]),
    ...calls.map(({ id, name, arguments: args }) => ({ type: 'tool_use', id: `toolu_${id}`, name, input: args })),
  ]
}

const stops = { length: 'max_tokens', filter: 'refusal' }
const stopOf = ({ calls, ended }: Said) => (ended ? stops[ended] : calls ? 'tool_use' : 'end_turn')

function frames(said: Said): string[] {
  const start = { ...message, content: [], stop_reason: null, usage: { ...input, output_tokens: 1 } }
  return [
    frame({ type: 'message_start', message: start }, 'message_start'),
    frame({ type: 'ping' }, 'ping'),
    ...blocks(said).flatMap((block, index) => blockFrames(block, index)),
    frame(
      {
        type: 'message_delta',
        delta: { stop_reason: stopOf(said), stop_sequence: null },
        usage: { output_tokens: counted.output },
      },
      'message_delta',
    ),
    frame({ type: 'message_stop' }, 'message_stop'),
  ]
}

function blockFrames(block: Block, index: number): string[] {
  const delta = (said: object) => frame({ type: 'content_block_delta', index, delta: said }, 'content_block_delta')
  const [open, deltas] = openings[block.type]?.(block) ?? [block, []]
  return [
    frame({ type: 'content_block_start', index, content_block: open }, 'content_block_start'),
    ...deltas.map(delta),
    frame({ type: 'content_block_stop', index }, 'content_block_stop'),
  ]
}

/** How a block begins, and the deltas that fill it; others come whole. */
const openings: Record<string, (block: Block) => [object, object[]]> = {
  text: ({ text }) => [
    { type: 'text', text: '' },
    pieces(String(text)).map((piece) => ({ type: 'text_delta', text: piece })),
  ],
  // The newer models keep the text of their thinking and send the seal alone.
  thinking: ({ signature }) => [
    { type: 'thinking', thinking: '', signature: '' },
    [{ type: 'signature_delta', signature }],
  ],
  tool_use: ({ input: args, ...block }) => [
    { ...block, input: {} },
    ['', ...pieces(JSON.stringify(args))].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  ],
}

const types: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'overloaded_error',
}

const text = (said: string) => ({ type: 'text', text: said })
const user = (...content: object[]) => ({ role: 'user', content })
const assistant = (said: Said) => ({ role: 'assistant', content: blocks(said) })
const result = (id: string, said: string) => ({
  type: 'tool_result',
  tool_use_id: `toolu_${id}`,
  content: [text(said)],
})
const call = (id: string, name: string) => ({ id, name, arguments: { city: 'Paris' } })
const tools = offered.map(({ name, description }) => ({ name, description, input_schema: citySchema, strict: true }))

const greeting = {
  model: 'claude-haiku-4-5',
  max_tokens: 100,
  system: [text('Be brief.')],
  messages: [user(text('Hello there'))],
  stop_sequences: ['END'],
}
const streaming = { stream: true }

const schema = {
  model: 'claude-haiku-4-5',
  max_tokens: 64_000,
  messages: [user(text('Where?'))],
  output_config: { format: { type: 'json_schema', schema: placeSchema } },
}

/** Thinking whose text was kept goes back without it, sealed as it came. */
const loopTurns = (unspoken: boolean) => {
  const [thinking, ...calls] = blocks({ thought: 'First the weather.', calls: [call('w1', 'get_weather')] })
  return [
    user(text('Weather and time in Paris?')),
    { role: 'assistant', content: [unspoken ? { ...thinking, thinking: '' } : thinking, ...calls] },
    user(result('w1', 'sunny, now ask local_time')),
    assistant({ thought: 'Then the time.', calls: [call('t1', 'local_time')] }),
    user(result('t1', '12:00')),
  ]
}
const loopBodies = (more: object, unspoken: boolean) =>
  [1, 3, 5].map((passed) => ({
    model: 'claude-opus-4-8',
    max_tokens: 128_000,
    messages: loopTurns(unspoken).slice(0, passed),
    tools,
    thinking: { type: 'adaptive' },
    output_config: { effort: 'medium' },
    ...(passed === 3 && { tool_choice: { type: 'any' } }),
    ...more,
  }))

/** The results stand in the order of their calls, whatever the order of the client. */
const parallelTurns = [
  user(text('Use all tools.')),
  assistant({ calls: [call('w1', 'get_weather'), call('w2', 'local_time')] }),
  user(result('w1', 'sunny'), result('w2', '12:00')),
]
const plain = (messages: object[], more: object) => ({
  model: 'claude-haiku-4-5',
  max_tokens: 64_000,
  messages,
  ...more,
})

const parallel = (more: object) => [1, 3].map((passed) => plain(parallelTurns.slice(0, passed), { tools, ...more }))

const againTurns = [...greeting.messages, assistant({ text: 'You said: Hello there' }), ...greeting.messages]
const again = (more: object) =>
  [1, 3].map((passed) => plain(againTurns.slice(0, passed), { system: greeting.system, ...more }))

const runTurns = [
  user(text('Weather, please')),
  assistant({ calls: [call('w1', 'get_weather')] }),
  user(result('w1', 'sunny')),
]
const runBodies = (more: object) =>
  [1, 3].map((passed) =>
    plain(runTurns.slice(0, passed), { tools: tools.slice(0, 1), tool_choice: { type: 'auto' }, ...more }),
  )

const picture = (source: object) => plain([user(text('What is this?'), { type: 'image', source })], {})

/** Anthropic Messages, version 2023-06-01. */
export const anthropicWire: Wire = {
  slug: 'anthropic',
  models: { plain: 'claude-haiku-4-5', thinker: 'claude-opus-4-8' },
  cost: (30 * 1 + 10 * 0.1 + 12 * 5) / 1e6,
  reasoningTokens: 0,
  address: () => ({
    path: '/v1/messages',
    headers: { 'x-api-key': 'sk-played', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
  }),
  whole: (said) => ({
    ...message,
    content: blocks(said),
    stop_reason: stopOf(said),
    usage: { ...input, output_tokens: counted.output, service_tier: 'standard' },
  }),
  frames,
  failure: frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'),
  refusal: (status) => ({
    status: status === 503 ? 529 : status,
    headers: status === 429 ? { 'retry-after': '7' } : {},
    body: {
      type: 'error',
      error: { type: types[status] ?? 'api_error', message: `Played ${status}` },
      request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy',
    },
  }),
  bodies: {
    create: [greeting],
    stream: [{ ...greeting, ...streaming }],
    helper: [{ ...greeting, ...streaming }],
    again: again({}),
    'again streamed': again(streaming),
    schema: [schema],
    'schema streamed': [{ ...schema, ...streaming }],
    loop: loopBodies({}, false),
    'loop streamed': loopBodies(streaming, true),
    parallel: parallel({}),
    'parallel streamed': parallel(streaming),
    run: runBodies({ stream: false }),
    'run streamed': runBodies(streaming),
    'picture inside': [picture({ type: 'base64', media_type: 'image/png', data: pixel })],
    'picture elsewhere': [picture({ type: 'url', url: pictures.elsewhere })],
  },
}
