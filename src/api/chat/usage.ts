import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import { cachedTokens, completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import { defined } from '../check.ts'

/** Usage in the totals of this API, summed from the disjoint classes; `cost` in USD when it is known. */
export function writeUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const prompt = promptTokens(usage)
  const completion = completionTokens(usage)
  const writes = (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0)
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: cachedTokens(usage),
      cache_write_tokens: writes,
      audio_tokens: (usage.input_audio ?? 0) + (usage.cache_read_audio ?? 0),
      ...defined({ image_tokens: usage.input_image }),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning ?? 0,
      audio_tokens: usage.output_audio ?? 0,
      ...defined({ image_tokens: usage.output_image }),
    },
    ...(usage.searches !== undefined && { server_tool_use_details: { web_search_requests: usage.searches } }),
    ...defined({ cost: costUsd }),
  }
}

/** A provider's usage as clients get it; counts that cannot be are replaced by those that are paid. */
export function shownUsage(reported: JsonObject, usage: Usage): JsonObject {
  if (canBe(reported, usage)) return reported
  const counts = writeUsage(usage, undefined)
  const details = (name: string) => ({ [name]: { ...membersOf(reported[name]), ...membersOf(counts[name]) } })
  return { ...reported, ...counts, ...details('prompt_tokens_details'), ...details('completion_tokens_details') }
}

/** Whether counts can be as a provider of this format reported them: none is negative, no part larger than its whole. */
function canBe(reported: JsonObject, { corrected }: Usage): boolean {
  const { prompt_tokens: prompt, completion_tokens: completion } = reported
  const cached = membersOf(reported.prompt_tokens_details).cached_tokens
  const reasoning = membersOf(reported.completion_tokens_details).reasoning_tokens
  if (corrected || isLarger(cached, prompt) || isLarger(reasoning, completion)) return false
  return ![prompt, completion, cached, reasoning].some((count) => typeof count === 'number' && count < 0)
}

function membersOf(details: Json | undefined): JsonObject {
  return isObject(details) ? details : {}
}

function isLarger(part: Json | undefined, whole: Json | undefined): boolean {
  return typeof part === 'number' && typeof whole === 'number' && part > whole
}
