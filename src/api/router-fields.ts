import type { JsonObject } from '../core/json.ts'
import { flag, object, optional } from './check.ts'
import { routingFields } from './routing-fields.ts'

/** Fields that the router alone reads, in every API: no provider gets them. */
export const routerFields: readonly string[] = ['requesty', ...routingFields]

/** Whether the router is asked to have the prompt cached where caching must be asked for. Throws RouterError 400. */
export function wantsCache(body: JsonObject): boolean {
  const settings = optional(body.requesty, 'requesty', object)
  return optional(settings?.auto_cache, 'requesty.auto_cache', flag) === true
}

/** The form in which a whole prompt is asked to be cached. */
export const wholePrompt = { type: 'ephemeral' }

/** A body without the fields of the router. */
export function withoutRouterFields(body: JsonObject, names = routerFields): JsonObject {
  if (!names.some((name) => name in body)) return body
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))
}
