import { type ErrorCode, RouterError } from '../core/errors.ts'
import { Refusal, type RefusalStatus } from './contract.ts'

const codes: { readonly [status in RefusalStatus]: ErrorCode } = {
  400: 'invalid_request',
  402: 'budget_exhausted',
  403: 'forbidden',
  404: 'not_found',
  429: 'rate_limited',
}

/** What a client is told whose call a plugin refuses; undefined for anything else that was thrown. */
export function refusalError(thrown: unknown): RouterError | undefined {
  if (!(thrown instanceof Refusal)) return undefined
  const { status, message, param } = thrown
  const code = codes[status]
  return code && new RouterError(code, String(message), param === undefined ? {} : { param: String(param) })
}
