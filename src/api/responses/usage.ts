import type { JsonObject } from '../../core/json.ts'
import { cachedTokens, completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import { defined } from '../check.ts'

/** Usage in the totals of this API; `cost` in USD when it is known. */
export function writeUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const input = promptTokens(usage)
  const output = completionTokens(usage)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: cachedTokens(usage),
      cache_write_tokens: (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
    ...defined({ cost: costUsd }),
  }
}
