import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { finishedArguments } from '../../core/tool-arguments.ts'
import type { FinishOf, ReplyFacts } from '../client-api.ts'
import { withoutFields, withoutIdleChoice } from '../drop.ts'
import { type Nested, nestedFields, wireFields, wireNames } from './fields.ts'
import { editEnding } from './finish.ts'
import { isForeignDetail } from './foreign-parts.ts'
import { writeUsage } from './usage.ts'

/**
 * The client's body for a provider of this format: its model id, usage in streams, and without the dropped fields.
 * A dropped name that is no neutral field is a wire name: it is removed from the body, its messages, parts and tools.
 */
export function editRequest(
  body: JsonObject,
  { model, stream, dropped }: { model: string; stream: boolean; dropped: readonly string[] },
): JsonObject {
  const others = dropped.filter((field) => !Object.hasOwn(nestedFields, field))
  const edited: JsonObject = { ...withoutFields(body, others, wireNames), model }
  const unwanted = dropped.flatMap(unwantedBy)
  for (const { name, option: [at = '', member = ''] = [] } of unwanted) {
    delete edited[name]
    const options = edited[at]
    if (isObject(options)) edited[at] = without(options, [member])
  }
  if (Array.isArray(edited.messages)) edited.messages = edited.messages.map((item) => editMessage(item, unwanted))
  if (Array.isArray(edited.tools) && dropped.length > 0) edited.tools = editParts(edited.tools, unwanted)
  return withStreaming(withoutIdleChoice(edited, body), stream)
}

/** The provider's own body with the model that served, the cost, and the members that the API requires. */
export function editReply(body: JsonObject, { model, usage, costUsd, finishOf }: ReplyFacts): JsonObject {
  const counted = isObject(body.usage) ? body.usage : writeUsage(usage, undefined)
  return {
    object: 'chat.completion',
    ...without(body, body.system_fingerprint === null ? ['system_fingerprint'] : []),
    model,
    ...(Array.isArray(body.choices) && {
      choices: body.choices.map((choice, index) => completeChoice(choice, index, finishOf)),
    }),
    usage: costUsd === undefined ? counted : { ...counted, cost: costUsd },
  }
}

/** The provider must report the usage of a stream whether or not the client asked for it. */
function withStreaming(edited: JsonObject, stream: boolean): JsonObject {
  if (!stream) {
    delete edited.stream_options
    if (edited.stream) edited.stream = false
    return edited
  }
  const options = isObject(edited.stream_options) ? edited.stream_options : {}
  return { ...edited, stream: true, stream_options: { ...options, include_usage: true } }
}

/** The members to remove below the top level for a dropped field. */
function unwantedBy(field: string): Nested[] {
  const known = nestedFields[field] ?? (field === 'cache' ? nestedFields['parts.cache'] : undefined)
  if (known) return [known]
  return wireFields[field] ? [] : [{ name: field, messages: [field], parts: [field] }]
}

/** A message without the unwanted members, and without parts that this router wrote into it for other providers. */
function editMessage(message: Json, unwanted: readonly Nested[]): Json {
  if (!isObject(message)) return message
  const own = withoutForeignParts(message)
  if (unwanted.length === 0) return own
  // The name of a function result identifies the call that it answers.
  const names = unwanted.flatMap(({ messages = [] }) => messages)
  const edited = without(own, own.role === 'function' ? names.filter((name) => name !== 'name') : names)
  const { content, tool_calls } = edited
  if (Array.isArray(content)) edited.content = content.length > 0 ? filled(editParts(content, unwanted)) : content
  if (Array.isArray(tool_calls)) edited.tool_calls = editParts(tool_calls, unwanted)
  return edited
}

/** Lists of parts must not be empty: one that has lost all its parts becomes an empty text. */
function filled(parts: Json[]): Json {
  return parts.length > 0 ? parts : ''
}

/** The provider would take signatures of other providers for its own, or refuse fields that it does not know. */
function withoutForeignParts(message: JsonObject): JsonObject {
  const details = Array.isArray(message.reasoning_details) ? message.reasoning_details : []
  if (message.replay_parts === undefined && !details.some(isForeignDetail)) return message
  const own = details.filter((detail) => !isForeignDetail(detail))
  const others = without(message, ['replay_parts', 'reasoning_details'])
  return own.length > 0 ? { ...others, reasoning_details: own } : others
}

/** Parts, calls or tools without unwanted types, members, and members of the object that bears their type's name. */
function editParts(parts: readonly Json[], unwanted: readonly Nested[]): Json[] {
  const names = unwanted.flatMap(({ parts = [] }) => parts)
  const types = new Set<Json | undefined>(unwanted.flatMap(({ types = [] }) => types))
  return parts
    .filter((part) => !isObject(part) || !types.has(part.type))
    .map((part) => (isObject(part) ? editPart(part, names) : part))
}

function editPart(part: JsonObject, names: readonly string[]): JsonObject {
  const edited = without(part, names)
  for (const inner of [String(part.type), 'parameters']) {
    const members = edited[inner]
    if (isObject(members)) edited[inner] = without(members, names)
  }
  return edited
}

function without(members: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))
}

/** A choice with the members that the API requires, and without those that it omits instead of setting them to null. */
function completeChoice(choice: Json, index: number, finishOf: FinishOf | undefined): Json {
  if (!isObject(choice)) return choice
  const given = isObject(choice.message) ? choice.message : {}
  const message: JsonObject = { role: 'assistant', content: null, refusal: null, ...given }
  for (const name of ['tool_calls', 'function_call', 'annotations']) if (message[name] === null) delete message[name]
  const called = isFilled(message.tool_calls) ? 'tool_calls' : message.function_call ? 'function_call' : undefined
  const complete: JsonObject = {
    index,
    logprobs: null,
    ...choice,
    ...editEnding(choice.finish_reason, called, finishOf),
  }
  if (Array.isArray(message.tool_calls)) {
    const isCut = complete.finish_reason === 'length'
    message.tool_calls = message.tool_calls.map((call) => completeCall(call, isCut))
  }
  return { ...complete, message }
}

function isFilled(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length > 0
}

function completeCall(call: Json, isCut: boolean): Json {
  if (!isObject(call) || !isObject(call.function)) return call
  const { arguments: given } = call.function
  const finished = given ? given : finishedArguments('', isCut)
  return { ...call, type: call.type ?? 'function', function: { ...call.function, arguments: finished } }
}
