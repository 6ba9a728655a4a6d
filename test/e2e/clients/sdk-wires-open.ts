import {
  type Body,
  counted,
  endOf,
  frame,
  joined,
  pieces,
  type Reply,
  source,
  textIn,
  turn,
  type Wire,
  wordsOf,
} from './sdk-wire.ts'

// Cohere and Ollama.

const cohereUsage = { billed_units: { input_tokens: counted.input, output_tokens: counted.output } }
const cohereEnds = { length: 'MAX_TOKENS' }
const cohereFinish = (reply: Reply) => (reply.calls ? 'TOOL_CALL' : endOf(reply, cohereEnds, 'COMPLETE'))
const cohereCalls = ({ calls = [] }: Reply) =>
  calls.map(({ id, name, arguments: args }) => ({
    id: `${name}_${id}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }))
const cohereCitations = ({ cited, thought, text = '' }: Reply) => {
  const document = { id: 'doc:0', title: source.title, url: source.url }
  const content_index = thought === undefined ? 0 : 1
  const sources = [{ type: 'document', id: 'doc:0', document }]
  return cited ? [{ start: 0, end: text.length, text, sources, type: 'TEXT_CONTENT', content_index }] : []
}
const cohereContent = ({ thought, text }: Reply): { type: 'thinking' | 'text'; words: string }[] => [
  ...(thought === undefined ? [] : [{ type: 'thinking' as const, words: thought }]),
  ...(text === undefined ? [] : [{ type: 'text' as const, words: text }]),
]

function cohereFrames(reply: Reply): string[] {
  const send = (type: string, more: object) => frame({ type, ...more }, type)
  const inMessage = (type: string, index: number, members: object) => send(type, { index, delta: { message: members } })
  return [
    send('message-start', { id: 'c14c80c3', delta: { message: { role: 'assistant', content: [], tool_calls: [] } } }),
    ...cohereContent(reply).flatMap(({ type, words }, index) => [
      inMessage('content-start', index, { content: { type, [type]: '' } }),
      ...pieces(words).map((piece) => inMessage('content-delta', index, { content: { [type]: piece } })),
      inMessage('content-end', index, {}),
    ]),
    ...cohereCitations(reply).flatMap((citations, index) => [
      inMessage('citation-start', index, { citations }),
      send('citation-end', { index }),
    ]),
    ...cohereCalls(reply).flatMap(({ function: { name, arguments: args }, ...call }, index) => [
      inMessage('tool-call-start', index, { tool_calls: { ...call, function: { name, arguments: '' } } }),
      ...pieces(args).map((piece) =>
        inMessage('tool-call-delta', index, { tool_calls: { function: { arguments: piece } } }),
      ),
      send('tool-call-end', { index }),
    ]),
    send('message-end', { delta: { finish_reason: cohereFinish(reply), usage: cohereUsage } }),
    'data: [DONE]\n\n',
  ]
}

function readCohere({ role, content, tool_plan: plan, tool_calls: calls = [], tool_call_id: id }: Body) {
  const blocks: Body[] = Array.isArray(content) ? content : []
  if (role === 'tool') return turn('user', { results: [{ id, text: wordsOf(content?.[0]?.document ?? content) }] })
  return turn(role, {
    text: (plan ?? '') + textIn(content),
    images: blocks.flatMap(({ image_url: image }) => (image ? image.url.replace(/^data:[^,]*,/, '') : [])),
    calls: calls.map((call: Body) => ({
      id: call.id,
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments),
    })),
  })
}

/** Cohere's chat, version 2. */
export const cohereWire: Wire = {
  dialect: 'cohere-v2',
  slug: 'cohere',
  env: { COHERE_API_KEY: 'played' },
  models: {
    plain: 'cohere/command-a-03-2025',
    thinker: 'cohere/command-a-reasoning-08-2025',
    searcher: 'cohere/command-a-03-2025',
    seer: 'cohere/command-a-vision-07-2025',
  },
  lacks: { 'custom tools': true, search: true, file: true },
  address: { path: /^\/v2\/chat$/, headers: { authorization: 'Bearer played' } },
  ends: cohereEnds,
  contentType: 'text/event-stream',
  isStream: (_path, { stream }) => stream === true,
  whole: (reply) => {
    const content = cohereContent(reply).map(({ type, words }) => ({ type, [type]: words }))
    const [calls, citations] = [cohereCalls(reply), cohereCitations(reply)]
    return {
      id: 'c14c80c3',
      message: {
        role: 'assistant',
        ...(content.length > 0 && { content }),
        ...(calls.length > 0 && { tool_calls: calls }),
        ...(citations.length > 0 && { citations }),
      },
      finish_reason: cohereFinish(reply),
      usage: cohereUsage,
    }
  },
  frames: cohereFrames,
  read: ({ messages, tools = [], response_format: format, ...body }) => {
    const isSystem = ({ role }: Body) => role === 'system'
    return {
      system: wordsOf(messages.filter(isSystem)),
      tools: tools.map((tool: Body) => tool.function.name),
      hasSchema: format?.json_schema !== undefined,
      searches: false,
      limit: body.max_tokens,
      stops: body.stop_sequences,
      mustCall: body.tool_choice === 'REQUIRED',
      turns: joined(messages.filter((message: Body) => !isSystem(message)).map(readCohere)),
    }
  },
  thoughtSent: (thought) => thought,
}

const ollamaLine = (message: object, more: object = { done: false }) => ({
  model: 'qwen3',
  created_at: '2026-11-21T10:00:00.000Z',
  message: { role: 'assistant', content: '', ...message },
  ...more,
})
const ollamaEnds = { length: 'length' }
const ollamaEnd = (reply: Reply) => ({
  done: true,
  done_reason: endOf(reply, ollamaEnds, 'stop'),
  prompt_eval_count: counted.input,
  eval_count: counted.output,
})
const ollamaCalls = ({ calls = [] }: Reply) =>
  calls.map(({ id, name, arguments: args }) => ({ id: `call_${id}`, function: { name, arguments: args } }))

/** Ollama's own API: a line of JSON for every piece. */
export const ollamaWire: Wire = {
  dialect: 'ollama',
  slug: 'ollama',
  env: {},
  models: { plain: 'ollama/qwen3', thinker: 'ollama/qwen3', searcher: 'ollama/qwen3' },
  lacks: { 'custom tools': true, search: true, file: true, citations: true },
  address: { path: /^\/api\/chat$/ },
  ends: ollamaEnds,
  contentType: 'application/x-ndjson',
  isStream: (_path, { stream }) => stream !== false,
  whole: (reply) => {
    const calls = ollamaCalls(reply)
    const message = {
      thinking: reply.thought,
      content: reply.text ?? '',
      ...(calls.length > 0 && { tool_calls: calls }),
    }
    return ollamaLine(message, ollamaEnd(reply))
  },
  frames: (reply) =>
    [
      ...pieces(reply.thought ?? '').map((thinking) => ollamaLine({ thinking })),
      ...pieces(reply.text ?? '').map((content) => ollamaLine({ content })),
      ...ollamaCalls(reply).map((call) => ollamaLine({ tool_calls: [call] })),
      ollamaLine({}, ollamaEnd(reply)),
    ].map((line) => `${JSON.stringify(line)}\n`),
  read: ({ messages, tools = [], format, options }) => {
    const isSystem = ({ role }: Body) => role === 'system'
    return {
      system: wordsOf(messages.filter(isSystem)),
      tools: tools.map((tool: Body) => tool.function.name),
      hasSchema: typeof format === 'object',
      searches: false,
      limit: options?.num_predict,
      stops: options?.stop,
      turns: joined(
        messages
          .filter((message: Body) => !isSystem(message))
          .map(({ role, content, images, tool_calls: calls = [], tool_call_id: id }: Body) =>
            role === 'tool'
              ? turn('user', { results: [{ id, text: content }] })
              : turn(role, {
                  text: content,
                  images: images ?? [],
                  calls: calls.map((call: Body) => ({ id: call.id, ...call.function })),
                }),
          ),
      ),
    }
  },
  thoughtSent: (thought) => thought,
}
