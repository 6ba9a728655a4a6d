import type { IncomingHttpHeaders } from 'node:http'
import { durationMs, longestMs } from '../core/duration.ts'
import { RouterError } from '../core/errors.ts'

/** The time that a request gives to the whole call, in milliseconds; undefined where it says nothing. Throws RouterError 400. */
export function timeoutOf({ 'x-router-timeout': value }: IncomingHttpHeaders): number | undefined {
  if (value === undefined) return undefined
  const ms = durationMs(String(value).trim())
  if (ms !== undefined && ms > 0 && ms <= longestMs) return ms
  const message = 'The header x-router-timeout must be a time such as 500ms, 30s or 1m, more than 0 and at most 24h.'
  throw new RouterError('invalid_request', message, { param: 'x-router-timeout' })
}
