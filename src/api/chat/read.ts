import { RouterError } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { type Effort, efforts, type NeutralRequest, type ResponseFormat, summaries } from '../../core/request.ts'
import {
  type Check,
  defined,
  fieldsOf,
  filledText,
  flag,
  integer,
  list,
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
import { readMessages } from './messages.ts'
import { readTools } from './tools.ts'

/** A Chat Completions body as a neutral request. Throws RouterError 400 that names the field. */
export function readRequest(body: unknown): NeutralRequest {
  if (!isObject(body)) {
    throw new RouterError('invalid_request', 'The body must be a JSON object with the fields model and messages.')
  }
  const { extensions, ...reasoning } = readReasoning(body)
  const format = readResponseFormat(body)
  const unknown = { ...unknownFields(body, knownNames), ...extensions, ...format.extensions }
  return {
    model: required(body.model, 'model', 'the name of a model', filledText),
    ...readMessages(body.messages),
    ...readPlain(body),
    ...defined({
      ...readTools(body),
      max_output_tokens: readLength(body),
      stop: readStop(body.stop),
      logprobs: readLogprobs(body),
      response_format: format.request,
      reasoning: reasoning.request,
      cache: readPromptCache(body, optional(body.cache_control, 'cache_control', object)),
      extensions: Object.keys(unknown).length > 0 ? unknown : undefined,
      unread: unreadMembers(body, knownMembers),
    }),
    origin: { api: 'chat', body },
  }
}

const atLeastOne = integer(1)

/** Fields with the same name and form in the neutral request. */
const plain = {
  temperature: number(0, 2),
  top_p: number(0, 1),
  top_k: integer(0),
  seed: integer(),
  frequency_penalty: number(-2, 2),
  presence_penalty: number(-2, 2),
  logit_bias: mapOf(number(-100, 100)),
  n: integer(1, 128),
  parallel_tool_calls: flag,
  modalities: listOf(filledText),
  audio: audioOutput,
  prediction,
  service_tier: text,
  verbosity: text,
  user: text,
  safety_identifier: text,
  metadata: mapOf(text),
  store: flag,
  moderation: object,
  stream: flag,
} satisfies { [name in keyof NeutralRequest]?: Check<NeutralRequest[name]> }
const plainChecks = Object.entries<Check<unknown>>(plain)

function readPlain(body: JsonObject): Partial<NeutralRequest> {
  optional(body.stream_options, 'stream_options', streamOptions)
  optional(optional(body.usage, 'usage', object)?.include, 'usage.include', flag)
  return fieldsOf(body, plainChecks)
}

function audioOutput(value: Json, path: string): JsonObject {
  const audio = object(value, path)
  required(audio.format, `${path}.format`, 'the name of an audio format', filledText)
  required(audio.voice, `${path}.voice`, 'the name of a voice or {id}', (voice, at) => {
    return isObject(voice) ? required(voice.id, `${at}.id`, 'the id of a voice', filledText) : filledText(voice, at)
  })
  return audio
}

function prediction(value: Json, path: string): JsonObject {
  const predicted = object(value, path)
  required(predicted.type, `${path}.type`, "'content'", oneOf(['content']))
  required(predicted.content, `${path}.content`, 'a string or an array of text parts', (content, at) => {
    return typeof content === 'string' ? content : list(content, at)
  })
  return predicted
}

function streamOptions(value: Json, path: string): JsonObject {
  const options = object(value, path)
  optional(options.include_usage, `${path}.include_usage`, flag)
  optional(options.include_obfuscation, `${path}.include_obfuscation`, flag)
  return options
}

/** The length under its present and its former name; of both, the larger one: providers differ in which they keep. */
function readLength(body: JsonObject): number | undefined {
  const present = optional(body.max_completion_tokens, 'max_completion_tokens', atLeastOne)
  const former = optional(body.max_tokens, 'max_tokens', atLeastOne)
  return present === undefined || former === undefined ? (present ?? former) : Math.max(present, former)
}

function readStop(value: Json | undefined): string[] | undefined {
  const stop = optional(value, 'stop', (given, path) => {
    return typeof given === 'string' ? [given] : listOf(text)(given, path)
  })
  return stop?.length === 0 ? undefined : stop
}

function readLogprobs(body: JsonObject): { top?: number } | undefined {
  const isRequested = optional(body.logprobs, 'logprobs', flag)
  const top = optional(body.top_logprobs, 'top_logprobs', integer(0, 20))
  return isRequested ? defined({ top }) : undefined
}

function readResponseFormat(body: JsonObject): { request?: ResponseFormat; extensions?: JsonObject } {
  const path = 'response_format'
  const format = optional(body.response_format, path, object)
  if (!format) return {}
  const type = required(format.type, `${path}.type`, "'text', 'json_object' or 'json_schema'", text)
  if (type === 'text') return { request: { type } }
  if (type === 'json_object') return { request: { type: 'json' } }
  // Formats that only single providers have, such as grammars.
  if (type !== 'json_schema') return { extensions: { response_format: format } }
  const at = `${path}.json_schema`
  const schema = required(format.json_schema, at, 'an object with a name and a schema', object)
  const name = required(schema.name, `${at}.name`, 'a name for the format', filledText)
  const rest = {
    description: optional(schema.description, `${at}.description`, text),
    schema: optional(schema.schema, `${at}.schema`, object),
    strict: optional(schema.strict, `${at}.strict`, flag),
  }
  return { request: { type, name, ...defined(rest) } }
}

type Reasoning = NonNullable<NeutralRequest['reasoning']>

/**
 * Reads how much to reason, under all names that clients use for it: the flat `reasoning_effort`, a level or a number of tokens, and two
 * objects of gateways and providers, `reasoning` and `thinking`. Throws RouterError 400.
 */
function readReasoning(body: JsonObject): { request?: Reasoning; extensions?: JsonObject } {
  if ((body.reasoning ?? body.thinking ?? body.reasoning_effort ?? null) === null) return {}
  const reasoning = optional(body.reasoning, 'reasoning', object) ?? {}
  const thinking = optional(body.thinking, 'thinking', object) ?? {}
  const { effort: nested, max_tokens, enabled, summary, ...others } = reasoning
  const named =
    optional(body.reasoning_effort, 'reasoning_effort', readEffort) ?? optional(nested, 'reasoning.effort', readEffort)
  const budget =
    optional(max_tokens, 'reasoning.max_tokens', integer(1)) ??
    optional(thinking.budget_tokens, 'thinking.budget_tokens', integer(1)) ??
    named?.budget
  const isEnabled = optional(enabled, 'reasoning.enabled', flag) ?? isThinkingEnabled(thinking.type)
  const request = defined({
    effort: named?.effort ?? effortOf(isEnabled, budget !== undefined || named !== undefined),
    budget,
    summary: optional(summary, 'reasoning.summary', oneOf(summaries)),
  })
  const extensions = defined({
    reasoning_effort: named?.unknown,
    reasoning: Object.keys(others).length > 0 ? others : undefined,
  })
  if (Object.keys(request).length === 0) return { extensions }
  const isVisible = isObject(body.reasoning) ? others.exclude !== true : body.include_reasoning === true
  return { request: { ...request, ...(isVisible && { visible: true }) }, extensions }
}

/** A level, a number of tokens also as text, or a level that only single providers have (`default`). */
function readEffort(value: Json, path: string): { effort?: Effort; budget?: number; unknown?: string } {
  const tokens = typeof value === 'string' && /^[0-9]+$/.test(value) ? Number(value) : value
  if (typeof tokens === 'number') {
    const budget = integer(0, Number.MAX_SAFE_INTEGER)(tokens, path)
    return budget === 0 ? { effort: 'none' } : { budget }
  }
  if (typeof value !== 'string') return refuse(path, 'a level or a number of tokens', value)
  // As little as the model can do with.
  if (value === 'min') return { effort: 'none' }
  const effort = efforts.find((known) => known === value)
  return effort ? { effort } : { unknown: value }
}

function isThinkingEnabled(type: Json | undefined): boolean | undefined {
  if (type === 'disabled') return false
  return type === 'enabled' || type === 'adaptive' ? true : undefined
}

/** Reasoning that is only switched on has medium effort, unless something else sets how much. */
function effortOf(isEnabled: boolean | undefined, isSet: boolean): Effort | undefined {
  if (isEnabled === false) return 'none'
  return isEnabled && !isSet ? 'medium' : undefined
}
