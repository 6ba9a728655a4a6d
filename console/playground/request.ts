/** The three APIs that a conversation can be sent by. */
export type ApiName = 'chat' | 'messages' | 'responses'
export const apis: readonly (readonly [ApiName, string])[] = [
  ['chat', 'Chat Completions'],
  ['messages', 'Messages'],
  ['responses', 'Responses'],
]
export const paths: { readonly [api in ApiName]: string } = {
  chat: 'v1/chat/completions',
  messages: 'v1/messages',
  responses: 'v1/responses',
}

export type ToolCall = { id: string; name: string; arguments: string }
/** Turn of the conversation. `images` are data URLs. */
export type Turn =
  | { role: 'user'; text: string; images: readonly string[] }
  | { role: 'assistant'; text: string; calls: readonly ToolCall[] }
  | { role: 'tool'; id: string; text: string }

export type Settings = {
  api: ApiName
  model: string
  system: string
  temperature: string
  most: string
  effort: string
  /** A JSON array of functions: `{name, description, parameters}`. */
  tools: string
  isStreamed: boolean
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
