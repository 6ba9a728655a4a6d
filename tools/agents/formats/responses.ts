import {
  argumentsText,
  type Conversation,
  type Format,
  type Reply,
  randomId,
  type SentEvent,
  type Tool,
  type Turn,
} from '../conversation.ts'
import { allText, type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'

/** OpenAI's Responses API. */
export const responses: Format = { read, write, error }

/** The beginning of what this provider seals. */
export const sealPrefix = 'gAAAAAB'

function read(body: Fields): Conversation {
  const input = objectsOf(body.input)
  const calls = input.filter(({ type }) => type === 'function_call' || type === 'custom_tool_call')
  const outputs = input.filter(({ type }) => /^(function|custom_tool)_call_output$/.test(textOf(type)))
  const said = input.filter(({ role, type }) => role === 'user' || type === 'agent_message')
  return {
    tools: [...objectsOf(body.tools), ...input.flatMap(({ tools }) => objectsOf(tools))].flatMap((tool) =>
      toolsOf(tool),
    ),
    user: typeof body.input === 'string' ? body.input : said.map(({ content }) => allText(content)).join('\n'),
    calls: calls.map((call) => ({ id: textOf(call.call_id), name: textOf(call.name) })),
    results: outputs.map(({ call_id, output }) => ({ id: textOf(call_id), text: allText(output) })),
  }
}

function toolsOf(tool: Fields, namespace?: string): Tool[] {
  const name = textOf(tool.name)
  if (tool.type === 'namespace') return objectsOf(tool.tools).flatMap((one) => toolsOf(one, name))
  if (tool.type !== 'function' && tool.type !== 'custom') return []
  return [{ name, kind: tool.type, parameters: fieldsOf(tool.parameters), ...(namespace ? { namespace } : {}) }]
}

function write(turn: Turn, request: Fields): Reply {
  const output = [...reasoningOf(request), 'call' in turn ? callOf(turn.call) : messageOf(turn.text)]
  const usage = { input_tokens: 1_000, output_tokens: 40, total_tokens: 1_040 }
  const head = { id: randomId('resp_', 32), object: 'response', created_at: 1_790_000_000, model: request.model }
  const whole = { ...head, status: 'completed', output, usage, error: null, incomplete_details: null }
  const begun = { ...head, status: 'in_progress', output: [], usage: null, error: null, incomplete_details: null }
  const events = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...output.flatMap((item, output_index) => itemEvents(item, output_index)),
    { type: 'response.completed', response: whole },
  ]
  return { whole, events: events.map((event, sequence_number) => named({ ...event, sequence_number })) }
}

function named(data: Fields): SentEvent {
  return { name: textOf(data.type), data }
}

/** Sealed reasoning, where the model thinks and the client keeps its own history. */
function reasoningOf(request: Fields): Fields[] {
  if (fieldsOf(request.reasoning).effort === 'none') return []
  const isSealed = Array.isArray(request.include) && request.include.includes('reasoning.encrypted_content')
  const seal = isSealed ? { encrypted_content: randomId(sealPrefix, 80) } : {}
  return [{ id: randomId('rs_', 48), type: 'reasoning', summary: [], ...seal }]
}

function callOf({ tool, input }: { tool: Tool; input: Fields | string }): Fields {
  const { name, kind, namespace } = tool
  const place = namespace ? { namespace } : {}
  const call_id = randomId('call_', 24)
  return kind === 'custom'
    ? {
        id: randomId('ctc_', 48),
        type: 'custom_tool_call',
        status: 'completed',
        call_id,
        name,
        ...place,
        input: argumentsText(input),
      }
    : {
        id: randomId('fc_', 48),
        type: 'function_call',
        status: 'completed',
        call_id,
        name,
        ...place,
        arguments: argumentsText(input),
      }
}

function messageOf(text: string): Fields {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
  return { id: randomId('msg_', 48), type: 'message', role: 'assistant', status: 'completed', content }
}

/** An output item as it is streamed. */
function itemEvents(item: Fields, output_index: number): Fields[] {
  const at = { output_index, item_id: item.id }
  const begun = { type: 'response.output_item.added', output_index, item: { ...item, ...emptied(item) } }
  const done = { type: 'response.output_item.done', output_index, item }
  if (item.type === 'reasoning') return [begun, done]
  if (item.type !== 'message') {
    const [member, event] =
      item.type === 'function_call' ? ['arguments', 'function_call_arguments'] : ['input', 'custom_tool_call_input']
    return [
      begun,
      { type: `response.${event}.delta`, ...at, delta: item[member] },
      { type: `response.${event}.done`, ...at, [member]: item[member] },
      done,
    ]
  }
  const [part = {}] = objectsOf(item.content)
  const inPart = { ...at, content_index: 0 }
  return [
    begun,
    { type: 'response.content_part.added', ...inPart, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...inPart, delta: part.text, logprobs: [] },
    { type: 'response.output_text.done', ...inPart, text: part.text, logprobs: [] },
    { type: 'response.content_part.done', ...inPart, part },
    done,
  ]
}

/** The members of an item that is not finished. */
function emptied(item: Fields): Fields {
  if (item.type === 'message') return { status: 'in_progress', content: [] }
  if (item.type === 'function_call') return { status: 'in_progress', arguments: '' }
  return item.type === 'custom_tool_call' ? { status: 'in_progress', input: '' } : {}
}

function error(message: string, status: number): Fields {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  return { error: { message, type, param: null, code: null } }
}
