/**
 * The classes of failures that count against a target: it did not serve a request that it should have served. Refusals of a request, and what
 * a client or a plugin ended, do not.
 */
export const targetFailures: ReadonlySet<string> = new Set([
  'connection',
  'failed',
  'timeout',
  'rate_limited',
  'credential',
  'forbidden',
  'gone',
])
