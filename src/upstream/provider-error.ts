import { type ErrorCode, type ErrorDetails, type Rejection, RouterError } from '../core/errors.ts'
import type { ProviderFailure } from '../core/events.ts'
import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Provider } from '../manifest/provider.ts'
import { readFailure } from '../manifest/run/translate.ts'
import { billedAnyway, defaultAnswerBounds, excessOf } from './answer-body.ts'
import { redact } from './auth/secrets.ts'
import { type AnswerHeaders, exhaustedMs, maxWaitMs } from './rate-limit-headers.ts'

/** Maximum length of an error body in messages; longer ones are cut. Characters. */
const maxExcerpt = 2_000

/** An unsuccessful response of a provider. */
type ErrorResponse = { status: number; headers: AnswerHeaders; text: string }

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
  const codes = [...named, ...codesInHeaders(provider, answer.headers)]
  const status = mapped?.status ?? answer.status
  const code = classify(provider, { status, codes, message, isEmpty: answer.text.trim() === '' })
  const wait = comesBack.has(code) ? retryAfter(provider, answer.headers, body) : undefined
  const retryAfterMs = wait === undefined ? undefined : Math.min(wait, maxWaitMs)
  const param = mapped?.param ?? paramIn(body)
  const error = failure(provider, { code, status }, { message, providerCode: codes[0], param, retryAfterMs })
  return error.with({ providerStatus: answer.status })
}

/** Returns the caller's error for a failure that a provider reports inside a successful response. */
export function reportedFailure(provider: Provider, reported: ProviderFailure): RouterError {
  const codes = reported.code === undefined ? [] : [String(reported.code)]
  const status = reported.status ?? statusIn(codes) ?? 502
  const code = classify(provider, { status, codes, message: reported.message })
  const message = reported.message || 'The provider reported an error.'
  return failure(provider, { code, status }, { message, providerCode: codes[0], param: reported.param })
}

function failure(
  provider: Provider,
  { code, status }: { code: ErrorCode; status: number },
  {
    message,
    providerCode,
    param,
    retryAfterMs,
  }: Pick<ErrorDetails, 'providerCode' | 'param' | 'retryAfterMs'> & {
    message: string
  },
) {
  const { slug } = provider
  const text = redact(provider, message)
  const isKeys = code === 'provider_refused' && !isRedirect(status) && speaksOfKeys.test(text)
  return new RouterError(code, isKeys ? refusedKey : `${prefixOf(code, status)}${text}`, {
    provider: slug,
    ...(isKeys && { forLog: text }),
    quotes: true,
    // A key that may not use one model may use others: a caller who asks for it must not close them for everybody.
    concernsModel: code === 'provider_refused' && (status === 403 || isRedirect(status)),
    rejected: code === 'invalid_request' ? rejectionIn(provider, text) : undefined,
    concernsSize: code === 'rate_limited' && /request too large/i.test(message),
    ...(providerCode !== undefined && { providerCode: redact(provider, providerCode) }),
    ...(param !== undefined && isRequestsFault.has(code) && { param: redact(provider, param) }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

/** Error codes of requests that are wrong in themselves: the provider may name the member that is. */
const isRequestsFault: ReadonlySet<ErrorCode> = new Set(['invalid_request', 'context_length', 'content_blocked'])

/** Clients take the words of a provider about a key for words about their own: they ask their user for another one. */
const speaksOfKeys = /\bkeys?\b|api[-_ ]?key|token|credential|authenti|unauthori[sz]ed|log ?in\b/i
const refusedKey = 'The provider refused the credential of this router. The log of the router has its words.'

function prefixOf(code: ErrorCode, status: number): string {
  if (code !== 'provider_refused') return ''
  return isRedirect(status)
    ? 'The provider answered with a redirect, which is not followed: '
    : 'The provider refused the credential of this router: '
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}

/** Finds the part of the request that a provider refuses, by the manifest's phrases. */
function rejectionIn({ rejections = {} }: Provider, message: string): Rejection | undefined {
  const text = message.toLowerCase()
  return Object.entries(rejections).find(([phrase]) => text.includes(phrase.toLowerCase()))?.[1]
}

/** Error codes to which a provider's time to wait applies. */
const comesBack: ReadonlySet<ErrorCode> = new Set(['rate_limited', 'provider_overloaded'])

/** Facts by which an error is classified; `isEmpty`: it came without a body. */
type ErrorFacts = { status: number; codes: readonly string[]; message: string; isEmpty?: boolean }

/** Classifies an error by the manifest's table; a failure in that table is an overload where the status says so. */
function classify(provider: Provider, { status, codes, message, isEmpty }: ErrorFacts): ErrorCode {
  const { errors } = provider
  const byStatus = (isEmpty ? errors[`${status} empty`] : undefined) ?? errors[String(status)]
  const named = namedCode(provider, { codes, message, status }) ?? byStatus
  // Some servers report a failure of their own when their chat template rejects a request.
  const saysWhy = named !== undefined && named !== 'provider_failed'
  if (!saysWhy && status >= 400 && rejectionIn(provider, message)) return 'invalid_request'
  const code = named ?? (isModelGone(status, codes, message) ? 'model_not_found' : codeByStatus(status))
  return code === 'provider_failed' && overloadStatuses.has(status) ? 'provider_overloaded' : code
}

/**
 * Checks whether the model is gone. Other things that a request names, such as a file, may be missing as well, with the same status: that
 * is the caller's mistake.
 */
function isModelGone(status: number, codes: readonly string[], message: string): boolean {
  if (status !== 404 && status !== 410) return false
  if (codes.some((code) => speaksOfModel.test(code))) return true
  const unquoted = withoutQuotes(message)
  return speaksOfModel.test(unquoted) && !concernsOthers.test(unquoted)
}

/** Returns a message without what it quotes, which may be words of the caller; an apostrophe is no quote. */
function withoutQuotes(message: string): string {
  return message.replace(/(?<![\p{L}\p{N}])(["'`])[^"'`]*\1(?![\p{L}\p{N}])|“[^”]*”/gu, '')
}

const speaksOfModel = /models?\b|model_|deployment/i
const concernsOthers =
  /\b(files?|images?|audio|videos?|documents?|containers?|vector stores?|assistants?|threads?|batch(es)?|conversations?|items?|tools?|voices?|url)\b/i

/** Status codes of an overload. 529 is not registered, but common. */
const overloadStatuses: ReadonlySet<number> = new Set([503, 529])

/** Finds the code by the manifest's table, a code before a message, unless the code gives no reason. */
function namedCode({ errors }: Provider, { codes, message, status }: ErrorFacts): ErrorCode | undefined {
  const named = codes.filter((code) => !isStatus.test(code)).map((code) => errors[code])
  const byCode = named.find((code) => code !== undefined)
  if (byCode && !vagueCodes.has(byCode)) return byCode
  const text = message.toLowerCase()
  const own = ownWords(text, status)
  const phrase = Object.keys(errors).find((key) => {
    if (!key.includes(' ')) return false
    return (closing.has(errors[key] as ErrorCode) ? own : text).includes(key.toLowerCase())
  })
  return phrase === undefined ? byCode : errors[phrase]
}

/**
 * Returns the words of a message that cannot be the caller's. Where the status says that the request is at fault, providers repeat parts of
 * it: all that is between the first quote and the last, and what follows a colon.
 */
function ownWords(message: string, status: number): string {
  if (status !== 400 && status !== 422) return withoutQuotes(message)
  const [before = ''] = message.replace(/["'`“](?:.*["'`”]|(?=[^"'`”]*$).*)/s, '').split(/:\s/)
  return before
}

const isStatus = /^\d{3}$/
/** Codes that close a target or a credential for others: words of a caller that a message quotes must not lead to them. */
const closing: ReadonlySet<ErrorCode> = new Set(['provider_refused', 'quota_exhausted', 'model_not_found'])

/** Returns the HTTP status that a provider gives as the code of an error. */
function statusIn([code = '']: readonly string[]): number | undefined {
  return /^[45]\d\d$/.test(code) ? Number(code) : undefined
}

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
  const [listed] = Array.isArray(first.errors) ? first.errors : []
  const metadata = isObject(error.metadata) ? error.metadata.error_type : undefined
  const shape = typeof error.__type === 'string' ? error.__type.replace(/^.*#/, '') : undefined
  const base = isObject(first.base_resp) ? first.base_resp.status_code : undefined
  const names = [
    ...reasons,
    metadata,
    error.code,
    isObject(listed) ? listed.code : undefined,
    base,
    error.status,
    error.type,
    shape,
  ]
  return names.filter((name) => typeof name === 'string' || typeof name === 'number').map(String)
}

/** Finds the member of the request that an error body blames. */
function paramIn(body: Json | undefined): string | undefined {
  const first = Array.isArray(body) ? body[0] : body
  if (!isObject(first)) return undefined
  const { param } = isObject(first.error) ? first.error : first
  return typeof param === 'string' && param !== '' ? param : undefined
}

/** Finds the error names in the headers that the manifest declares; some are followed by a colon and a URL. */
function codesInHeaders({ errorHeaders = [] }: Provider, headers: AnswerHeaders): string[] {
  const values = errorHeaders.map((name) => headers[name])
  return values.flatMap((value) => (typeof value === 'string' ? [value.replace(/:.*$/, '')] : []))
}

/** Reads the time to wait from the headers or Google's RetryInfo. Milliseconds. */
function retryAfter(provider: Provider, headers: AnswerHeaders, body: Json | undefined): number | undefined {
  const inMs = Number(headers['retry-after-ms'])
  if (inMs > 0) return inMs
  const header = headers['retry-after']
  if (typeof header === 'string') {
    const seconds = Number(header)
    const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(header) - Date.now()
    if (ms > 0) return ms
  }
  const delay = /"retryDelay":\s*"([\d.]+)s"/.exec(JSON.stringify(body ?? null))?.[1]
  return delay === undefined ? exhaustedMs(provider, { headers, body: body ?? null }) : Number(delay) * 1_000
}

function parse(text: string): Json | undefined {
  if (excessOf(text, defaultAnswerBounds)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
