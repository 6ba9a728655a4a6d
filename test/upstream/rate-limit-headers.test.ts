import { expect, test } from 'vitest'
import { exhaustedMs } from '../../src/upstream/rate-limit-headers.ts'

const now = Date.parse('2026-11-23T04:00:00Z')
const named = (kind: string, limit: string, remaining: string, reset: string) => ({
  limit: limit.replace('*', kind),
  remaining: remaining.replace('*', kind),
  reset: reset.replace('*', kind),
})
const provider = {
  rateLimits: [
    ...['requests', 'tokens'].map((kind) =>
      named(kind, 'x-ratelimit-limit-*', 'x-ratelimit-remaining-*', 'x-ratelimit-reset-*'),
    ),
    ...['requests', 'output-tokens'].map((kind) =>
      named(kind, 'anthropic-ratelimit-*-limit', 'anthropic-ratelimit-*-remaining', 'anthropic-ratelimit-*-reset'),
    ),
  ],
}
const x = (remaining: string, reset: string, kind = 'requests', limit = '100') => ({
  [`x-ratelimit-limit-${kind}`]: limit,
  [`x-ratelimit-remaining-${kind}`]: remaining,
  [`x-ratelimit-reset-${kind}`]: reset,
})
const anthropic = (remaining: string, reset: string, kind = 'requests') => ({
  [`anthropic-ratelimit-${kind}-remaining`]: remaining,
  [`anthropic-ratelimit-${kind}-reset`]: reset,
})

test.each([
  [x('0', '120ms'), 120],
  [x('0', '2m59.5s'), 179_500],
  [x('0', '1h2m', 'tokens'), 3_720_000],
  [x('0', '7.66'), 7_660],
  [{ ...x('0', '1s'), ...x('0', '6s', 'tokens') }, 6_000],
  [{ ...x('5', '9s'), ...x('0', '6s', 'tokens') }, 6_000],
  [anthropic('0', '2026-11-23T04:00:30Z'), 30_000],
  [anthropic('0', '2026-11-23T04:00:10Z', 'output-tokens'), 10_000],
  [x('0', '400h'), 86_400_000],
  [x('0', String(now / 1_000 + 40)), 40_000],
  [x('0', String(now + 50_000)), 50_000],
])('%j: nothing is left for %i ms', (headers, ms) => {
  expect(exhaustedMs(provider, { headers }, () => now)).toBe(ms)
})

test.each([
  [{}],
  [x('1', '120ms')],
  [x('0', '0s')],
  [x('0', 'soon')],
  [x('0', '1795406240')],
  [x('0', '1s', 'requests', '0')],
  [anthropic('0', '2026-11-23T03:59:00Z')],
  [{ 'x-ratelimit-remaining-requests': '0' }],
])('%j: something is left, or nobody knows', (headers) => {
  expect(exhaustedMs(provider, { headers }, () => now)).toBeUndefined()
})
