import {
  type Body,
  counted,
  endOf,
  frame,
  joined,
  pieces,
  type Reply,
  signatureOf,
  source,
  textIn,
  turn,
  type Wire,
  wordsOf,
} from './sdk-wire.ts'

// Anthropic's Messages.

type Block = { type: string; [member: string]: unknown }

function blocksOf({ thought, search, text, calls = [], cited }: Reply): Block[] {
  const citation = {
    type: 'web_search_result_location',
    url: source.url,
    title: source.title,
    cited_text: source.quote,
    encrypted_index: 'aW5kZXg=',
  }
  const page = {
    type: 'web_search_result',
    url: source.url,
    title: source.title,
    encrypted_content: 'cGFnZQ==',
    page_age: null,
  }
  return [
    ...(thought === undefined ? [] : [{ type: 'thinking', thinking: thought, signature: signatureOf(thought) }]),
    ...(search === undefined
      ? []
      : [
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: search } },
          { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [page] },
        ]),
    ...(text === undefined ? [] : [{ type: 'text', text, ...(cited && { citations: [citation] }) }]),
    ...calls.map(({ id, name, arguments: input }) => ({ type: 'tool_use', id: `toolu_${id}`, name, input })),
  ]
}

const message = {
  id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
  type: 'message',
  role: 'assistant',
  model: 'played-model',
  stop_sequence: null,
}
const inputOf = ({ cached = 0 }: Reply) => {
  return { input_tokens: counted.input - cached, cache_creation_input_tokens: 0, cache_read_input_tokens: cached }
}
const ends = { length: 'max_tokens', filter: 'refusal' }
const stopOf = (reply: Reply) => (reply.calls ? 'tool_use' : endOf(reply, ends, 'end_turn'))

const openings: { [type: string]: (block: Body) => [object, object[]] } = {
  text: ({ text, citations = [] }) => [
    { type: 'text', text: '' },
    [
      ...pieces(text).map((piece) => ({ type: 'text_delta', text: piece })),
      ...citations.map((citation: object) => ({ type: 'citations_delta', citation })),
    ],
  ],
  thinking: ({ thinking, signature }) => [
    { type: 'thinking', thinking: '', signature: '' },
    [
      ...pieces(thinking).map((piece) => ({ type: 'thinking_delta', thinking: piece })),
      { type: 'signature_delta', signature },
    ],
  ],
  tool_use: ({ input, ...block }) => [
    { ...block, input: {} },
    ['', ...pieces(JSON.stringify(input))].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  ],
}

function messageFrames(reply: Reply): string[] {
  const send = (event: { type: string; [member: string]: unknown }) => frame(event, event.type)
  return [
    send({
      type: 'message_start',
      message: { ...message, content: [], stop_reason: null, usage: { ...inputOf(reply), output_tokens: 1 } },
    }),
    send({ type: 'ping' }),
    ...blocksOf(reply).flatMap((block, index) => {
      const [content_block, deltas] = openings[block.type]?.(block) ?? [block, []]
      return [
        send({ type: 'content_block_start', index, content_block }),
        ...deltas.map((delta) => send({ type: 'content_block_delta', index, delta })),
        send({ type: 'content_block_stop', index }),
      ]
    }),
    send({
      type: 'message_delta',
      delta: { stop_reason: stopOf(reply), stop_sequence: null },
      usage: { output_tokens: counted.output },
    }),
    send({ type: 'message_stop' }),
  ]
}

const errorTypes: { [status: number]: string } = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'overloaded_error',
}

/** Anthropic Messages, version 2023-06-01. */
export const messagesWire: Wire = {
  dialect: 'anthropic-messages',
  slug: 'anthropic',
  env: { ANTHROPIC_API_KEY: 'sk-played' },
  models: {
    plain: 'anthropic/claude-haiku-4-5',
    thinker: 'anthropic/claude-opus-4-8',
    searcher: 'anthropic/claude-haiku-4-5',
  },
  lacks: { 'custom tools': true },
  address: {
    path: /^\/v1\/messages(\/count_tokens)?$/,
    headers: { 'x-api-key': 'sk-played', 'anthropic-version': /^\d{4}-\d\d-\d\d$/ },
  },
  ends,
  cost: (30 * 1 + 10 * 0.1 + 12 * 5) / 1e6,
  failures: {
    refusal: (status) => ({
      status: status === 503 ? 529 : status,
      headers: status === 429 ? { 'retry-after': '7' } : {},
      body: {
        type: 'error',
        error: { type: errorTypes[status] ?? 'api_error', message: `FakeProvider ${status}` },
        request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy',
      },
    }),
    frame: frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'),
  },
  contentType: 'text/event-stream',
  isStream: (_path, { stream }) => stream === true,
  whole: (reply) => ({
    ...message,
    content: blocksOf(reply),
    stop_reason: stopOf(reply),
    usage: { ...inputOf(reply), output_tokens: counted.output },
  }),
  frames: messageFrames,
  read: ({ system, messages, tools = [], output_config: output, output_format: format, ...body }) => ({
    system: wordsOf(system ?? ''),
    tools: tools.filter(({ input_schema: schema }: Body) => schema).map(({ name }: Body) => name),
    hasSchema: (output?.format ?? format)?.type === 'json_schema',
    searches: tools.some(({ type }: Body) => String(type).startsWith('web_search')),
    limit: body.max_tokens,
    stops: body.stop_sequences,
    mustCall: body.tool_choice?.type === 'any',
    turns: joined(
      messages.map(({ role, content }: Body) => {
        const blocks: Body[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content
        const of = (type: string) => blocks.filter((block) => block.type === type)
        return turn(role, {
          text: textIn(of('text')),
          images: of('image').map(({ source: { data, url } }) => data ?? url),
          files: of('document').length,
          calls: of('tool_use').map(({ id, name, input }) => ({ id, name, arguments: input })),
          results: of('tool_result').map((result) => ({ id: result.tool_use_id, text: wordsOf(result.content) })),
        })
      }),
    ),
  }),
  thoughtSent: signatureOf,
}
