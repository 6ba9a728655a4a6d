import type { JsonObject } from '../../core/json.ts'
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
