import { isObject, type Json, type JsonObject } from '../../core/json.ts'

/** A message of the assistant whose refusals are text, for servers that know no others. */
export function withTextRefusals(message: JsonObject): JsonObject {
  if (message.role !== 'assistant') return message
  const { refusal, content, ...others } = message
  const parts = Array.isArray(content) && content.some(isRefusal) ? content.map(asText) : content
  if (typeof refusal !== 'string' || refusal === '')
    return parts === content ? message : { ...message, content: parts as Json }
  return {
    ...others,
    content: Array.isArray(parts) ? [...parts, { type: 'text', text: refusal }] : textOf(parts) + refusal,
  }
}

function isRefusal(part: Json): part is JsonObject & { refusal: string } {
  return isObject(part) && part.type === 'refusal' && typeof part.refusal === 'string'
}

function asText(part: Json): Json {
  return isRefusal(part) ? { type: 'text', text: part.refusal } : part
}

function textOf(content: Json | undefined): string {
  return typeof content === 'string' ? content : ''
}
