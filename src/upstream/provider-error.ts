import { type ErrorCode, RouterError } from '../core/errors.ts'
import type { ProviderFailure } from '../core/events.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Provider } from '../manifest/provider.ts'
import { readFailure } from '../manifest/run/translate.ts'
import { billedAnyway, defaultAnswerBounds, excessOf } from './answer-body.ts'
import { redact } from './auth/secrets.ts'

/** Maximum length of an error body in messages; longer ones are cut. Characters. */
const maxExcerpt = 2_000

/** An unsuccessful response of a provider. */
type ErrorResponse = { status: number; headers: Record<string, string | string[] | undefined>; text: string }

/** Reads an error like `errorFor`, with the error body read by the manifest's own mapping where it has one. */
export async function readErrorResponse(provider: Provider, answer: ErrorResponse): Promise<RouterError> {
  const body = parse(answer.text)
  // A body that the mapping cannot read is still an error.
  const mapped = body === undefined ? undefined : await readFailure(provider, body).catch(() => undefined)
  const error = errorFor(provider, answer, mapped)
  return isObject(body) ? await billedAnyway(provider, error, body) : error
}

/** Returns the caller's error for an unsuccessful response of a provider; `mapped` is the result of the manifest's mapping of its body. */
export function errorFor(provider: Provider, answer: ErrorResponse, mapped?: ProviderFailure): RouterError {
  const body = parse(answer.text)
  const message =
    (mapped?.message || messageIn(body)) ??
    (redact(provider, answer.text).slice(0, maxExcerpt) || `HTTP status ${answer.status}`)
  const named = mapped?.code === undefined || mapped.code === null ? codesIn(body) : [String(mapped.code)]
  const codes = [...named, ...codeInHeaders(answer.headers)]
  const status = mapped?.status ?? answer.status
  const code = classify(provider, status, codes, message)
  const wait = comesBack.has(code) ? retryAfter(answer.headers, body) : undefined
  const retryAfterMs = wait === undefined ? undefined : Math.min(wait, maxWaitMs)
  const error = failure(provider, { code, status }, message, codes[0], retryAfterMs)
  return error.with({ providerStatus: answer.status })
}

/** Returns the caller's error for a failure that a provider reports inside a successful response. */
export function reportedFailure(provider: Provider, reported: ProviderFailure): RouterError {
  const codes = reported.code === undefined ? [] : [String(reported.code)]
  const status = reported.status ?? 502
  const code = classify(provider, status, codes, reported.message)
  return failure(provider, { code, status }, reported.message || 'The provider reported an error.', codes[0])
}

function failure(
  provider: Provider,
  { code, status }: { code: ErrorCode; status: number },
  text: string,
  providerCode?: string,
  retryAfterMs?: number,
) {
  const { slug } = provider
  return new RouterError(code, `${prefixOf(code, status)}${redact(provider, text)}`, {
    provider: slug,
    quotes: true,
    // A key that may not use one model may use others: a caller who asks for it must not close them for everybody.
    concernsModel: code === 'provider_refused' && (status === 403 || isRedirect(status)),
    concernsSize: code === 'rate_limited' && /request too large/i.test(text),
    ...(providerCode !== undefined && { providerCode: redact(provider, providerCode) }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

function prefixOf(code: ErrorCode, status: number): string {
  if (code !== 'provider_refused') return ''
  return isRedirect(status)
    ? 'The provider answered with a redirect, which is not followed: '
    : 'The provider refused the credential of this router: '
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}

/** Error codes to which a provider's time to wait applies. */
const comesBack: ReadonlySet<ErrorCode> = new Set(['rate_limited', 'provider_overloaded'])

/** Classifies an error by the manifest's table; a failure in that table is an overload where the status says so. */
function classify(provider: Provider, status: number, codes: string[], message: string): ErrorCode {
  const named = namedCode(provider, codes, message) ?? provider.errors[String(status)]
  const code = named ?? (isModelGone(status, codes, message) ? 'model_not_found' : codeByStatus(status))
  return code === 'provider_failed' && overloadStatuses.has(status) ? 'provider_overloaded' : code
}

/**
 * Checks whether the model is gone. Other things that a request names, such as a file, may be missing as well, with the same status: that
 * is the caller's mistake.
 */
function isModelGone(status: number, codes: string[], message: string): boolean {
  if (status !== 404 && status !== 410) return false
  if (codes.some((code) => speaksOfModel.test(code))) return true
  const unquoted = message.replace(/(["'`])[^"'`]*\1|“[^”]*”/g, '')
  return speaksOfModel.test(unquoted) && !concernsOthers.test(unquoted)
}

const speaksOfModel = /models?\b|model_|deployment/i
const concernsOthers =
  /\b(files?|images?|audio|videos?|documents?|containers?|vector stores?|assistants?|threads?|batch(es)?|conversations?|items?|tools?|voices?|url)\b/i

/** Status codes of an overload. 529 is not registered, but common. */
const overloadStatuses: ReadonlySet<number> = new Set([503, 529])

/** Finds the code by the manifest's table, a code before a message, unless the code gives no reason. */
function namedCode({ errors }: Provider, codes: string[], message: string): ErrorCode | undefined {
  const named = codes.filter((code) => !isStatus.test(code)).map((code) => errors[code])
  const byCode = named.find((code) => code !== undefined)
  if (byCode && !vagueCodes.has(byCode)) return byCode
  const text = message.toLowerCase()
  const phrase = Object.keys(errors).find(
    (key) => !isStatus.test(key) && key.includes(' ') && text.includes(key.toLowerCase()),
  )
  return phrase === undefined ? byCode : errors[phrase]
}

const isStatus = /^\d{3}$/
/** Providers use these codes for what concerns all calls, and for what concerns one. */
const vagueCodes: ReadonlySet<ErrorCode> = new Set(['rate_limited', 'provider_refused'])

function codeByStatus(status: number): ErrorCode {
  if (status === 429) return 'rate_limited'
  if (status === 413) return 'too_large'
  if (status === 408) return 'provider_timeout'
  if (status === 402) return 'quota_exhausted'
  if (status === 401 || status === 403 || isRedirect(status)) return 'provider_refused'
  return status >= 400 && status < 500 ? 'invalid_request' : 'provider_failed'
}

/** Finds the message in the places where providers write one, the most reliable first. */
function messageIn(body: Json | undefined): string | undefined {
  const first = Array.isArray(body) ? body[0] : body
  if (typeof first === 'string') return first
  if (!isObject(first)) return undefined
  const error = first.error
  const errors = Array.isArray(first.errors) ? first.errors[0] : undefined
  const base = isObject(first.base_resp) ? first.base_resp.status_msg : undefined
  const inner = isObject(error) ? error.message : error
  const listed = isObject(errors) ? errors.message : undefined
  const found = [inner, first.message, first.detail, first.err_msg, listed, base].find(
    (text) => text !== undefined && text !== null,
  )
  if (found === undefined) return undefined
  return typeof found === 'string' ? found : JSON.stringify(found).slice(0, maxExcerpt)
}

/** Lists every machine-readable code in an error body, the most specific first. */
function codesIn(body: Json | undefined): string[] {
  const first = Array.isArray(body) ? body[0] : body
  if (!isObject(first)) return []
  const error: JsonObject = isObject(first.error) ? first.error : first
  const reasons = Array.isArray(error.details)
    ? error.details.map((detail) => (isObject(detail) ? detail.reason : undefined))
    : []
  const shape = typeof error.__type === 'string' ? error.__type.replace(/^.*#/, '') : undefined
  const names = [...reasons, error.code, error.status, error.type, shape]
  return names.filter((name) => typeof name === 'string' || typeof name === 'number').map(String)
}

/** Finds the error name that AWS sends in a header, before a colon and a URL. */
function codeInHeaders(headers: Record<string, string | string[] | undefined>): string[] {
  const type = headers['x-amzn-errortype']
  return typeof type === 'string' ? [type.replace(/:.*$/, '')] : []
}

/** A longer wait is of no use to the caller. */
const maxWaitMs = 24 * 60 * 60 * 1_000

/** Reads the time to wait from the headers or Google's RetryInfo. Milliseconds. */
function retryAfter(
  headers: Record<string, string | string[] | undefined>,
  body: Json | undefined,
): number | undefined {
  const inMs = Number(headers['retry-after-ms'])
  if (inMs > 0) return inMs
  const header = headers['retry-after']
  if (typeof header === 'string') {
    const seconds = Number(header)
    const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(header) - Date.now()
    if (ms > 0) return ms
  }
  const delay = /"retryDelay":\s*"([\d.]+)s"/.exec(JSON.stringify(body ?? null))?.[1]
  return delay === undefined ? exhaustedMs(headers) : Number(delay) * 1_000
}

function parse(text: string): Json | undefined {
  if (excessOf(text, defaultAnswerBounds)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Headers = { readonly [name: string]: string | string[] | undefined }

/** Headers in which providers report limits: the limit, what is left of it, and when there is more again. */
const limitHeaders: readonly { limit: string; remaining: string; reset: string }[] = [
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

/** Returns the time for which nothing is left, in milliseconds; undefined where something is. `now` is Unix milliseconds. */
export function exhaustedMs(headers: Headers, now: () => number = Date.now): number | undefined {
  let longest: number | undefined
  for (const { limit, remaining, reset } of limitHeaders) {
    // A provider without a limit sends 0 of 0.
    if (headers[remaining] !== '0' || headers[limit] === '0') continue
    const ms = waitIn(headers[reset], now)
    if (ms !== undefined && ms > 0) longest = Math.min(maxMs, Math.max(ms, longest ?? 0))
  }
  return longest
}

/** Reads a wait such as `2m59.5s`, seconds, or a time. Milliseconds. */
function waitIn(text: string | string[] | undefined, now: () => number): number | undefined {
  if (typeof text !== 'string') return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) < maxSeconds ? Number(text) * 1_000 : undefined
  if (/^(\d+(\.\d+)?(ms|d|h|m|s))+$/.test(text)) {
    const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|d|h|m|s)/g)]
    return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitMs[unit] ?? 0), 0)
  }
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at - now()
}

const unitMs: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const maxMs = 86_400_000

/** Maximum wait: larger numbers are not waits, but times of one kind or another. Seconds. */
const maxSeconds = 10_000_000
