/** The most requests and tokens per minute, and calls at once; null is no limit. */
export type RateLimits = {
  requestsPerMinute: number | null
  tokensPerMinute: number | null
  concurrentCalls: number | null
}
