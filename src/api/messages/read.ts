import { RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import { efforts, type Message, type NeutralRequest } from '../../core/request.ts'
import {
  defined,
  filledText,
  flag,
  integer,
  list,
  listOf,
  number,
  object,
  oneOf,
  optional,
  required,
  text,
} from '../check.ts'
import { wantsCache, wholePrompt } from '../router-fields.ts'
import { unreadMembers } from '../unread-members.ts'
import { unknownFields } from '../wire-fields.ts'
import { knownNames } from './fields.ts'
import { knownMembers } from './known-members.ts'
import { readContent } from './parts.ts'
import { readTools } from './tools.ts'

/** A Messages body as a neutral request. Throws RouterError 400 that names the field. */
export function readRequest(body: unknown): NeutralRequest {
  if (!isObject(body)) {
    throw new RouterError('invalid_request', 'The body must be a JSON object with model, max_tokens and messages.')
  }
  const format = readFormat(body)
  const unknown = { ...unknownFields(body, knownNames), ...format.extensions }
  const limit = required(body.max_tokens, 'max_tokens', 'a whole number', integer(0))
  const system = readSystem(body.system)
  return {
    model: required(body.model, 'model', 'the name of a model', filledText),
    ...(system.length > 0 && { system }),
    messages: readMessages(body.messages),
    ...defined({
      ...readTools(body),
      max_output_tokens: limit > 0 ? limit : undefined,
      temperature: optional(body.temperature, 'temperature', number(0, 1)),
      top_p: optional(body.top_p, 'top_p', number(0, 1)),
      top_k: optional(body.top_k, 'top_k', integer(0)),
      stop: readStop(body.stop_sequences),
      response_format: format.request,
      reasoning: readReasoning(body),
      cache: readCache(body),
      service_tier: optional(body.service_tier, 'service_tier', text),
      user: readUser(body.metadata),
      stream: optional(body.stream, 'stream', flag),
      extensions: Object.keys(unknown).length > 0 ? unknown : undefined,
      unread: unreadMembers(body, knownMembers),
    }),
    origin: { api: 'messages', body },
  }
}

function readStop(value: Json | undefined): string[] | undefined {
  const stop = optional(value, 'stop_sequences', listOf(text))
  return stop?.length === 0 ? undefined : stop
}

function readCache(body: JsonObject): NeutralRequest['cache'] {
  const options = optional(body.cache_control, 'cache_control', object) ?? (wantsCache(body) ? wholePrompt : undefined)
  return options && { options }
}

function readUser(value: Json | undefined): string | undefined {
  const metadata = optional(value, 'metadata', object)
  return metadata && optional(metadata.user_id, 'metadata.user_id', text)
}

/** `thinking` switches reasoning on and sets its budget, `output_config.effort` sets the effort. */
function readReasoning(body: JsonObject): NeutralRequest['reasoning'] {
  const thinking = optional(body.thinking, 'thinking', object)
  const output = optional(body.output_config, 'output_config', object)
  const effort = output && optional(output.effort, 'output_config.effort', oneOf(efforts))
  if (!thinking) return effort && { effort }
  const type = required(thinking.type, 'thinking.type', `one of ${thinkingTypes.join(', ')}`, oneOf(thinkingTypes))
  if (type === 'disabled' || type === 'between_tools') return { effort: 'none' }
  const summary = thinking.display === 'summarized' ? 'auto' : undefined
  if (type === 'adaptive') return { effort: effort ?? 'medium', ...defined({ summary }) }
  // No upper bound: with thinking between calls a budget may exceed max_tokens.
  const budget = required(thinking.budget_tokens, 'thinking.budget_tokens', 'a whole number', integer(1_024))
  return { ...defined({ effort, budget, summary }) }
}

const thinkingTypes = ['enabled', 'adaptive', 'disabled', 'between_tools'] as const

function readFormat(body: JsonObject): { request?: NeutralRequest['response_format']; extensions?: JsonObject } {
  const output = optional(body.output_config, 'output_config', object) ?? {}
  const at = output.format ? 'output_config.format' : 'output_format'
  const format = optional(output.format ?? body.output_format, at, object)
  const { effort: _effort, format: _format, ...others } = output
  const extensions = Object.keys(others).length > 0 ? { extensions: { output_config: others } } : {}
  if (!format) return extensions
  required(format.type, `${at}.type`, "'json_schema'", oneOf(['json_schema']))
  const schema = required(format.schema, `${at}.schema`, 'a JSON schema', object)
  return { request: { type: 'json_schema', name: 'output', schema, strict: true }, ...extensions }
}

/** The instructions of a body. Throws RouterError 400. */
function readSystem(value: Json | undefined): Part[] {
  if (value === undefined || value === null || value === '') return []
  return readContent(value, 'system', new Map())
}

const roles = oneOf(['user', 'assistant', 'system'])

/** The conversation of a body. Throws RouterError 400 that names the message. */
function readMessages(value: Json | undefined): Message[] {
  const given = required(value, 'messages', 'an array of messages', list)
  if (given.length === 0)
    throw new RouterError('invalid_request', "'messages' must not be empty.", { param: 'messages' })
  const names = new Map<string, string>()
  return given.map((item, index) => {
    const plain = plainMessage(item)
    if (plain) return plain
    const path = `messages[${index}]`
    const message = object(item, path)
    const role = required(message.role, `${path}.role`, "'user' or 'assistant'", roles)
    const parts = readContent(message.content, `${path}.content`, names)
    for (const part of parts) if (part.type === 'tool_call') names.set(part.id, part.name)
    return { role, parts }
  })
}

/** A message whose content is a text: read without the names that errors need. */
function plainMessage(item: Json): Message | undefined {
  if (!isObject(item) || typeof item.content !== 'string') return undefined
  const { role, content } = item
  if (role !== 'user' && role !== 'assistant' && role !== 'system') return undefined
  return { role, parts: [{ type: 'text', text: content }] }
}
