import {
  type Body,
  counted,
  endOf,
  frame,
  joined,
  pictureIn,
  pieces,
  type Reply,
  source,
  textIn,
  turn,
  type Wire,
  wordsOf,
} from './sdk-wire.ts'

// OpenAI's chat completions, as OpenAI, DeepSeek and Mistral speak them.

const usageOf = ({ cached }: Reply) => ({
  prompt_tokens: counted.input,
  completion_tokens: counted.output,
  total_tokens: counted.input + counted.output,
  ...(cached && { prompt_tokens_details: { cached_tokens: cached } }),
})
const ends = { length: 'length', filter: 'content_filter' }
const named = { id: 'chatcmpl-Br1', created: 1_795_219_200, model: 'played-model' }

type Form = {
  /** Ids of tools as this provider makes them. */
  id(id: string): string
  /** Thought and text as members of a message or delta. */
  content(reply: { thought?: string; text?: string }): object
}

const open: Form = {
  id: (id) => `call_${id}`,
  content: ({ thought, text }) => ({
    ...(thought !== undefined && { reasoning_content: thought }),
    ...(text !== undefined && { content: text }),
  }),
}

const mistral: Form = {
  id: (id) => `${id}000000000`.slice(0, 9),
  content: ({ thought, text }) =>
    thought === undefined
      ? { ...(text !== undefined && { content: text }) }
      : {
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: thought }], closed: true },
            ...(text === undefined ? [] : [{ type: 'text', text }]),
          ],
        },
}

const callsOf = ({ calls = [] }: Reply, form: Form) =>
  calls.map(({ id, name, arguments: args }) => ({
    id: form.id(id),
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }))

const citationsOf = ({ cited, text = '' }: Reply) => {
  const url_citation = { url: source.url, title: source.title, start_index: 0, end_index: text.length }
  return cited ? { annotations: [{ type: 'url_citation', url_citation }] } : {}
}

const finishOf = (reply: Reply) => (reply.calls ? 'tool_calls' : endOf(reply, ends, 'stop'))

function whole(reply: Reply, form: Form): object {
  const calls = callsOf(reply, form)
  const message = {
    role: 'assistant',
    content: null,
    ...form.content(reply),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...citationsOf(reply),
  }
  const choices = [{ index: 0, message, finish_reason: finishOf(reply) }]
  return { ...named, object: 'chat.completion', choices, usage: usageOf(reply) }
}

function frames(reply: Reply, form: Form): string[] {
  const chunk = (choices: object[], used: object | null = null) =>
    frame({ ...named, object: 'chat.completion.chunk', choices, usage: used })
  const delta = (words: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta: words, finish_reason }])
  return [
    delta({ role: 'assistant', content: '' }),
    ...pieces(reply.thought ?? '').map((thought) => delta(form.content({ thought }))),
    ...pieces(reply.text ?? '').map((text) => delta(form.content({ text }))),
    ...(reply.cited ? [delta(citationsOf(reply))] : []),
    ...callsOf(reply, form).flatMap(({ function: { name, arguments: args }, ...call }, index) => [
      delta({ tool_calls: [{ index, ...call, function: { name, arguments: '' } }] }),
      ...pieces(args).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    delta({}, finishOf(reply)),
    chunk([], usageOf(reply)),
    'data: [DONE]\n\n',
  ]
}

function readMessage({ role, content, tool_calls: calls = [], tool_call_id: id }: Body) {
  const blocks: Body[] = Array.isArray(content) ? content : []
  if (role === 'tool') return turn('user', { results: [{ id, text: wordsOf(content) }] })
  return turn(role, {
    text: textIn(content),
    images: blocks.flatMap(({ image_url: image }) => (image ? pictureIn(image.url ?? image) : [])),
    files: blocks.filter(({ type }) => type === 'file' || type === 'document_url').length,
    calls: calls.map((call: Body) => ({
      id: call.id,
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments),
    })),
  })
}

const errorTypes: { [status: number]: string } = { 429: 'requests', 500: 'server_error', 503: 'server_error' }

const wire = {
  ends,
  isStream: (_path: string, { stream }: Body) => stream === true,
  contentType: 'text/event-stream',
  read: ({ messages, tools = [], response_format: format, web_search_options: search, ...body }: Body) => {
    const isSystem = ({ role }: Body) => role === 'system' || role === 'developer'
    return {
      system: wordsOf(messages.filter(isSystem)),
      tools: tools.map((tool: Body) => tool.function.name),
      hasSchema: format?.type === 'json_schema',
      searches: search !== undefined,
      limit: body.max_completion_tokens ?? body.max_tokens,
      stops: body.stop,
      mustCall: ['required', 'any'].includes(body.tool_choice),
      turns: joined(messages.filter((message: Body) => !isSystem(message)).map(readMessage)),
    }
  },
  thoughtSent: (thought: string) => thought,
}

/** Chat completions of OpenAI; the model that thinks aloud is DeepSeek's. */
export const chatWire: Wire = {
  ...wire,
  dialect: 'openai-chat',
  slug: 'openai',
  env: { OPENAI_API_KEY: 'sk-played', DEEPSEEK_API_KEY: 'sk-played' },
  models: { plain: 'openai/gpt-4o-mini', thinker: 'deepseek/deepseek-v4-pro', searcher: 'openai/gpt-3.5-turbo' },
  lacks: { search: true },
  address: { path: /^\/chat\/completions$/, headers: { authorization: 'Bearer sk-played' } },
  cost: (30 * 0.15 + 10 * 0.075 + 12 * 0.6) / 1e6,
  failures: {
    refusal: (status) => ({
      status,
      headers: status === 429 ? { 'retry-after': '7' } : {},
      body: {
        error: {
          ...{ message: `FakeProvider ${status}`, type: errorTypes[status] ?? 'invalid_request_error' },
          ...{ param: null, code: null },
        },
      },
    }),
    frame: frame({ error: { message: 'The server had an error', type: 'server_error', param: null, code: null } }),
  },
  whole: (reply) => whole(reply, open),
  frames: (reply) => frames(reply, open),
}

/** Mistral: thoughts are pieces of the content, and ids have nine characters. */
export const mistralWire: Wire = {
  ...wire,
  dialect: 'mistral',
  slug: 'mistral',
  env: { MISTRAL_API_KEY: 'played' },
  models: {
    plain: 'mistral/mistral-medium-latest',
    thinker: 'mistral/magistral-medium-latest',
    searcher: 'mistral/mistral-medium-latest',
  },
  lacks: { 'custom tools': true, search: true, citations: true },
  address: { path: /^\/chat\/completions$/, headers: { authorization: 'Bearer played' } },
  whole: (reply) => whole(reply, mistral),
  frames: (reply) => frames(reply, mistral),
}
