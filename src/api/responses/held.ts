import { isObject, type Json, type JsonObject } from '../../core/json.ts'

/** The containers in which a response ran code or commands. */
export function heldIds({ output }: JsonObject): string[] {
  const items: Json[] = Array.isArray(output) ? output : []
  const ids = items.filter(isObject).flatMap(({ container_id, environment }) => {
    return [container_id, isObject(environment) ? environment.container_id : undefined]
  })
  return [...new Set(ids.filter((id) => typeof id === 'string'))]
}
