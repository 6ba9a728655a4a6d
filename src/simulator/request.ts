/** The models of the simulator; the manifest and reply.ts describe each. */
export const modelNames = ['echo', 'thinker', 'trouble'] as const

/** The parts of a chat request that the simulator uses. */
export type SimulatedRequest = {
  model: (typeof modelNames)[number]
  messages: SimulatedMessage[]
  tools: SimulatedTool[]
  /** Rule for calling tools: they may, need not or must be called. */
  calls: 'auto' | 'none' | 'required'
  parallel: boolean
  format: { type: 'text' } | { type: 'json' } | { type: 'schema'; schema: unknown }
  limit: number
  stop: string[]
  n: number
  reasons: boolean
  stream: boolean
  includeUsage: boolean
}

/** One message: its text, and descriptions of its attachments (`an image (image/png, 68 bytes)`). */
export type SimulatedMessage = { role: string; text: string; attachments: string[] }

/** A tool that may be called, by `tools` and `tool_choice`. */
export type SimulatedTool = { kind: 'function' | 'custom'; name: string; parameters: unknown }

/** An error of the simulated API. */
export class SimulatedError extends Error {
  readonly status: number
  readonly param: string | null
  readonly code: string | null

  constructor(status: number, message: string, details: { param?: string; code?: string } = {}) {
    super(message)
    this.status = status
    this.param = details.param ?? null
    this.code = details.code ?? null
  }
}

/** Reads a request body. Throws SimulatedError with the status and message of the real API. */
export function readRequest(body: unknown): SimulatedRequest {
  if (!isRecord(body)) throw new SimulatedError(400, 'The body must be a JSON object.')
  const { model, messages, stream_options: streamOptions } = body
  if (typeof model !== 'string') throw missing('model')
  if (!modelNames.includes(model as SimulatedRequest['model'])) {
    throw new SimulatedError(404, `The model \`${model}\` does not exist.`, { param: 'model', code: 'model_not_found' })
  }
  if (!Array.isArray(messages)) throw missing('messages')
  if (messages.length === 0)
    throw new SimulatedError(400, "Invalid 'messages': empty array.", { param: 'messages', code: 'empty_array' })
  checkToolResults(messages)
  const { tools, calls } = readTools(body)
  return {
    model: model as SimulatedRequest['model'],
    messages: messages.map(readMessage),
    tools,
    calls,
    parallel: body.parallel_tool_calls !== false,
    format: readFormat(body.response_format),
    limit: readLimit(body),
    stop: [body.stop ?? []].flat().filter((text) => typeof text === 'string' && text !== '') as string[],
    n: readNumber(body, 'n', 1, 128) ?? 1,
    reasons: model === 'thinker' && body.reasoning_effort !== 'none',
    stream: body.stream === true,
    includeUsage: isRecord(streamOptions) && streamOptions.include_usage === true,
  }
}

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

function readMessage(message: unknown, index: number): SimulatedMessage {
  const at = `messages[${index}]`
  if (!isRecord(message)) throw invalid(at, 'an object')
  if (!roles.includes(String(message.role))) throw invalid(`${at}.role`, `one of ${roles.join(', ')}`)
  const { content } = message
  const bare = message.role === 'assistant' && (content === null || content === undefined)
  if (bare) return { role: 'assistant', text: '', attachments: [] }
  if (typeof content === 'string') return { role: String(message.role), text: content, attachments: [] }
  if (!Array.isArray(content)) throw invalid(`${at}.content`, 'a string or an array of content parts')
  const parts = content.map((part, number) => readPart(part, `${at}.content[${number}]`))
  return {
    role: String(message.role),
    text: parts.flatMap(({ text }) => text ?? []).join(' '),
    attachments: parts.flatMap(({ attachment }) => attachment ?? []),
  }
}

function readPart(part: unknown, at: string): { text?: string; attachment?: string } {
  if (!isRecord(part)) throw invalid(at, 'an object')
  const text = part.text ?? part.refusal
  if (part.type === 'text' || part.type === 'refusal') {
    if (typeof text !== 'string') throw invalid(`${at}.${part.type}`, 'a string')
    return { text }
  }
  const inner = part[String(part.type)]
  if (!isRecord(inner)) throw invalid(`${at}.type`, 'one of text, image_url, input_audio, file')
  if (part.type === 'image_url') return { attachment: `an image ${whereIs(String(inner.url))}` }
  if (part.type === 'input_audio')
    return { attachment: `audio (${inner.format}, ${bytesOf(String(inner.data))} bytes)` }
  if (part.type === 'file')
    return {
      attachment: `a file ${inner.filename ?? ''} ${whereIs(String(inner.file_data ?? inner.file_id))}`.replace(
        '  ',
        ' ',
      ),
    }
  throw invalid(`${at}.type`, 'one of text, image_url, input_audio, file')
}

function whereIs(address: string): string {
  const [, type, data] = /^data:([^;,]*)[^,]*,(.*)$/s.exec(address) ?? []
  return data === undefined ? `at ${address}` : `(${type}, ${bytesOf(data)} bytes)`
}

function bytesOf(base64: string): number {
  return Buffer.from(base64, 'base64').length
}

/** Checks tool results as the real API does: each call must be followed by a tool message, and each tool message must answer a call. */
function checkToolResults(messages: unknown[]): void {
  let open = new Set<unknown>()
  for (const [index, message] of messages.entries()) {
    if (!isRecord(message)) continue
    const { role, tool_calls: calls, tool_call_id: id } = message
    if (role === 'tool' ? open.delete(id) : open.size === 0) {
      if (role !== 'tool') open = new Set(Array.isArray(calls) ? calls.map((call) => isRecord(call) && call.id) : [])
      continue
    }
    const text =
      role === 'tool'
        ? "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
        : "an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    throw new SimulatedError(400, `Invalid parameter: ${text}`, { param: `messages[${index}]` })
  }
}

function readTools(body: Readonly<Record<string, unknown>>): Pick<SimulatedRequest, 'tools' | 'calls'> {
  const offered = (Array.isArray(body.tools) ? body.tools : []).map(readTool)
  const choice = body.tool_choice ?? 'auto'
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { tools: offered, calls: choice }
  if (!isRecord(choice)) throw invalid('tool_choice', 'none, auto, required or an object')
  const { allowed_tools: allowed } = choice
  const names = isRecord(allowed) && Array.isArray(allowed.tools) ? allowed.tools.map(nameOf) : [nameOf(choice)]
  const tools = offered.filter(({ name }) => names.includes(name))
  if (tools.length === 0)
    throw new SimulatedError(400, `Tool choice '${names}' not found in 'tools'.`, { param: 'tool_choice' })
  return { tools, calls: isRecord(allowed) && allowed.mode === 'auto' ? 'auto' : 'required' }
}

function readTool(tool: unknown, index: number): SimulatedTool {
  const name = nameOf(tool)
  if (name === undefined || !isRecord(tool)) throw invalid(`tools[${index}]`, 'a function or a custom tool with a name')
  const { function: described } = tool
  return {
    kind: tool.type === 'custom' ? 'custom' : 'function',
    name,
    parameters: isRecord(described) ? described.parameters : undefined,
  }
}

function nameOf(tool: unknown): string | undefined {
  const inner = isRecord(tool) ? tool[String(tool.type)] : undefined
  return isRecord(inner) && typeof inner.name === 'string' ? inner.name : undefined
}

function readFormat(format: unknown): SimulatedRequest['format'] {
  if (!isRecord(format) || format.type === 'text') return { type: 'text' }
  if (format.type === 'json_object') return { type: 'json' }
  if (format.type !== 'json_schema') throw invalid('response_format.type', 'text, json_object or json_schema')
  if (!isRecord(format.json_schema)) throw missing('response_format.json_schema')
  return { type: 'schema', schema: format.json_schema.schema }
}

/** The models' `max_output_tokens`. */
const outputLimit = 8_192

function readLimit(body: Readonly<Record<string, unknown>>): number {
  const name =
    body.max_completion_tokens === undefined || body.max_completion_tokens === null
      ? 'max_tokens'
      : 'max_completion_tokens'
  return Math.min(readNumber(body, name, 1, Number.MAX_SAFE_INTEGER) ?? outputLimit, outputLimit)
}

function readNumber(
  body: Readonly<Record<string, unknown>>,
  name: string,
  least: number,
  most: number,
): number | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw invalid(name, `an integer of at least ${least}`)
  }
  return value as number
}

function missing(name: string): SimulatedError {
  return new SimulatedError(400, `Missing required parameter: '${name}'.`, {
    param: name,
    code: 'missing_required_parameter',
  })
}

function invalid(name: string, expected: string): SimulatedError {
  return new SimulatedError(400, `Invalid value for '${name}': expected ${expected}.`, {
    param: name,
    code: 'invalid_type',
  })
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
