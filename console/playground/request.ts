/** The three APIs that a conversation can be sent by. */
export type ApiName = 'chat' | 'messages' | 'responses'
export const apis: readonly (readonly [ApiName, string])[] = [
  ['chat', 'Chat Completions'],
  ['messages', 'Messages'],
  ['responses', 'Responses'],
]

/** The kinds of calls that the playground makes. */
export type Kind = 'chat' | OperationKind
export type OperationKind = 'image' | 'speech' | 'embed'
export const kinds: readonly (readonly [Kind, string])[] = [
  ['chat', 'Conversation'],
  ['image', 'Image'],
  ['speech', 'Speech'],
  ['embed', 'Embeddings'],
]

export const paths: { readonly [name in ApiName | OperationKind]: string } = {
  chat: 'v1/chat/completions',
  messages: 'v1/messages',
  responses: 'v1/responses',
  image: 'v1/images/generations',
  speech: 'v1/audio/speech',
  embed: 'v1/embeddings',
}

/** The formats of speech that browsers play. */
export const formats: readonly (readonly [string, string])[] = [
  ['mp3', 'MP3'],
  ['wav', 'WAV'],
  ['opus', 'Opus'],
  ['aac', 'AAC'],
  ['flac', 'FLAC'],
]

export type ToolCall = { id: string; name: string; arguments: string }
/** Turn of the conversation. `images` are data URLs. */
export type Turn =
  | { role: 'user'; text: string; images: readonly string[] }
  | { role: 'assistant'; text: string; calls: readonly ToolCall[] }
  | { role: 'tool'; id: string; text: string }

export type Settings = {
  kind: Kind
  api: ApiName
  model: string
  /** The model that gets the same requests; empty for none. */
  second: string
  system: string
  temperature: string
  most: string
  effort: string
  /** A JSON array of functions: `{name, description, parameters}`. */
  tools: string
  isStreamed: boolean
  /** The prompt of an image, the text of speech, or the texts of embeddings, one per line. */
  prompt: string
  size: string
  voice: string
  format: string
  dimensions: string
}

export const noSettings: Settings = {
  kind: 'chat',
  api: 'chat',
  model: '',
  second: '',
  ...{ system: '', temperature: '', most: '', effort: '', tools: '', isStreamed: true },
  ...{ prompt: '', size: '', voice: 'alloy', format: 'mp3', dimensions: '' },
}

/** Returns the body of a request for an image, speech or embeddings. */
export function operationBody(kind: OperationKind, settings: Settings): Record<string, unknown> {
  const { model, prompt, size, voice, format, dimensions } = settings
  switch (kind) {
    case 'image':
      return { model, prompt, ...(size !== '' && { size }), response_format: 'b64_json' }
    case 'speech':
      return { model, input: prompt, voice, response_format: format }
    case 'embed': {
      const input = prompt.split('\n').filter((line) => line.trim() !== '')
      return { model, input, ...(dimensions !== '' && { dimensions: Number(dimensions) }) }
    }
  }
}

type Tool = { name: string; description?: string; parameters?: object }

/** Returns the body of the request that asks for the next turn. Throws an Error that names the problem. */
export function bodyOf(settings: Settings, turns: readonly Turn[]): Record<string, unknown> {
  const tools = toolsIn(settings.tools)
  const numbers = {
    ...(settings.temperature !== '' && { temperature: Number(settings.temperature) }),
    ...(settings.isStreamed && { stream: true }),
  }
  return { model: settings.model, ...writers[settings.api](settings, turns, tools), ...numbers }
}

function toolsIn(text: string): Tool[] {
  if (text.trim() === '') return []
  try {
    const tools: unknown = JSON.parse(text)
    if (Array.isArray(tools)) return tools as Tool[]
  } catch {}
  throw new Error('The tools must be a JSON array of functions, each with a name, a description and parameters.')
}

type Writer = (settings: Settings, turns: readonly Turn[], tools: readonly Tool[]) => Record<string, unknown>

const writers: { readonly [api in ApiName]: Writer } = {
  chat: ({ system, most, effort, isStreamed }, turns, tools) => ({
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...turns.map(chatMessage)],
    ...(most !== '' && { max_tokens: Number(most) }),
    ...(effort !== '' && { reasoning_effort: effort }),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
    ...(isStreamed && { stream_options: { include_usage: true } }),
  }),
  messages: ({ system, most, effort }, turns, tools) => ({
    ...(system !== '' && { system }),
    messages: turns.map(messagesMessage),
    max_tokens: most === '' ? usualLength : Number(most),
    ...(effort !== '' && { output_config: { effort } }),
    ...(tools.length > 0 && {
      tools: tools.map(({ parameters = { type: 'object' }, ...tool }) => ({ ...tool, input_schema: parameters })),
    }),
  }),
  responses: ({ system, most, effort }, turns, tools) => ({
    ...(system !== '' && { instructions: system }),
    input: turns.flatMap(responsesItems),
    ...(most !== '' && { max_output_tokens: Number(most) }),
    ...(effort !== '' && { reasoning: { effort } }),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: 'function', ...tool })) }),
    store: false,
  }),
}

/** Length that is sent with the Messages API, which requires one. */
const usualLength = 1_024

function chatMessage(turn: Turn): object {
  if (turn.role === 'tool') return { role: 'tool', tool_call_id: turn.id, content: turn.text }
  if (turn.role === 'user') {
    const images = turn.images.map((url) => ({ type: 'image_url', image_url: { url } }))
    return { role: 'user', content: images.length === 0 ? turn.text : [{ type: 'text', text: turn.text }, ...images] }
  }
  const calls = turn.calls.map(({ id, ...called }) => ({ id, type: 'function', function: called }))
  return { role: 'assistant', content: turn.text, ...(calls.length > 0 && { tool_calls: calls }) }
}

function messagesMessage(turn: Turn): object {
  if (turn.role === 'tool')
    return { role: 'user', content: [{ type: 'tool_result', tool_use_id: turn.id, content: turn.text }] }
  const text = turn.text === '' ? [] : [{ type: 'text', text: turn.text }]
  if (turn.role === 'user') {
    const images = turn.images.map((url) => {
      const [, media_type, data] = /^data:([^;]+);base64,(.*)$/s.exec(url) ?? []
      return { type: 'image', source: { type: 'base64', media_type, data } }
    })
    return { role: 'user', content: images.length === 0 ? turn.text : [...text, ...images] }
  }
  const calls = turn.calls.map(({ id, name, arguments: json }) => ({
    type: 'tool_use',
    id,
    name,
    input: argumentsOf(json),
  }))
  return { role: 'assistant', content: [...text, ...calls] }
}

function argumentsOf(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return {}
  }
}

function responsesItems(turn: Turn): object[] {
  if (turn.role === 'tool') return [{ type: 'function_call_output', call_id: turn.id, output: turn.text }]
  if (turn.role === 'user') {
    const images = turn.images.map((image_url) => ({ type: 'input_image', image_url }))
    return [
      { role: 'user', content: images.length === 0 ? turn.text : [{ type: 'input_text', text: turn.text }, ...images] },
    ]
  }
  return [
    ...(turn.text === '' ? [] : [{ role: 'assistant', content: turn.text }]),
    ...turn.calls.map(({ id, ...called }) => ({ type: 'function_call', call_id: id, ...called })),
  ]
}
