import { isObject, type Json, type JsonObject } from './json.ts'

/**
 * Log probabilities come as an object of lists, to be concatenated. The earlier ones, which are a result of this function,
 * grow in place: a copy of them for each event would cost the square of their number.
 */
export function joinLogprobs(earlier: Json | undefined, later: Json): Json {
  if (!isObject(later)) return later
  const joined: JsonObject = isObject(earlier) ? earlier : {}
  for (const [name, list] of Object.entries(later)) {
    const before = joined[name]
    if (!Array.isArray(list)) joined[name] = list ?? before
    else if (Array.isArray(before)) for (const one of list) before.push(one)
    else joined[name] = [...list]
  }
  return joined
}
