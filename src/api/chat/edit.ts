import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { ReplyFacts } from '../face.ts'
import { isCarried } from './carried.ts'
import { messageFields, wireFields, wireNames } from './fields.ts'
import { isWebSearch } from './tools.ts'
import { writeUsage } from './usage.ts'

/**
 * The client's body for a provider of this format: its model id, usage in streams, and without the dropped fields.
 * A dropped name that is no neutral field is a wire name: it goes from the body, its messages, parts and calls.
 */
export function editRequest(
  body: JsonObject,
  { model, stream, dropped }: { model: string; stream: boolean; dropped: readonly string[] },
): JsonObject {
  const edited: JsonObject = { ...body, model }
  for (const name of dropped.flatMap(wireNames)) delete edited[name]
  if (dropped.includes('web_search')) edited.tools = withoutWebSearch(edited.tools)
  if (Array.isArray(edited.tools) && edited.tools.length === 0) delete edited.tools
  const unwanted = dropped.flatMap((field) => messageFields[field] ?? (wireFields[field] ? [] : [field]))
  if (Array.isArray(body.messages)) edited.messages = body.messages.map((message) => editMessage(message, unwanted))
  if (Array.isArray(edited.tools)) edited.tools = edited.tools.map((tool) => editPart(tool, unwanted))
  return withStreaming(edited, stream)
}

/** The provider's own body with the model that served and the cost; what the API promises and the provider left out is null. */
export function editReply(body: JsonObject, { model, usage, costUsd }: ReplyFacts): JsonObject {
  const counted = isObject(body.usage) ? body.usage : writeUsage(usage, undefined)
  return {
    object: 'chat.completion',
    ...body,
    model,
    ...(Array.isArray(body.choices) && { choices: body.choices.map(completeChoice) }),
    usage: costUsd === undefined ? counted : { ...counted, cost: costUsd },
  }
}

/** The provider must count a stream whether or not the client wants to see it. */
function withStreaming(edited: JsonObject, stream: boolean): JsonObject {
  if (!stream) {
    delete edited.stream_options
    if (edited.stream) edited.stream = false
    return edited
  }
  const options = isObject(edited.stream_options) ? edited.stream_options : {}
  return { ...edited, stream: true, stream_options: { ...options, include_usage: true } }
}

function withoutWebSearch(tools: Json | undefined): Json | undefined {
  return Array.isArray(tools) ? tools.filter((tool) => !isObject(tool) || !isWebSearch(tool.type)) : tools
}

/** A message without the unwanted members, and without what we once wrote into it for other makers. */
function editMessage(message: Json, unwanted: readonly string[]): Json {
  if (!isObject(message)) return message
  const own = withoutCarried(message)
  if (unwanted.length === 0) return own
  // The name of a function's result says which call it answers.
  const names = own.role === 'function' ? unwanted.filter((name) => name !== 'name') : unwanted
  const { content, tool_calls } = own
  const edited = without(own, names)
  if (Array.isArray(content)) edited.content = content.map((part) => editPart(part, names))
  if (Array.isArray(tool_calls)) edited.tool_calls = tool_calls.map((call) => editPart(call, names))
  return edited
}

/** This provider would take the seals of others for its own, or refuse fields it does not know. */
function withoutCarried(message: JsonObject): JsonObject {
  const { replay_parts, reasoning_details: details, ...others } = message
  const carried = Array.isArray(details) && details.some(isCarried)
  if (!carried && replay_parts === undefined) return message
  const own = Array.isArray(details) ? details.filter((detail) => !isCarried(detail)) : []
  return own.length > 0 ? { ...others, reasoning_details: own } : others
}

function editPart(part: Json, names: readonly string[]): Json {
  if (!isObject(part)) return part
  const edited = without(part, names)
  if (isObject(edited.image_url)) edited.image_url = without(edited.image_url, names)
  return edited
}

function without(members: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))
}

function completeChoice(choice: Json): Json {
  if (!isObject(choice) || !isObject(choice.message)) return choice
  const { tool_calls } = choice.message
  const message: JsonObject = { role: 'assistant', content: null, refusal: null, ...choice.message }
  if (Array.isArray(tool_calls)) message.tool_calls = tool_calls.map(completeCall)
  return { logprobs: null, ...choice, message }
}

function completeCall(call: Json): Json {
  return isObject(call) && call.type === undefined ? { type: 'function', ...call } : call
}
