import {
  argumentsText,
  type Conversation,
  type Format,
  type Reply,
  randomId,
  type ThoughtsMember,
  type Tool,
  type Turn,
} from '../conversation.ts'
import { allText, type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'

/** Chat completions, as OpenAI defined them and many providers speak them. */
export const chat: Format = { read, write, error }

function read(body: Fields): Conversation {
  const messages = objectsOf(body.messages)
  const calls = messages.flatMap((message) => objectsOf(message.tool_calls))
  return {
    tools: objectsOf(body.tools).flatMap(toolOf),
    user: messages
      .filter(({ role }) => role === 'user')
      .map(({ content }) => allText(content))
      .join('\n'),
    calls: calls.map((call) => ({ id: textOf(call.id), name: textOf(fieldsOf(call.function ?? call.custom).name) })),
    results: messages
      .filter(({ role }) => role === 'tool')
      .map(({ tool_call_id, content }) => ({ id: textOf(tool_call_id), text: allText(content) })),
  }
}

function toolOf(tool: Fields): Tool[] {
  const kind = tool.type === 'custom' ? 'custom' : 'function'
  const definition = fieldsOf(tool[kind])
  const name = textOf(definition.name)
  return name ? [{ name, kind, parameters: fieldsOf(definition.parameters) }] : []
}

function write(turn: Turn, request: Fields, thoughts: ThoughtsMember): Reply {
  const head = { id: randomId('chatcmpl-', 24), created: 1_790_000_000, model: textOf(request.model) }
  const usage = { prompt_tokens: 1_000, completion_tokens: 40, total_tokens: 1_040 }
  const thought = thoughts ? { [thoughts]: 'The next step.' } : {}
  const finish_reason = 'call' in turn ? 'tool_calls' : 'stop'
  const message = 'call' in turn ? { content: null, tool_calls: [callOf(turn.call, thoughts)] } : { content: turn.text }
  const chunk = (delta: Fields, reason: string | null = null) => ({
    data: { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] },
  })
  return {
    whole: {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', ...thought, ...message }, finish_reason }],
      usage,
    },
    events: [
      chunk({ role: 'assistant', content: '', ...thought }),
      ...deltasOf(message).map((delta) => chunk(delta)),
      chunk({}, finish_reason),
      ...(fieldsOf(request.stream_options).include_usage
        ? [{ data: { ...head, object: 'chat.completion.chunk', choices: [], usage } }]
        : []),
      { data: '[DONE]' },
    ],
  }
}

/** A call in the form of the answer. The ids of open servers are longer than those of OpenAI. */
function callOf({ tool, input }: { tool: Tool; input: Fields | string }, thoughts: ThoughtsMember): Fields {
  const id = thoughts === 'reasoning' ? randomId('chatcmpl-tool-', 32) : randomId('call_', 24)
  return tool.kind === 'custom'
    ? { id, type: 'custom', custom: { name: tool.name, input: argumentsText(input) } }
    : { id, type: 'function', function: { name: tool.name, arguments: argumentsText(input) } }
}

/** A message in pieces: a call comes in two, a text word by word. */
function deltasOf(message: Fields): Fields[] {
  const [call] = objectsOf(message.tool_calls)
  if (!call)
    return textOf(message.content)
      .split(/(?<= )/)
      .map((content) => ({ content }))
  const kind = textOf(call.type)
  const definition = fieldsOf(call[kind])
  const member = kind === 'custom' ? 'input' : 'arguments'
  const whole = textOf(definition[member])
  return [
    { tool_calls: [{ index: 0, ...call, [kind]: { ...definition, [member]: whole.slice(0, 9) } }] },
    { tool_calls: [{ index: 0, [kind]: { [member]: whole.slice(9) } }] },
  ]
}

function error(message: string, status: number): Fields {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  return { error: { message, type, param: null, code: null } }
}
