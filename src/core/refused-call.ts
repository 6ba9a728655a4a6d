import type { CallRecord } from './call.ts'
import { asRouterError, type ErrorCode, RouterError } from './errors.ts'
import { withoutSecrets } from './secrets.ts'

/** A call that was refused before a provider was asked, of which the ledger has no row. `at` is Unix milliseconds. */
export type RefusedCall = Pick<
  CallRecord,
  | 'id'
  | 'requestId'
  | 'at'
  | 'organization'
  | 'key'
  | 'group'
  | 'api'
  | 'operation'
  | 'requested'
  | 'stream'
  | 'status'
  | 'error'
  | 'message'
>

/** Checks whether a call that ended with this error has asked no provider. */
export function isRefusal(thrown: unknown): boolean {
  return !(thrown instanceof RouterError) || thrown.headers['x-router-attempts'] === undefined
}

/** Returns the record of a call that was refused with this error. */
export function refusedCall(call: Omit<RefusedCall, 'status' | 'error' | 'message'>, thrown: unknown): RefusedCall {
  const { id, requestId, at, organization, key, group, api, operation, requested, stream } = call
  const error = asRouterError(thrown)
  const { error: code, message } = recordedError(error)
  return {
    id,
    ...(requestId !== undefined && { requestId }),
    at,
    organization,
    key,
    ...(group !== undefined && { group }),
    api,
    operation,
    // Clients write keys where a model belongs.
    requested: withoutSecrets(requested).slice(0, maxNameLength),
    stream,
    status: error.status,
    ...(code !== undefined && { error: code }),
    ...(message !== undefined && { message }),
  }
}

/** Characters. */
const maxNameLength = 200

/**
 * Returns what the ledger stores of an error: never content. Messages of most codes may repeat a part of the request or of the reply, and
 * so may all words of a provider, of which only the code is stored.
 */
export function recordedError(error: RouterError): Pick<CallRecord, 'error' | 'message' | 'providerCode'> {
  const { code, message, providerCode, quotes } = error
  return {
    error: code,
    ...(!quotes && plainlyWorded.has(code) && { message: withoutSecrets(message).slice(0, maxMessageLength) }),
    ...(providerCode !== undefined && isCode.test(providerCode) && { providerCode }),
  }
}

/** Codes whose messages are the router's own sentences, with times, names and sums. */
const plainlyWorded: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'budget_exhausted',
  'rate_limited',
  'quota_exhausted',
  'client_gone',
  'internal',
  'plugin_failed',
  'provider_overloaded',
  'provider_unreachable',
  'provider_timeout',
  'provider_cut',
  'unavailable',
  'model_unavailable',
  'plugin_unavailable',
  'stopping',
])
const isCode = /^[\w.:/-]{1,64}$/
/** Characters. */
const maxMessageLength = 500
