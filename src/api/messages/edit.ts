import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Face, ReplyFacts } from '../face.ts'
import { isSealed } from '../seal.ts'
import { wireNames } from './fields.ts'

/**
 * The client's body for a provider of this format: its model id, without dropped fields, and without what this router
 * sealed for other makers. Everything else, known or not, stays as it came.
 */
export const editRequest: Face['editRequest'] = (body, { model, stream, dropped }) => {
  const edited: JsonObject = { ...body, model }
  if (stream) edited.stream = true
  for (const field of dropped) for (const name of wireNames(field)) delete edited[name]
  if (Array.isArray(edited.messages)) edited.messages = edited.messages.map(withoutForeign)
  return edited
}

/** The provider's message with the model that served and the cost. */
export function editReply(body: JsonObject, { model, costUsd }: ReplyFacts): JsonObject {
  const usage = isObject(body.usage) ? body.usage : {}
  return { ...body, model, usage: costUsd === undefined ? usage : { ...usage, cost: costUsd } }
}

function withoutForeign(message: Json): Json {
  if (!isObject(message) || !Array.isArray(message.content)) return message
  if (!message.content.some(isForeign)) return message
  return { ...message, content: message.content.filter((block) => !isForeign(block)) }
}

function isForeign(block: Json): boolean {
  return isObject(block) && (isSealed(block.signature) || isSealed(block.data))
}
