import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Face } from '../face.ts'
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
  if (Array.isArray(edited.input)) edited.input = edited.input.filter((item) => !isForeign(item))
  return edited
}

function isForeign(item: Json): boolean {
  return isObject(item) && isSealed(item.encrypted_content)
}
