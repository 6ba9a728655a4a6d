import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Target } from '../target.ts'

/**
 * The output limit in the body for a target, in tokens: the largest where there are several, the model's own where there is
 * none. Undefined when the manifest does not say where a body has it.
 */
export function sentLength({ provider, entry }: Target, body: JsonObject): number | undefined {
  const paths = provider.chat?.outputLimits
  if (!paths) return undefined
  const own = entry?.max_output_tokens ?? entry?.context_window ?? 0
  let most = -1
  for (const path of paths) {
    const limit = memberAt(body, path)
    if (typeof limit === 'number' && limit > most) most = limit
  }
  return most < 0 ? own : Math.min(most, own || most)
}

function memberAt(body: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = body
  for (const name of path) value = isObject(value) ? value[name] : undefined
  return value
}
