import { mapJson, mapJsonText } from './json-texts.ts'
import type { Chat, JsonValue, OtherRequest, Part } from './types.ts'

type Change = (text: string) => string

/** Returns a conversation with other texts in it, which are changed in their order. */
export function mapChat(chat: Chat, change: Change): Chat {
  const { system, prediction } = chat
  return {
    ...chat,
    ...(system && { system: mapParts(system, change) }),
    messages: chat.messages.map((message) => ({ ...message, parts: mapParts(message.parts, change) })),
    ...(prediction && { prediction: mapJson(prediction, change) as typeof prediction }),
  }
}

export function mapParts(parts: readonly Part[], change: Change): Part[] {
  return parts.map((part) => mapPart(part, change))
}

/** Returns a part with other texts in it. Arguments of calls are JSON: their strings are changed, and numbers may become strings. */
export function mapPart(part: Part, change: Change): Part {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { ...part, text: change(part.text) }
    case 'reasoning':
      return {
        ...part,
        ...(part.text !== undefined && { text: change(part.text) }),
        ...(part.summary !== undefined && { summary: change(part.summary) }),
      }
    case 'tool_call':
      return {
        ...part,
        arguments: part.kind === 'custom' ? change(part.arguments) : mapJsonText(part.arguments, change),
      }
    case 'tool_result':
      return { ...part, parts: mapParts(part.parts, change) }
    case 'search':
      return part.query === undefined ? part : { ...part, query: change(part.query) }
    default:
      return part
  }
}

/** Returns a request for another operation with other texts in the members that are read by a model. */
export function mapOther(request: OtherRequest, change: Change): OtherRequest {
  const fields = { ...request.fields }
  for (const name of textMembers[request.operation] ?? []) {
    const value = fields[name]
    if (value !== undefined) fields[name] = mapStrings(value, change)
  }
  return { ...request, fields }
}

const textMembers: { readonly [operation: string]: readonly string[] } = {
  embed: ['input'],
  complete: ['prompt', 'suffix'],
  rerank: ['query', 'documents'],
  moderate: ['input'],
}

/** Changes the strings of a value. Numbers are tokens there, and names of members the API's; images are data. */
function mapStrings(value: JsonValue, change: Change): JsonValue {
  if (typeof value === 'string') return value.startsWith('data:') ? value : change(value)
  if (Array.isArray(value)) return value.map((one) => mapStrings(one, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapStrings(one ?? null, change)]))
}
