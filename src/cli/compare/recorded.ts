import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import type { Message, NeutralRequest, Tool } from '../../core/request.ts'

type Recorded = { path: string; body: JsonObject } | { reason: string } | undefined

/** Endpoints by the names of operations. */
const paths: { readonly [operation: string]: string } = {
  embed: '/v1/embeddings',
  rerank: '/v1/rerank',
  moderate: '/v1/moderations',
  complete: '/v1/completions',
  image: '/v1/images/generations',
  speech: '/v1/audio/speech',
  decide: '/v1/decisions',
}

/** Returns the request of a line of log-payloads; undefined for a line about an answer or the end of a call. */
export function recordedRequest({ kind, operation, requested, request, left_out_bytes, stream }: JsonObject): Recorded {
  if (kind !== 'request') return undefined
  if (left_out_bytes !== undefined) return { reason: 'it was too large to be recorded' }
  if (typeof requested !== 'string' || !isObject(request)) return { reason: 'it was recorded in an unknown form' }
  if (operation === 'chat') return conversation(request as unknown as NeutralRequest, requested, stream === true)
  const path = typeof operation === 'string' ? paths[operation] : undefined
  if (path === undefined) return { reason: `requests of the operation '${String(operation)}' cannot be sent again` }
  return { path, body: { ...request, model: requested, ...(stream === true && { stream: true }) } }
}

/** Thrown for what was not recorded, or has no form in Chat Completions. */
class Unwritable extends Error {}

/** Writes a recorded conversation as a request of Chat Completions. */
function conversation(request: NeutralRequest, model: string, stream: boolean): Recorded {
  try {
    const system = (request.system ?? []).map((part) => ({ role: 'system', content: textOf(part) }))
    const body = {
      ...request.extensions,
      model,
      messages: [...system, ...request.messages.flatMap(messagesOf)],
      ...(request.tools && { tools: request.tools.map(toolOf) }),
      ...(request.tool_choice !== undefined && { tool_choice: choiceOf(request.tool_choice) }),
      ...settingsOf(request),
      ...(stream && { stream: true, stream_options: { include_usage: true } }),
    }
    return { path: '/v1/chat/completions', body: body as JsonObject }
  } catch (thrown) {
    if (thrown instanceof Unwritable) return { reason: thrown.message }
    throw thrown
  }
}

/** Settings that have the same name and form in Chat Completions. */
const settings = [
  ...['temperature', 'top_p', 'seed', 'stop', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'n'],
  ...['parallel_tool_calls', 'user', 'service_tier', 'verbosity', 'modalities'],
] as const

function settingsOf(request: NeutralRequest): JsonObject {
  const { max_output_tokens: most, reasoning, response_format: format } = request
  const members = request as unknown as JsonObject
  const same = settings.flatMap((name) => (members[name] === undefined ? [] : [[name, members[name]] as const]))
  return {
    ...Object.fromEntries(same),
    ...(most !== undefined && { max_tokens: most }),
    ...(reasoning?.effort !== undefined && { reasoning_effort: reasoning.effort }),
    ...(format && { response_format: formatOf(format) }),
  }
}

function formatOf(format: NonNullable<NeutralRequest['response_format']>): JsonObject {
  if (format.type === 'text') return { type: 'text' }
  if (format.type === 'json') return { type: 'json_object' }
  const { type, ...schema } = format
  return { type, json_schema: schema as JsonObject }
}

function messagesOf({ role, parts }: Message): JsonObject[] {
  const results = parts.flatMap((part) =>
    part.type === 'tool_result'
      ? [{ role: 'tool', tool_call_id: part.id, content: part.parts.map(textOf).join('') }]
      : [],
  )
  const calls = parts.flatMap((part) =>
    part.type === 'tool_call'
      ? [{ id: part.id, type: 'function', function: { name: part.name, arguments: part.arguments } }]
      : [],
  )
  const others = parts.filter(({ type }) => !['tool_result', 'tool_call', 'reasoning'].includes(type))
  if (others.length === 0 && calls.length === 0) return results
  const content = others.every(({ type }) => type === 'text') ? others.map(textOf).join('') : others.map(contentOf)
  return [
    ...results,
    { role, content: others.length === 0 ? null : content, ...(calls.length > 0 && { tool_calls: calls }) },
  ]
}

function contentOf(part: Part): JsonObject {
  if (part.type === 'text') return { type: 'text', text: part.text }
  if (part.type === 'image' && part.url !== undefined) return { type: 'image_url', image_url: { url: part.url } }
  throw new Unwritable(`it has a part of the type '${part.type}', which is not recorded whole`)
}

function textOf(part: Part): string {
  if (part.type === 'text' || part.type === 'refusal') return part.text
  throw new Unwritable(`it has a part of the type '${part.type}', which is not recorded whole`)
}

function toolOf(tool: Tool): JsonObject {
  if ('definition' in tool || tool.kind !== 'function') throw new Unwritable('it has tools that only one API has')
  const { name, description, parameters, strict } = tool
  const members = { name, description, parameters, strict }
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  return { type: 'function', function: Object.fromEntries(given) as JsonObject }
}

function choiceOf(choice: NonNullable<NeutralRequest['tool_choice']>): Json {
  if (typeof choice === 'string') return choice
  if ('name' in choice) return { type: 'function', function: { name: choice.name } }
  throw new Unwritable('it has a choice of tools that only one API has')
}
