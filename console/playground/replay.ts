import { mediaText, type Stored, type StoredMessage, type StoredPart, textIn } from '../stored.ts'
import { type ApiName, apis, type Kind, type Settings, type Turn } from './request.ts'

/** A stored request as the playground sends it again, and the parts of it that it cannot send. */
export type Replay = { settings: Partial<Settings>; turns: Turn[]; missing: string[] }

const kindOf: { readonly [operation: string]: Kind } = {
  chat: 'chat',
  image: 'image',
  speech: 'speech',
  embed: 'embed',
}

/** Returns what to send for a stored request. Throws an Error where the playground has no such calls. */
export function replayOf({ request, operation, api, asked: model }: Stored): Replay {
  if (!request) throw new Error('The request of this call is not stored.')
  const kind = kindOf[operation]
  if (kind === undefined) throw new Error(`The playground cannot send calls of the kind '${operation}'.`)
  if (kind !== 'chat') return operationReplay(kind, model, request)
  const { system = [], messages = [], tools = [], temperature, max_output_tokens: most } = request
  const missing: string[] = []
  const turns = messages.flatMap((message) => turnsOf(message, missing))
  const { effort } = (request.reasoning ?? {}) as { effort?: string }
  const functions = tools.filter(({ kind: tool }) => tool === 'function')
  if (functions.length < tools.length) missing.push('tools of the provider')
  missing.push(...unsent(request))
  return {
    settings: {
      kind,
      model,
      ...(isApi(api) && { api }),
      isStreamed: request.stream === true,
      system: system.map((part) => textIn(part)).join('\n\n'),
      temperature: numberText(temperature),
      most: numberText(most),
      effort: effort && ['low', 'medium', 'high'].includes(effort) ? effort : '',
      tools: functions.length === 0 ? '' : JSON.stringify(functions.map(toolOf), null, 2),
    },
    turns,
    missing: [...new Set(missing)],
  }
}

function isApi(api: string): api is ApiName {
  return apis.some(([name]) => name === api)
}

function operationReplay(
  kind: Exclude<Kind, 'chat'>,
  model: string,
  request: Readonly<Record<string, unknown>>,
): Replay {
  const { input, prompt, voice, size, dimensions, response_format: format } = request
  const given = kind === 'image' ? prompt : input
  const lines = [given].flat().filter((one) => typeof one === 'string')
  const settings: Partial<Settings> = {
    kind,
    model,
    prompt: lines.join('\n'),
    ...(typeof voice === 'string' && { voice }),
    ...(typeof size === 'string' && { size }),
    ...(kind === 'speech' && typeof format === 'string' && { format }),
    dimensions: numberText(dimensions),
  }
  return { settings, turns: [], missing: [] }
}

/** The members of a request that the playground has fields for, or that do not influence an answer. */
const sent = [
  'model',
  'system',
  'messages',
  'tools',
  'temperature',
  'max_output_tokens',
  'reasoning',
  'stream',
  'user',
  'metadata',
  'store',
  'cache',
]

function unsent(request: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(request).filter((name) => !sent.includes(name))
}

function turnsOf({ role, parts }: StoredMessage, missing: string[]): Turn[] {
  const results = parts.filter(({ type }) => type === 'tool_result')
  const texts = parts.filter(({ type }) => type === 'text')
  const calls = parts.filter(({ type }) => type === 'tool_call')
  for (const part of parts) if (!known.includes(part.type)) missing.push(mediaText(part))
  const text = texts.map((part) => textIn(part)).join('\n')
  if (role === 'assistant') {
    return [{ role, text, calls: calls.map((call) => ({ ...callOf(call) })) }]
  }
  const tools = results.map((part): Turn => {
    const inner = (Array.isArray(part.parts) ? part.parts : []) as StoredPart[]
    return { role: 'tool', id: textIn(part, 'id'), text: inner.map((one) => textIn(one)).join('\n') }
  })
  return text === '' && tools.length > 0 ? tools : [...tools, { role: 'user', text, images: [] }]
}

/** Parts that are sent again; earlier reasoning has no field, and its absence changes little. */
const known = ['text', 'tool_call', 'tool_result', 'reasoning']

function callOf(call: StoredPart) {
  return { id: textIn(call, 'id'), name: textIn(call, 'name'), arguments: textIn(call, 'arguments') }
}

function toolOf({ name, description, parameters }: Readonly<Record<string, unknown>>) {
  return { name, ...(description !== undefined && { description }), ...(parameters !== undefined && { parameters }) }
}

function numberText(value: unknown): string {
  return typeof value === 'number' ? String(value) : ''
}
