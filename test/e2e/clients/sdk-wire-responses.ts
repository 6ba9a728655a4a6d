import {
  type Body,
  counted,
  endOf,
  file,
  frame,
  joined,
  pictureIn,
  pieces,
  type Reply,
  signatureOf,
  source,
  textIn,
  turn,
  type Wire,
  wordsOf,
} from './sdk-wire.ts'

// OpenAI's Responses.

type Block = { type: string; [member: string]: unknown }

/** Responses and their items have ids of their own. */
let answered = 0

function itemsOf({ thought, search, fileSearch, text, calls = [], cited }: Reply, own: number): Block[] {
  const { url, title } = source
  const { file_id, filename } = file
  const end = text?.length ?? 0
  const annotation = fileSearch
    ? { type: 'file_citation', file_id, filename, index: end }
    : { type: 'url_citation', url, title, start_index: 0, end_index: end }
  const content = [{ type: 'output_text', text, annotations: cited ? [annotation] : [], logprobs: [] }]
  return [
    ...(thought === undefined
      ? []
      : [
          {
            id: `rs_${own}`,
            type: 'reasoning',
            summary: [{ type: 'summary_text', text: thought }],
            encrypted_content: signatureOf(thought),
          },
        ]),
    ...(search === undefined
      ? []
      : [
          {
            id: `ws_${own}`,
            type: 'web_search_call',
            status: 'completed',
            action: { type: 'search', query: search, queries: [search] },
          },
        ]),
    ...(fileSearch === undefined
      ? []
      : [
          {
            id: `fs_${own}`,
            type: 'file_search_call',
            status: 'completed',
            queries: [fileSearch],
            results: [{ ...file, score: 0.9, attributes: {}, vector_store_id: 'vs_ruby' }],
          },
        ]),
    ...(text === undefined
      ? []
      : [{ id: `msg_${own}`, type: 'message', status: 'completed', role: 'assistant', content }]),
    ...calls.map(({ id, name, arguments: args }) => ({
      id: `fc_${own}${id}`,
      type: 'function_call',
      status: 'completed',
      call_id: `call_${id}`,
      name,
      arguments: JSON.stringify(args),
    })),
  ]
}

const response = {
  object: 'response',
  created_at: 1_795_219_200,
  model: 'played-model',
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  parallel_tool_calls: true,
  tool_choice: 'auto',
  tools: [],
  temperature: 1,
  top_p: 1,
}
const usage = {
  input_tokens: counted.input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: counted.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: counted.input + counted.output,
}
const idOf = (own: number) => `resp_${String(own).padStart(48, '0')}`
const responseOf = (reply: Reply, own: number) => {
  const cut = reply.ended && { status: 'incomplete', incomplete_details: { reason: endOf(reply, ends, '') } }
  return { ...response, id: idOf(own), status: 'completed', ...cut, output: itemsOf(reply, own), usage }
}
const ends = { length: 'max_output_tokens', filter: 'content_filter' }

/** How an item begins, and the events that fill it. */
const growing: { [type: string]: (item: Body, at: object) => [object, [string, object][]] } = {
  message: (item, at) => {
    const [part] = item.content
    const place = { ...at, content_index: 0 }
    return [
      { ...item, status: 'in_progress', content: [] },
      [
        ['content_part.added', { ...place, part: { ...part, text: '', annotations: [] } }],
        ...pieces(part.text).map((delta): [string, object] => ['output_text.delta', { ...place, delta, logprobs: [] }]),
        ...part.annotations.map((annotation: object, annotation_index: number) => [
          'output_text.annotation.added',
          { ...place, annotation_index, annotation },
        ]),
        ['output_text.done', { ...place, text: part.text, logprobs: [] }],
        ['content_part.done', { ...place, part }],
      ],
    ]
  },
  reasoning: (item, at) => {
    const [part] = item.summary
    const place = { ...at, summary_index: 0 }
    return [
      { ...item, summary: [], encrypted_content: '' },
      [
        ['reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } }],
        ...pieces(part.text).map((delta): [string, object] => ['reasoning_summary_text.delta', { ...place, delta }]),
        ['reasoning_summary_text.done', { ...place, text: part.text }],
        ['reasoning_summary_part.done', { ...place, part }],
      ],
    ]
  },
  function_call: (item, at) => [
    { ...item, status: 'in_progress', arguments: '' },
    [
      ...pieces(item.arguments).map((delta): [string, object] => ['function_call_arguments.delta', { ...at, delta }]),
      ['function_call_arguments.done', { ...at, name: item.name, arguments: item.arguments }],
    ],
  ],
  web_search_call: ({ action: _unknown, ...item }, at) => [
    { ...item, status: 'in_progress' },
    [
      ['web_search_call.in_progress', at],
      ['web_search_call.searching', at],
      ['web_search_call.completed', at],
    ],
  ],
  file_search_call: (item, at) => [
    { ...item, status: 'in_progress', queries: [], results: null },
    [
      ['file_search_call.in_progress', at],
      ['file_search_call.searching', at],
      ['file_search_call.completed', at],
    ],
  ],
}

function responseFrames(reply: Reply): string[] {
  const own = answered++
  let sequence_number = 0
  const send = (name: string, members: object) =>
    frame({ type: `response.${name}`, sequence_number: sequence_number++, ...members }, `response.${name}`)
  const begun = { ...response, id: idOf(own), status: 'in_progress', output: [], usage: null }
  return [
    send('created', { response: begun }),
    send('in_progress', { response: begun }),
    ...itemsOf(reply, own).flatMap((item, output_index) => {
      const [empty, events] = growing[item.type]?.(item, { item_id: item.id, output_index }) ?? [item, []]
      return [
        send('output_item.added', { output_index, item: empty }),
        ...events.map(([name, members]) => send(name, members)),
        send('output_item.done', { output_index, item }),
      ]
    }),
    send(reply.ended ? 'incomplete' : 'completed', { response: responseOf(reply, own) }),
  ]
}

function readItem(item: Body) {
  if (item.type === 'function_call') {
    return turn('assistant', { calls: [{ id: item.call_id, name: item.name, arguments: JSON.parse(item.arguments) }] })
  }
  if (item.type === 'function_call_output') {
    return turn('user', { results: [{ id: item.call_id, text: wordsOf(item.output) }] })
  }
  if (item.role === undefined) return turn('assistant', {})
  const blocks: Body[] = Array.isArray(item.content) ? item.content : []
  return turn(item.role, {
    text: textIn(item.content),
    images: blocks.flatMap((block) => (block.type === 'input_image' ? pictureIn(block.image_url) : [])),
    files: blocks.filter(({ type }) => type === 'input_file').length,
  })
}

/** OpenAI's Responses API. */
export const responsesWire: Wire = {
  dialect: 'openai-responses',
  slug: 'openai-responses',
  env: { OPENAI_API_KEY: 'sk-played' },
  models: {
    plain: 'openai-responses/gpt-4.1',
    thinker: 'openai-responses/gpt-5.2',
    searcher: 'openai-responses/gpt-5.2',
  },
  lacks: {},
  address: { path: /^\/responses$/, headers: { authorization: 'Bearer sk-played' } },
  ends,
  contentType: 'text/event-stream',
  isStream: (_path, { stream }) => stream === true,
  whole: (reply) => responseOf(reply, answered++),
  frames: responseFrames,
  read: ({ instructions, input, tools = [], text, max_output_tokens: limit, tool_choice: choice }) => {
    const items: Body[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input
    const isSystem = ({ role }: Body) => role === 'system' || role === 'developer'
    return {
      system: wordsOf([instructions ?? '', ...items.filter(isSystem)]),
      tools: tools.flatMap(({ type, name }: Body) => (type === 'function' ? name : [])),
      hasSchema: text?.format?.type === 'json_schema',
      searches: tools.some(({ type }: Body) => String(type).startsWith('web_search')),
      limit,
      mustCall: choice === 'required',
      turns: joined(items.filter((item) => !isSystem(item)).map(readItem)),
    }
  },
  thoughtSent: signatureOf,
}
