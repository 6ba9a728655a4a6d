import { frame, type Wire } from './openai-sdk-provider.ts'
import { counted, hello, pictures, pieces, placeSchema, type Said, tools } from './openai-sdk-talks.ts'

const usage = {
  prompt_tokens: counted.input,
  completion_tokens: counted.output,
  total_tokens: counted.input + counted.output,
  prompt_tokens_details: { cached_tokens: counted.cached, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
}
const named = {
  id: 'chatcmpl-Br1',
  created: 1_795_219_200,
  service_tier: 'default',
  system_fingerprint: 'fp_07871e2ad8',
}

const calls = ({ calls = [] }: Said) =>
  calls.map(({ id, name, arguments: args }) => ({
    id: `call_${id}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }))

const messageOf = (said: Said) => ({
  role: 'assistant',
  content: said.text ?? null,
  ...(said.calls && { tool_calls: calls(said) }),
  refusal: null,
  annotations: [],
})

const finishes = { length: 'length', filter: 'content_filter' }
const finishOf = ({ calls, ended }: Said) => (ended ? finishes[ended] : calls ? 'tool_calls' : 'stop')

const chunk = (choices: object[], used: object | null = null) =>
  frame({ ...named, object: 'chat.completion.chunk', model: 'gpt-4o-mini-2024-07-18', choices, usage: used })
const delta = (said: object, finish_reason: string | null = null) =>
  chunk([{ index: 0, delta: said, logprobs: null, finish_reason }])

function frames(said: Said): string[] {
  return [
    delta({ role: 'assistant', content: said.calls ? null : '', refusal: null }),
    ...pieces(said.text ?? '').map((content) => delta({ content })),
    ...calls(said).flatMap(({ id, type, function: { name, arguments: args } }, index) => [
      delta({ tool_calls: [{ index, id, type, function: { name, arguments: '' } }] }),
      ...pieces(args).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    delta({}, finishOf(said)),
    chunk([], usage),
    'data: [DONE]\n\n',
  ]
}

const types: Record<number, string> = { 429: 'requests', 500: 'server_error', 503: 'server_error' }

const greeting = { model: 'gpt-4o-mini', messages: hello, max_completion_tokens: 100, stop: ['END'] }
const streaming = { stream: true, stream_options: { include_usage: true } }
const format = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: placeSchema } }
const schema = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Where?' }], response_format: format }

const user = (content: unknown) => ({ role: 'user', content })
const called = (id: string, name: string) => messageOf({ calls: [{ id, name, arguments: { city: 'Paris' } }] })
const result = (id: string, content: string) => ({ role: 'tool', tool_call_id: `call_${id}`, content })

/** The message of a stream as the SDK puts it together: without annotations, with the arguments parsed. */
const gathered = (id: string, name: string) => {
  const { annotations: _none, tool_calls: calls = [], ...message } = called(id, name)
  const parsed = calls.map((call) => ({
    ...call,
    function: { ...call.function, parsed_arguments: JSON.parse(call.function.arguments) },
  }))
  return { ...message, parsed: null, tool_calls: parsed }
}

const loopBodies = (said: (id: string, name: string) => object, more: object = {}) => {
  const messages = [
    user('Weather and time in Paris?'),
    said('w1', 'get_weather'),
    result('w1', 'sunny, now ask local_time'),
    said('t1', 'local_time'),
    result('t1', '12:00'),
  ]
  return [1, 3, 5].map((passed) => ({
    model: 'gpt-5.2',
    messages: messages.slice(0, passed),
    tools,
    reasoning_effort: 'medium',
    ...(passed === 3 && { tool_choice: 'required' }),
    ...more,
  }))
}

const again = (said: object, more: object = {}) => [
  { model: 'gpt-4o-mini', messages: hello, ...more },
  { model: 'gpt-4o-mini', messages: [...hello, said, user('Hello there')], ...more },
]
const { annotations: _nothing, ...gatheredText } = messageOf({ text: 'You said: Hello there' })

const parallelMessages = [
  user('Use all tools.'),
  messageOf({
    calls: [
      { id: 'w1', name: 'get_weather', arguments: { city: 'Paris' } },
      { id: 'w2', name: 'local_time', arguments: { city: 'Paris' } },
    ],
  }),
  result('w2', '12:00'),
  result('w1', 'sunny'),
]
const parallel = (passed: number) => ({ model: 'gpt-4o-mini', messages: parallelMessages.slice(0, passed), tools })

const gatheredCalls = {
  ...gathered('w1', 'get_weather'),
  tool_calls: [gathered('w1', 'get_weather'), gathered('w2', 'local_time')].flatMap(({ tool_calls }) => tool_calls),
}
const parallelGathered = [parallel(1), parallel(4)].map(({ messages, ...body }) => ({
  ...body,
  messages: messages.map((message) => (message.role === 'assistant' ? gatheredCalls : message)),
  ...streaming,
}))

/** The runner of the SDK says nothing twice but the calls. */
const { annotations: _none, refusal: _neither, ...bareCall } = called('w1', 'get_weather')
const runMessages = [user('Weather, please'), bareCall, result('w1', 'sunny')]
const runBodies = (more: object) =>
  [1, 3].map((passed) => ({
    model: 'gpt-4o-mini',
    messages: runMessages.slice(0, passed),
    tools: tools.slice(0, 1),
    tool_choice: 'auto',
    ...more,
  }))

const picture = (url: string) => ({
  model: 'gpt-4o-mini',
  messages: [
    user([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url } },
    ]),
  ],
})

/** OpenAI Chat Completions: the client's own format, so that what arrives is the client's body. */
export const openaiWire: Wire = {
  slug: 'openai',
  models: { plain: 'gpt-4o-mini', thinker: 'gpt-5.2' },
  cost: (30 * 0.15 + 10 * 0.075 + 12 * 0.6) / 1e6,
  reasoningTokens: 0,
  address: () => ({
    path: '/chat/completions',
    headers: { authorization: 'Bearer sk-played', 'content-type': 'application/json' },
  }),
  whole: (said) => ({
    ...named,
    object: 'chat.completion',
    model: 'gpt-4o-mini-2024-07-18',
    choices: [{ index: 0, message: messageOf(said), logprobs: null, finish_reason: finishOf(said) }],
    usage,
  }),
  frames,
  failure: frame({ error: { message: 'The server had an error', type: 'server_error', param: null, code: null } }),
  refusal: (status) => ({
    status,
    headers: status === 429 ? { 'retry-after': '7' } : {},
    body: {
      error: { message: `Played ${status}`, type: types[status] ?? 'invalid_request_error', param: null, code: null },
    },
  }),
  bodies: {
    create: [greeting],
    stream: [{ ...greeting, ...streaming }],
    helper: [{ ...greeting, ...streaming }],
    again: again(messageOf({ text: 'You said: Hello there' })),
    'again streamed': again({ ...gatheredText, parsed: null }, streaming),
    schema: [schema],
    'schema streamed': [{ ...schema, ...streaming }],
    loop: loopBodies(called),
    'loop streamed': loopBodies(gathered, streaming),
    parallel: [parallel(1), parallel(4)],
    'parallel streamed': parallelGathered,
    run: runBodies({ stream: false }),
    'run streamed': runBodies(streaming),
    'picture inside': [picture(pictures.inside)],
    'picture elsewhere': [picture(pictures.elsewhere)],
  },
}
