import type { JsonObject } from './json.ts'
import type { Usage } from './usage.ts'

/** Everything that can go wrong with a call: HTTP status, the type that callers see, and whether a retry may help. */
export const catalogue = {
  invalid_request: { status: 400, type: 'invalid_request_error', retryable: false },
  previous_response_not_found: { status: 400, type: 'invalid_request_error', retryable: false },
  context_length: { status: 400, type: 'invalid_request_error', retryable: false },
  content_blocked: { status: 400, type: 'invalid_request_error', retryable: false },
  loss_refused: { status: 400, type: 'invalid_request_error', retryable: false },
  missing_key: { status: 401, type: 'authentication_error', retryable: false },
  budget_exhausted: { status: 402, type: 'billing_error', retryable: false },
  unpriced_model: { status: 402, type: 'billing_error', retryable: false },
  invalid_key: { status: 403, type: 'permission_error', retryable: false },
  forbidden: { status: 403, type: 'permission_error', retryable: false },
  not_found: { status: 404, type: 'not_found_error', retryable: false },
  model_not_found: { status: 404, type: 'not_found_error', retryable: false },
  method_not_allowed: { status: 405, type: 'invalid_request_error', retryable: false },
  idempotency_conflict: { status: 409, type: 'invalid_request_error', retryable: false },
  too_large: { status: 413, type: 'request_too_large', retryable: false },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', retryable: false },
  rate_limited: { status: 429, type: 'rate_limit_error', retryable: true },
  quota_exhausted: { status: 429, type: 'rate_limit_error', retryable: false },
  client_gone: { status: 499, type: 'invalid_request_error', retryable: false },
  internal: { status: 500, type: 'api_error', retryable: false },
  provider_refused: { status: 502, type: 'api_error', retryable: true },
  provider_failed: { status: 502, type: 'api_error', retryable: true },
  provider_overloaded: { status: 502, type: 'api_error', retryable: true },
  provider_unreachable: { status: 502, type: 'api_error', retryable: true },
  provider_timeout: { status: 502, type: 'api_error', retryable: true },
  provider_unreadable: { status: 502, type: 'api_error', retryable: true },
  provider_cut: { status: 502, type: 'api_error', retryable: true },
  unavailable: { status: 503, type: 'api_error', retryable: false },
  stopping: { status: 503, type: 'api_error', retryable: true },
} as const satisfies Record<string, { status: number; type: string; retryable: boolean }>

/** A key of the catalogue. */
export type ErrorCode = keyof typeof catalogue

/**
 * Details of an error: `param` names the field, `retryAfterMs` becomes `Retry-After`, `headers` are sent with it, `details`
 * are for clients that act on them, `billed` is what the provider counted although it failed.
 */
export type ErrorDetails = {
  billed?: Usage | undefined
  headers?: Readonly<Record<string, string>>
  param?: string | undefined
  provider?: string | undefined
  providerCode?: string | undefined
  retryAfterMs?: number | undefined
  details?: JsonObject | undefined
  /** For the operator's log: what clients must not read, such as addresses. */
  forLog?: string | undefined
  cause?: unknown
}

/** The error type of the gateway: an entry of the catalogue with a message that callers may see. */
export class RouterError extends Error {
  readonly code: ErrorCode
  param: string | undefined
  readonly provider: string | undefined
  readonly providerCode: string | undefined
  readonly retryAfterMs: number | undefined
  readonly details: JsonObject | undefined
  forLog: string | undefined
  readonly headers: Readonly<Record<string, string>>
  billed: Usage | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'RouterError'
    this.code = code
    this.param = details.param
    this.provider = details.provider
    this.providerCode = details.providerCode
    this.retryAfterMs = details.retryAfterMs
    this.details = details.details
    this.forLog = details.forLog
    this.headers = details.headers ?? {}
    this.billed = details.billed
  }

  /** The same error with these headers added; headers that it has already take precedence. */
  withHeaders(headers: Readonly<Record<string, string>>): RouterError {
    return new RouterError(this.code, this.message, {
      ...this,
      cause: this.cause,
      headers: { ...headers, ...this.headers },
    })
  }

  /** The HTTP status of this error. */
  get status(): number {
    return catalogue[this.code].status
  }

  /** Whether another target, or the same one later, may succeed. */
  get retryable(): boolean {
    return catalogue[this.code].retryable
  }
}

/** Any thrown value as a RouterError; an unexpected one becomes `internal`, without its details. */
export function asRouterError(thrown: unknown): RouterError {
  if (thrown instanceof RouterError) return thrown
  return new RouterError('internal', 'The router failed while handling this call.', { cause: thrown })
}

/** The error body of every JSON API: `{error: {origin, message, type, code, param, provider?}}`. */
export function errorBody(error: RouterError): JsonObject {
  const body: JsonObject = {
    origin: error.provider === undefined ? 'router' : 'provider',
    message: error.message,
    type: catalogue[error.code].type,
    code: error.providerCode ?? error.code,
    param: error.param ?? null,
  }
  if (error.provider !== undefined) body.provider = error.provider
  if (error.details !== undefined) body.details = error.details
  return { error: body }
}
