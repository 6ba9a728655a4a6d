import { type Conversation, type Format, type Reply, randomId, type SentEvent, type Turn } from '../conversation.ts'
import { allText, type Fields, fieldsOf, objectsOf, textOf } from '../fields.ts'

/** Anthropic's Messages API. */
export const messages: Format = { read, write, error }

/** The end of the signatures of this provider. */
export const signatureSuffix = 'EqQBCgIYAhIM'

function read(body: Fields): Conversation {
  const blocks = objectsOf(body.messages).flatMap(({ role, content }) =>
    typeof content === 'string'
      ? [{ role, type: 'text', text: content }]
      : objectsOf(content).map((block) => ({ ...block, role })),
  ) as Fields[]
  // A deferred tool can be called once a search has named it.
  const found = blocks.flatMap(({ content }) => objectsOf(content).map(({ tool_name }) => tool_name))
  return {
    tools: objectsOf(body.tools)
      .filter(({ name, defer_loading }) => name && (defer_loading !== true || found.includes(name)))
      .map(({ name, input_schema }) => ({ name: textOf(name), kind: 'function', parameters: fieldsOf(input_schema) })),
    user: blocks
      .filter(({ role, type }) => role === 'user' && type === 'text')
      .map(({ text }) => textOf(text))
      .join('\n'),
    calls: blocks
      .filter(({ type }) => type === 'tool_use')
      .map(({ id, name }) => ({ id: textOf(id), name: textOf(name) })),
    results: blocks
      .filter(({ type }) => type === 'tool_result')
      .map(({ tool_use_id, content }) => ({ id: textOf(tool_use_id), text: allText(content) })),
  }
}

function write(turn: Turn, request: Fields): Reply {
  const content = [...thoughtsOf(request), 'call' in turn ? callOf(turn.call) : { type: 'text', text: turn.text }]
  const head = {
    id: randomId('msg_01', 22),
    type: 'message',
    role: 'assistant',
    model: request.model,
    stop_sequence: null,
  }
  const usage = { input_tokens: 1_000, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 40 }
  const stop_reason = 'call' in turn ? 'tool_use' : 'end_turn'
  const events: Fields[] = [
    {
      type: 'message_start',
      message: { ...head, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
    },
    ...content.flatMap(blockEvents),
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 40 } },
    { type: 'message_stop' },
  ]
  return { whole: { ...head, content, stop_reason, usage }, events: events.map(named) }
}

function named(data: Fields): SentEvent {
  return { name: textOf(data.type), data }
}

/** Signed thoughts, where the request wants them; their text only where it wants to see it. */
function thoughtsOf(request: Fields): Fields[] {
  const { type, display } = fieldsOf(request.thinking)
  if (type !== 'enabled' && type !== 'adaptive') return []
  const thinking = type === 'enabled' || display === 'summarized' ? 'The next step.' : ''
  return [{ type: 'thinking', thinking, signature: randomId('', 40) + signatureSuffix }]
}

function callOf({ tool, input }: { tool: { name: string }; input: Fields | string }): Fields {
  return { type: 'tool_use', id: randomId('toolu_01', 22), name: tool.name, input }
}

/** A block as it is streamed. */
function blockEvents(block: Fields, index: number): Fields[] {
  const delta = (value: Fields) => ({ type: 'content_block_delta', index, delta: value })
  const start = (content_block: Fields) => ({ type: 'content_block_start', index, content_block })
  const stop = { type: 'content_block_stop', index }
  if (block.type === 'thinking') {
    return [
      start({ type: 'thinking', thinking: '', signature: '' }),
      ...(block.thinking ? [delta({ type: 'thinking_delta', thinking: block.thinking })] : []),
      delta({ type: 'signature_delta', signature: block.signature }),
      stop,
    ]
  }
  if (block.type === 'text') {
    return [start({ type: 'text', text: '' }), delta({ type: 'text_delta', text: block.text }), stop]
  }
  const json = JSON.stringify(block.input)
  const pieces = [json.slice(0, 9), json.slice(9)]
  return [
    start({ ...block, input: {} }),
    ...pieces.map((partial_json) => delta({ type: 'input_json_delta', partial_json })),
    stop,
  ]
}

function error(message: string, status: number): Fields {
  const types: Record<number, string> = {
    400: 'invalid_request_error',
    404: 'not_found_error',
    429: 'rate_limit_error',
    529: 'overloaded_error',
  }
  return { type: 'error', error: { type: types[status] ?? 'api_error', message }, request_id: randomId('req_', 24) }
}
