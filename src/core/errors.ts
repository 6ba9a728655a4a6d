import type { JsonObject } from './json.ts'
import type { Usage } from './usage.ts'

/** All errors that a call can end with: HTTP status and the type that callers see. */
export const catalogue = {
  invalid_request: { status: 400, type: 'invalid_request_error' },
  previous_response_not_found: { status: 400, type: 'invalid_request_error' },
  context_length: { status: 400, type: 'invalid_request_error' },
  content_blocked: { status: 400, type: 'invalid_request_error' },
  loss_refused: { status: 400, type: 'invalid_request_error' },
  missing_key: { status: 401, type: 'authentication_error' },
  budget_exhausted: { status: 402, type: 'billing_error' },
  unpriced_model: { status: 402, type: 'billing_error' },
  invalid_key: { status: 403, type: 'permission_error' },
  forbidden: { status: 403, type: 'permission_error' },
  not_found: { status: 404, type: 'not_found_error' },
  model_not_found: { status: 404, type: 'not_found_error' },
  method_not_allowed: { status: 405, type: 'invalid_request_error' },
  idempotency_conflict: { status: 409, type: 'invalid_request_error' },
  too_large: { status: 413, type: 'request_too_large' },
  unsupported_media_type: { status: 415, type: 'invalid_request_error' },
  upgrade_required: { status: 426, type: 'invalid_request_error' },
  rate_limited: { status: 429, type: 'rate_limit_error' },
  quota_exhausted: { status: 502, type: 'api_error' },
  client_gone: { status: 499, type: 'invalid_request_error' },
  internal: { status: 500, type: 'api_error' },
  worker_ended: { status: 500, type: 'api_error' },
  plugin_failed: { status: 500, type: 'api_error' },
  plugin_refused: { status: 403, type: 'permission_error' },
  provider_refused: { status: 502, type: 'api_error' },
  provider_failed: { status: 502, type: 'api_error' },
  provider_overloaded: { status: 502, type: 'api_error' },
  provider_unreachable: { status: 502, type: 'api_error' },
  provider_timeout: { status: 502, type: 'api_error' },
  provider_unreadable: { status: 502, type: 'api_error' },
  provider_cut: { status: 502, type: 'api_error' },
  unavailable: { status: 503, type: 'api_error' },
  model_unavailable: { status: 503, type: 'api_error' },
  plugin_unavailable: { status: 503, type: 'api_error' },
  stopping: { status: 503, type: 'api_error' },
} as const satisfies Record<string, { status: number; type: string }>

/** A key of the catalogue. */
export type ErrorCode = keyof typeof catalogue

/** Part of a request that a provider refuses although the rest may be served: clients can leave it out and try again. */
export type Rejection =
  | 'cache'
  | 'document'
  | 'effort'
  | 'image'
  | 'media_size'
  | 'signature'
  | 'structured_output'
  | 'system_message'
  | 'thinking_adaptive'
  | 'thinking_enabled'

/**
 * Details of an error: `param` names the field, `retryAfterMs` becomes `Retry-After`, `headers` are sent with it, `details`
 * are for clients that act on them, `billed` is what the provider counted although it failed, and `billedModel` the model that it says has served, `concernsModel`: other models of the
 * provider may well be allowed, `concernsSize`: smaller requests may well be, `mayHaveActed`: a provider may have acted for the caller.
 */
export type ErrorDetails = {
  billed?: Usage | undefined
  billedModel?: string | undefined
  concernsModel?: boolean | undefined
  concernsSize?: boolean | undefined
  headers?: Readonly<Record<string, string>>
  mayHaveActed?: boolean | undefined
  param?: string | undefined
  provider?: string | undefined
  providerCode?: string | undefined
  /** HTTP status of the provider's own answer. */
  providerStatus?: number | undefined
  rejected?: Rejection | undefined
  retryAfterMs?: number | undefined
  details?: JsonObject | undefined
  /** Every target that was asked, when there were several: its model, status, code and message. */
  attempts?: JsonObject[] | undefined
  /** Report of how the call was routed, where it asked for that. */
  router?: JsonObject | undefined
  /** Set if a plugin refuses the call: the status and the code that it has chosen. */
  pluginRefusal?: { status: number; code?: string | undefined } | undefined
  /** True if a plugin wants another answer in place of the one that has come. */
  wantsOther?: boolean | undefined
  /** True if the message is in the words of the provider, which may repeat content of the call. */
  quotes?: boolean | undefined
  /** Details for the operator's log that clients must not read, such as addresses. */
  forLog?: string | undefined
  cause?: unknown
}

/** The error type of the gateway: an entry of the catalogue with a message that callers may see. */
export class RouterError extends Error {
  readonly code: ErrorCode
  param: string | undefined
  readonly provider: string | undefined
  readonly providerCode: string | undefined
  readonly providerStatus: number | undefined
  readonly rejected: Rejection | undefined
  readonly retryAfterMs: number | undefined
  readonly details: JsonObject | undefined
  readonly attempts: JsonObject[] | undefined
  readonly router: JsonObject | undefined
  readonly pluginRefusal: ErrorDetails['pluginRefusal']
  readonly wantsOther: boolean
  forLog: string | undefined
  readonly headers: Readonly<Record<string, string>>
  billed: Usage | undefined
  billedModel: string | undefined
  readonly quotes: boolean
  readonly concernsModel: boolean
  readonly concernsSize: boolean
  readonly mayHaveActed: boolean

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(shortened(message, maxMessageLength), details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'RouterError'
    this.code = code
    this.param = details.param === undefined ? undefined : shortened(details.param, maxParamLength)
    this.provider = details.provider
    this.providerCode = details.providerCode
    this.providerStatus = details.providerStatus
    this.rejected = details.rejected
    this.retryAfterMs = details.retryAfterMs
    this.details = details.details
    this.attempts = details.attempts
    this.router = details.router
    this.pluginRefusal = details.pluginRefusal
    this.wantsOther = details.wantsOther === true
    this.forLog = details.forLog
    this.headers = details.headers ?? {}
    this.billed = details.billed
    this.billedModel = details.billedModel
    this.quotes = details.quotes === true
    this.concernsModel = details.concernsModel === true
    this.concernsSize = details.concernsSize === true
    this.mayHaveActed = details.mayHaveActed === true
  }

  /** The same error with other details. */
  with(details: ErrorDetails): RouterError {
    return new RouterError(this.code, this.message, { ...this, cause: this.cause, ...details })
  }

  /** The same error with these headers added; headers that it has already take precedence. */
  withHeaders(headers: Readonly<Record<string, string>>): RouterError {
    return this.with({ headers: { ...headers, ...this.headers } })
  }

  /** The HTTP status of this error. */
  get status(): number {
    return this.pluginRefusal?.status ?? catalogue[this.code].status
  }

  /** The type that callers see. */
  get type(): string {
    return this.pluginRefusal ? typeOfStatus(this.pluginRefusal.status) : catalogue[this.code].type
  }

  /**
   * Returns whether the client may send the same call again: not after a refusal, with a wrong credential or an exhausted quota, when it
   * would have to wait long, or where a provider may have acted already. Every other failure may pass.
   */
  get mayBeRetried(): boolean {
    if (this.pluginRefusal && !passing.has(this.pluginRefusal.status)) return false
    if (this.mayHaveActed || (this.retryAfterMs ?? 0) > maxSoonMs || lasting.has(this.code)) return false
    return this.status >= 500 || (this.status === 429 && !this.concernsSize)
  }
}

/** Characters of a message and of a parameter's name: either may repeat a text of the client, or of a provider, of many megabytes. */
const [maxMessageLength, maxParamLength] = [10_000, 300]

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}

/** Statuses of refusals by plugins after which clients try again. */
const passing: ReadonlySet<number> = new Set([429, 503])

/** Returns the type of an error that only its status describes. */
function typeOfStatus(status: number): string {
  const known = Object.values(catalogue).find((entry) => entry.status === status)
  return known?.type ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}

/** Failures of a provider that last: those of the router's own credential. */
const lasting: ReadonlySet<ErrorCode> = new Set(['provider_refused', 'quota_exhausted'])

/**
 * Makes an error without its stack, which takes longer than all else that a refusal does: for those that come by the thousand when there is
 * too much to do.
 */
export function withoutStack<Made extends Error>(make: () => Made): Made {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return make()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** Maximum wait that clients are asked for: SDKs do not wait for longer either. Milliseconds. */
const maxSoonMs = 60_000

/** Any thrown value as a RouterError; an unexpected one becomes `internal`, without its details. */
export function asRouterError(thrown: unknown): RouterError {
  if (thrown instanceof RouterError) return thrown
  return new RouterError('internal', 'The router failed while handling this call.', { cause: thrown })
}

/** Codes of OpenAI, on which SDKs and tools act: the first is written if the provider's own code is not in the list. */
const knownCodes: { readonly [code in ErrorCode]?: readonly [string, ...string[]] } = {
  context_length: ['context_length_exceeded'],
  content_blocked: ['content_filter', 'content_policy_violation', 'invalid_prompt', 'bio_policy'],
  model_not_found: ['model_not_found'],
  rate_limited: ['rate_limit_exceeded'],
  quota_exhausted: ['insufficient_quota', 'billing_hard_limit_reached', 'billing_not_active'],
  provider_overloaded: ['server_is_overloaded', 'slow_down', 'overloaded_error'],
  // The codes of a refused key would be those of the caller's own.
  provider_refused: ['provider_refused'],
}

/** Returns the code of an error in the words of OpenAI's APIs: a provider's own where there is no other. */
export function writtenCode({ code, provider, providerCode, pluginRefusal }: RouterError): string {
  if (provider === undefined) return pluginRefusal?.code ?? providerCode ?? code
  const known = knownCodes[code]
  if (!known) return providerCode ?? code
  return providerCode !== undefined && known.includes(providerCode) ? providerCode : known[0]
}

/** Words by which clients of OpenAI's APIs know a full context. */
const knowsFullContext = /context (length|window|limit|size)|prompt is too long|input is too long/i

/** Returns the message of an error: a full context is reported in words that clients know. */
export function writtenMessage({ code, provider, message }: RouterError): string {
  if (code !== 'context_length' || provider === undefined || knowsFullContext.test(message)) return message
  return `Your input exceeds the context window of this model: ${message}`
}

/** The error body of every JSON API: `{error: {origin, message, type, code, param, doc_url, provider?}}`. */
export function errorBody(error: RouterError): JsonObject {
  const code = writtenCode(error)
  const { providerCode } = error
  const body: JsonObject = {
    origin: error.provider === undefined ? 'router' : 'provider',
    message: writtenMessage(error),
    type: error.type,
    code,
    param: error.param ?? null,
    doc_url: docUrl(error.code),
  }
  if (error.provider !== undefined) body.provider = error.provider
  if (providerCode !== undefined && providerCode !== code) body.provider_code = providerCode
  if (error.details !== undefined) body.details = error.details
  if (error.attempts !== undefined) body.attempts = error.attempts
  if (error.router !== undefined) body.router = error.router
  return { error: body }
}

/** Variable that names the address of a documentation site: errors link to its page of errors. */
export const docsVariable = 'INFERENCE_ROUTER_DOCS_URL'

/** Path at which the router itself explains its errors. */
export const errorsPath = '/docs/errors.html'

let explanations: string | undefined

/** Returns the address of the explanation of an error: on the router itself unless a variable names a site. */
export function docUrl(code: ErrorCode): string {
  explanations ??= explanationsAt(process.env[docsVariable])
  return `${explanations}#${code}`
}

/** Returns the address of the explanations at a documentation site, by default that of the router. */
export function explanationsAt(site: string | undefined): string {
  return site ? `${site.replace(/\/*$/, '')}/errors.html` : errorsPath
}
