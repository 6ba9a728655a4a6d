import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { ClientApi, ReplyFacts } from '../client-api.ts'
import { isForeignSignature } from '../foreign-signature.ts'
import { wireNames } from './fields.ts'
import { editEnding } from './finish.ts'

/**
 * The client's body for a provider of this format: its model id, without dropped fields, and without what this router
 * sealed for other makers. Everything else, known or not, stays as it came.
 */
export const editRequest: ClientApi['editRequest'] = (body, { model, stream, dropped }) => {
  const edited: JsonObject = { ...body, model }
  if (stream) edited.stream = true
  for (const field of dropped) {
    if (field === 'web_search' && Array.isArray(body.tools)) edited.tools = body.tools.filter((tool) => !isSearch(tool))
    else for (const name of wireNames(field)) remove(edited, name)
  }
  if (Array.isArray(edited.input)) edited.input = edited.input.filter((item) => !isForeign(item))
  return edited
}

/** The provider's response with the model that served, the cost, and an ending that the API defines. */
export function editReply(body: JsonObject, { model, costUsd, finishOf }: ReplyFacts): JsonObject {
  const edited = { ...body, model, ...editEnding(body, finishOf) }
  return isObject(body.usage) && costUsd !== undefined ? { ...edited, usage: { ...body.usage, cost: costUsd } } : edited
}

/** Takes out a member, or one of a member; the client's own body is not changed. */
function remove(edited: JsonObject, name: string): void {
  const [first = '', second] = name.split('.')
  const inner = edited[first]
  if (second === undefined) delete edited[first]
  else if (isObject(inner)) edited[first] = without(inner, second)
}

function without(members: JsonObject, name: string): JsonObject {
  const { [name]: _gone, ...rest } = members
  return rest
}

function isSearch(tool: Json): boolean {
  return isObject(tool) && typeof tool.type === 'string' && tool.type.startsWith('web_search')
}

function isForeign(item: Json): boolean {
  return isObject(item) && isForeignSignature(item.encrypted_content)
}
