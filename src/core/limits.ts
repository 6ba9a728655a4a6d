/** How much may be asked of the router in a minute, and at once; null does not limit. */
export type RateLimits = {
  requestsPerMinute: number | null
  tokensPerMinute: number | null
  concurrentCalls: number | null
}
