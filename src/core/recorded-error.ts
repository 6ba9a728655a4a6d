import type { CallRecord } from './call.ts'
import type { ErrorCode, RouterError } from './errors.ts'
import { withoutSecrets } from './secrets.ts'

/**
 * What the ledger keeps of an error: never what was said. Messages of most codes may repeat a part of the request or of the reply, and
 * so may all words of a provider, of which its code is kept.
 */
export function recordedError(error: RouterError): Pick<CallRecord, 'error' | 'message' | 'providerCode'> {
  const { code, message, providerCode, quotes } = error
  return {
    error: code,
    ...(!quotes && plainlyWorded.has(code) && { message: withoutSecrets(message).slice(0, longestMessage) }),
    ...(providerCode !== undefined && isCode.test(providerCode) && { providerCode }),
  }
}

/** Their messages are the router's own sentences, with times, names and sums. */
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
  'stopping',
])
const isCode = /^[\w.:/-]{1,64}$/
/** Characters. */
const longestMessage = 500
