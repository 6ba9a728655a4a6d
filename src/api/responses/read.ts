import { RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { efforts, type NeutralRequest, type ResponseFormat, summaries } from '../../core/request.ts'
import {
  type Check,
  defined,
  fieldsOf,
  filledText,
  flag,
  integer,
  listOf,
  mapOf,
  number,
  object,
  oneOf,
  optional,
  refuse,
  required,
  text,
} from '../check.ts'
import { readPromptCache } from '../router-fields.ts'
import { unreadMembers } from '../unread-members.ts'
import { unknownFields } from '../wire-fields.ts'
import { knownNames } from './fields.ts'
import { knownMembers } from './known-members.ts'
import { readInput } from './messages.ts'
import { readTools } from './tools.ts'

/** A Responses body as a neutral request. Throws RouterError 400 that names the field. */
export function readRequest(body: unknown): NeutralRequest {
  if (!isObject(body)) {
    throw new RouterError('invalid_request', 'The body must be a JSON object with the fields model and input.')
  }
  if (optional(body.background, 'background', flag))
    refuse('background', 'false: responses are only produced synchronously', true)
  checkOthers(body)
  const offered = readTools(body)
  const { system, messages } = readInput(body.input, offered.names)
  if (body.input === '' || (messages.length === 0 && system.length === 0))
    refuse('input', 'an input that is not empty', body.input)
  const instructions = optional(body.instructions, 'instructions', text)
  const heading = [...(instructions ? [{ type: 'text' as const, text: instructions }] : []), ...system]
  const textFields = readText(body.text)
  const unknown = unknownFields(body, knownNames)
  // Truncation is disabled by default.
  if (unknown.truncation === 'disabled') delete unknown.truncation
  return {
    model: required(body.model, 'model', 'the name of a model', filledText),
    ...(heading.length > 0 && { system: heading }),
    messages,
    ...readPlain(body),
    ...defined({
      ...offered.fields,
      ...textFields,
      logprobs: readLogprobs(body),
      reasoning: readReasoning(body.reasoning),
      cache: readPromptCache(body),
      extensions: Object.keys(unknown).length > 0 ? unknown : undefined,
      unread: withUnread(unreadMembers(body, knownMembers), offered.unread),
    }),
    origin: { api: 'responses', body },
  }
}

function withUnread(members: readonly string[] | undefined, others: readonly string[]): readonly string[] | undefined {
  return others.length === 0 ? members : [...(members ?? []), ...others]
}

/** Fields with the same name and form in the neutral request. */
const plain = {
  max_output_tokens: integer(1),
  temperature: number(0, 2),
  top_p: number(0, 1),
  service_tier: text,
  user: text,
  safety_identifier: text,
  metadata: mapOf(text),
  moderation: object,
  store: flag,
  stream: flag,
} satisfies { [name in keyof NeutralRequest]?: Check<NeutralRequest[name]> }
const plainChecks = Object.entries<Check<unknown>>(plain)

function readPlain(body: JsonObject): Partial<NeutralRequest> {
  return fieldsOf(body, plainChecks)
}

/** Checks of fields that become extensions. */
const others: { readonly [name: string]: Check<unknown> } = {
  include: listOf(text),
  max_tool_calls: integer(1),
  truncation: oneOf(['auto', 'disabled']),
  stream_options: object,
  prompt: object,
  conversation: (value, path) => (typeof value === 'string' ? value : object(value, path)),
  context_management: listOf(object),
  previous_response_id: filledText,
}

function checkOthers(body: JsonObject): void {
  for (const [name, check] of Object.entries(others)) optional(body[name], name, check)
  if ((body.conversation ?? null) !== null && (body.previous_response_id ?? null) !== null) {
    const message = "'conversation' and 'previous_response_id' cannot be used together."
    throw new RouterError('invalid_request', message, { param: 'conversation' })
  }
}

function readText(value: Json | undefined): Pick<NeutralRequest, 'response_format' | 'verbosity'> {
  const settings = optional(value, 'text', object)
  if (!settings) return {}
  const format = optional(settings.format, 'text.format', object)
  return defined({
    response_format: format && readFormat(format),
    verbosity: optional(settings.verbosity, 'text.verbosity', text),
  })
}

function readFormat(format: JsonObject): ResponseFormat {
  const path = 'text.format'
  const types = ['text', 'json_object', 'json_schema'] as const
  const type = required(format.type, `${path}.type`, "'text', 'json_object' or 'json_schema'", oneOf(types))
  if (type === 'text') return { type }
  if (type === 'json_object') return { type: 'json' }
  const rest = {
    description: optional(format.description, `${path}.description`, text),
    schema: required(format.schema, `${path}.schema`, 'a JSON schema', object),
    strict: optional(format.strict, `${path}.strict`, flag),
  }
  return { type, name: required(format.name, `${path}.name`, 'a name for the format', filledText), ...defined(rest) }
}

function readReasoning(value: Json | undefined): NeutralRequest['reasoning'] {
  const reasoning = optional(value, 'reasoning', object)
  if (!reasoning) return undefined
  const named = optional(reasoning.summary, 'reasoning.summary', oneOf(summaries))
  const read = defined({
    effort: optional(reasoning.effort, 'reasoning.effort', oneOf(efforts)),
    summary: named ?? optional(reasoning.generate_summary, 'reasoning.generate_summary', oneOf(summaries)),
  })
  return Object.keys(read).length > 0 ? read : undefined
}

function readLogprobs(body: JsonObject): { top?: number } | undefined {
  const include = optional(body.include, 'include', listOf(text)) ?? []
  const top = optional(body.top_logprobs, 'top_logprobs', integer(0, 20))
  const isRequested = include.includes('message.output_text.logprobs') || (top ?? 0) > 0
  return isRequested ? defined({ top }) : undefined
}
