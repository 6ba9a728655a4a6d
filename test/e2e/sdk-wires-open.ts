import {
  type Body,
  counted,
  endOf,
  frame,
  joined,
  pieces,
  type Said,
  source,
  spokenIn,
  turn,
  type Wire,
  wordsOf,
} from './sdk-said.ts'

// Cohere and Ollama.

const cohereUsage = { billed_units: { input_tokens: counted.input, output_tokens: counted.output } }
const cohereEnds = { length: 'MAX_TOKENS' }
const cohereFinish = (said: Said) => (said.calls ? 'TOOL_CALL' : endOf(said, cohereEnds, 'COMPLETE'))
const cohereCalls = ({ calls = [] }: Said) =>
  calls.map(({ id, name, arguments: args }) => ({
    id: `${name}_${id}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }))
const cohereCitations = ({ cited, thought, text = '' }: Said) => {
  const document = { id: 'doc:0', title: source.title, url: source.url }
  const content_index = thought === undefined ? 0 : 1
  const sources = [{ type: 'document', id: 'doc:0', document }]
  return cited ? [{ start: 0, end: text.length, text, sources, type: 'TEXT_CONTENT', content_index }] : []
}
const cohereContent = ({ thought, text }: Said): { type: 'thinking' | 'text'; words: string }[] => [
  ...(thought === undefined ? [] : [{ type: 'thinking' as const, words: thought }]),
  ...(text === undefined ? [] : [{ type: 'text' as const, words: text }]),
]

function cohereFrames(said: Said): string[] {
  const told = (type: string, more: object) => frame({ type, ...more }, type)
  const inMessage = (type: string, index: number, members: object) => told(type, { index, delta: { message: members } })
  return [
    told('message-start', { id: 'c14c80c3', delta: { message: { role: 'assistant', content: [], tool_calls: [] } } }),
    ...cohereContent(said).flatMap(({ type, words }, index) => [
      inMessage('content-start', index, { content: { type, [type]: '' } }),
      ...pieces(words).map((piece) => inMessage('content-delta', index, { content: { [type]: piece } })),
      inMessage('content-end', index, {}),
    ]),
    ...cohereCitations(said).flatMap((citations, index) => [
      inMessage('citation-start', index, { citations }),
      told('citation-end', { index }),
    ]),
    ...cohereCalls(said).flatMap(({ function: { name, arguments: args }, ...call }, index) => [
      inMessage('tool-call-start', index, { tool_calls: { ...call, function: { name, arguments: '' } } }),
      ...pieces(args).map((piece) =>
        inMessage('tool-call-delta', index, { tool_calls: { function: { arguments: piece } } }),
      ),
      told('tool-call-end', { index }),
    ]),
    told('message-end', { delta: { finish_reason: cohereFinish(said), usage: cohereUsage } }),
    'data: [DONE]\n\n',
  ]
}

function readCohere({ role, content, tool_plan: plan, tool_calls: calls = [], tool_call_id: id }: Body) {
  const blocks: Body[] = Array.isArray(content) ? content : []
  if (role === 'tool') return turn('user', { results: [{ id, text: wordsOf(content?.[0]?.document ?? content) }] })
  return turn(role, {
    text: (plan ?? '') + spokenIn(content),
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
  whole: (said) => {
    const content = cohereContent(said).map(({ type, words }) => ({ type, [type]: words }))
    const [calls, citations] = [cohereCalls(said), cohereCitations(said)]
    return {
      id: 'c14c80c3',
      message: {
        role: 'assistant',
        ...(content.length > 0 && { content }),
        ...(calls.length > 0 && { tool_calls: calls }),
        ...(citations.length > 0 && { citations }),
      },
      finish_reason: cohereFinish(said),
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
  kept: (thought) => thought,
}

const ollamaLine = (message: object, more: object = { done: false }) => ({
  model: 'qwen3',
  created_at: '2026-11-21T10:00:00.000Z',
  message: { role: 'assistant', content: '', ...message },
  ...more,
})
const ollamaEnds = { length: 'length' }
const ollamaEnd = (said: Said) => ({
  done: true,
  done_reason: endOf(said, ollamaEnds, 'stop'),
  prompt_eval_count: counted.input,
  eval_count: counted.output,
})
const ollamaCalls = ({ calls = [] }: Said) =>
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
  whole: (said) => {
    const calls = ollamaCalls(said)
    const message = { thinking: said.thought, content: said.text ?? '', ...(calls.length > 0 && { tool_calls: calls }) }
    return ollamaLine(message, ollamaEnd(said))
  },
  frames: (said) =>
    [
      ...pieces(said.thought ?? '').map((thinking) => ollamaLine({ thinking })),
      ...pieces(said.text ?? '').map((content) => ollamaLine({ content })),
      ...ollamaCalls(said).map((call) => ollamaLine({ tool_calls: [call] })),
      ollamaLine({}, ollamaEnd(said)),
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
  kept: (thought) => thought,
}
