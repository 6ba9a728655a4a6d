import { isObject, type Json } from '../core/json.ts'
import type { Provider, RateLimitHeaders } from '../manifest/provider.ts'

/** Headers of an answer, their names in lower case. */
export type AnswerHeaders = { readonly [name: string]: string | string[] | undefined }

/** Answer in which a limit is reported: `body` is that of an error, which may contain headers as well. */
type Limited = { headers: AnswerHeaders; body?: Json | undefined }

/** A longer wait is of no use to the caller. */
export const maxWaitMs = 86_400_000

/**
 * Returns the time for which nothing is left of a limit that the provider's manifest declares, in milliseconds; undefined where something
 * is. `now` is Unix milliseconds.
 */
export function exhaustedMs(
  { rateLimits = [] }: Pick<Provider, 'rateLimits'>,
  answer: Limited,
  now: () => number = Date.now,
): number | undefined {
  const waits = rateLimits.map((limit) => waitOf(limit, answer, now)).filter((ms) => ms !== undefined && ms > 0)
  return waits.length === 0 ? undefined : Math.min(maxWaitMs, Math.max(...(waits as number[])))
}

function waitOf(
  { limit, remaining, reset, windowMs, in: place }: RateLimitHeaders,
  { headers: own, body }: Limited,
  now: () => number,
): number | undefined {
  const headers = place ? headersAt(place, body) : own
  // A provider without a limit sends 0 of 0.
  if (!isZero(headers[remaining]) || (limit !== undefined && isZero(headers[limit]))) return undefined
  const wait = reset === undefined ? undefined : waitIn(headers[reset], now)
  // A whole window is the longest that a refusal may last, and too long for what has not been refused.
  return wait ?? (body === undefined ? undefined : windowMs)
}

function isZero(text: string | string[] | undefined): boolean {
  return typeof text === 'string' && text.trim() !== '' && Number(text) === 0
}

function headersAt(place: readonly string[], body: Json | undefined): AnswerHeaders {
  const found = place.reduce<Json | undefined>((value, name) => (isObject(value) ? value[name] : undefined), body)
  if (!isObject(found)) return {}
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name.toLowerCase(), String(value)]))
}

/** Reads a wait such as `2m59.5s`, seconds, or a time: a date, or Unix seconds or milliseconds. Milliseconds. */
function waitIn(text: string | string[] | undefined, now: () => number): number | undefined {
  if (typeof text !== 'string') return undefined
  if (/^\d+(\.\d+)?$/.test(text)) {
    const count = Number(text)
    if (count < maxSeconds) return count * 1_000
    return (count < minUnixMs ? count * 1_000 : count) - now()
  }
  if (/^(\d+(\.\d+)?(ms|d|h|m|s))+$/.test(text)) {
    const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|d|h|m|s)/g)]
    return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitMs[unit] ?? 0), 0)
  }
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at - now()
}

const unitMs: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Maximum wait in seconds: larger numbers are times. */
const maxSeconds = 10_000_000
/** Smallest number that is a time in milliseconds rather than in seconds. */
const minUnixMs = 100_000_000_000
