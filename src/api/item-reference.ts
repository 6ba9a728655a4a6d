import { isObject, type Json, type JsonObject } from '../core/json.ts'

/** Whether an item stands for one that a provider of the Responses format holds. */
export function isReference(item: Json | undefined): item is JsonObject {
  if (!isObject(item)) return false
  return item.type === 'item_reference' || (typeof item.id === 'string' && Object.keys(item).length === 1)
}
