import type { CallRecord } from './call.ts'
import { asRouterError, RouterError } from './errors.ts'
import { recordedError } from './recorded-error.ts'
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

/** Whether a call that ended with this has asked no provider. */
export function isRefusal(thrown: unknown): boolean {
  return !(thrown instanceof RouterError) || thrown.headers['x-router-attempts'] === undefined
}

/** What is remembered of a call that was refused with this. */
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
    requested: withoutSecrets(requested).slice(0, longestName),
    stream,
    status: error.status,
    ...(code !== undefined && { error: code }),
    ...(message !== undefined && { message }),
  }
}

/** Characters. */
const longestName = 200
