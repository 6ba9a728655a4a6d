import type { JsonObject } from '../../core/json.ts'
import { cachedTokens, completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import { defined } from '../check.ts'

/** Usage in the counts of this API: input without cache reads and writes; `cost` in USD when it is known. */
export function writeUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const cached = cachedTokens(usage)
  const { cache_write_5m = 0, cache_write_1h = 0, reasoning, searches } = usage
  return {
    input_tokens: promptTokens(usage) - cached - cache_write_5m - cache_write_1h,
    cache_creation_input_tokens: cache_write_5m + cache_write_1h,
    cache_read_input_tokens: cached,
    cache_creation: { ephemeral_5m_input_tokens: cache_write_5m, ephemeral_1h_input_tokens: cache_write_1h },
    output_tokens: completionTokens(usage),
    output_tokens_details: reasoning === undefined ? null : { thinking_tokens: reasoning },
    server_tool_use: searches ? { web_search_requests: searches, web_fetch_requests: 0 } : null,
    inference_geo: null,
    service_tier: null,
    speed: null,
    ...defined({ cost: costUsd }),
  }
}

/** The counts at the end of a stream; the lifetimes of cache writes are given only where there are writes. */
export function deltaUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const {
    inference_geo: _geo,
    service_tier: _tier,
    speed: _speed,
    cache_creation,
    ...counts
  } = writeUsage(usage, costUsd)
  return counts.cache_creation_input_tokens === 0 ? counts : { ...counts, cache_creation }
}
