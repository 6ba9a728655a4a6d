import { isObject, type Json, type JsonObject } from './json.ts'

/** Log probabilities come as an object of lists, to be concatenated. */
export function joinLogprobs(earlier: Json | undefined, later: Json): Json {
  if (!isObject(earlier) || !isObject(later)) return later
  const joined: JsonObject = { ...earlier }
  for (const [name, list] of Object.entries(later)) {
    const before = joined[name]
    joined[name] = Array.isArray(before) && Array.isArray(list) ? [...before, ...list] : (list ?? before)
  }
  return joined
}
