import type { JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import { defined, object, optional, text } from './check.ts'
import { wantsCache, wholePrompt } from './router-fields.ts'

/** The prompt-cache fields that the Chat Completions and Responses APIs share; `wish` asks for the same. Throws RouterError 400. */
export function readPromptCache(body: JsonObject, wish?: JsonObject): NeutralRequest['cache'] {
  const cache = defined({
    key: optional(body.prompt_cache_key, 'prompt_cache_key', text),
    retention: optional(body.prompt_cache_retention, 'prompt_cache_retention', text),
    options:
      optional(body.prompt_cache_options, 'prompt_cache_options', object) ??
      wish ??
      (wantsCache(body) ? wholePrompt : undefined),
  })
  return Object.keys(cache).length > 0 ? cache : undefined
}
