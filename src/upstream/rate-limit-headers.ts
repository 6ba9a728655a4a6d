type Headers = { readonly [name: string]: string | string[] | undefined }

/** The limits that providers tell of in headers: how much there is, how much is left, and when there is more again. */
const told: readonly { limit: string; remaining: string; reset: string }[] = [
  ...['requests', 'tokens'].map((kind) => ({
    limit: `x-ratelimit-limit-${kind}`,
    remaining: `x-ratelimit-remaining-${kind}`,
    reset: `x-ratelimit-reset-${kind}`,
  })),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map((kind) => ({
    limit: `anthropic-ratelimit-${kind}-limit`,
    remaining: `anthropic-ratelimit-${kind}-remaining`,
    reset: `anthropic-ratelimit-${kind}-reset`,
  })),
]

/** For how long nothing is left, in milliseconds; undefined where something is. `now` is Unix milliseconds. */
export function exhaustedMs(headers: Headers, now: () => number = Date.now): number | undefined {
  let longest: number | undefined
  for (const { limit, remaining, reset } of told) {
    // Who has no limit says 0 of 0.
    if (headers[remaining] !== '0' || headers[limit] === '0') continue
    const ms = waitIn(headers[reset], now)
    if (ms !== undefined && ms > 0) longest = Math.min(mostMs, Math.max(ms, longest ?? 0))
  }
  return longest
}

/** `2m59.5s`, seconds, or a time. Milliseconds. */
function waitIn(text: string | string[] | undefined, now: () => number): number | undefined {
  if (typeof text !== 'string') return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) < mostSeconds ? Number(text) * 1_000 : undefined
  if (/^(\d+(\.\d+)?(ms|d|h|m|s))+$/.test(text)) {
    const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|d|h|m|s)/g)]
    return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitMs[unit] ?? 0), 0)
  }
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at - now()
}

const unitMs: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const mostMs = 86_400_000
/** Larger numbers are no waits, but times of one kind or another. */
const mostSeconds = 10_000_000
