import { setTimeout as delay } from 'node:timers/promises'
import { asRouterError, type RouterError } from '../../core/errors.ts'
import type { CallResponse } from '../types.ts'

/**
 * Returns the response of a streamed call. When it is not there after a time, one that begins with a comment, so that nothing between
 * here and the client closes the connection: from then on a failure is an event, which `fail` writes.
 */
export async function earlyReply(
  responding: Promise<CallResponse>,
  afterMs: number,
  { headers, fail }: { headers: CallResponse['headers']; fail(error: RouterError): string },
): Promise<CallResponse> {
  const timer = new AbortController()
  const silence = delay(afterMs, undefined, { signal: timer.signal }).catch(() => undefined)
  try {
    return (await Promise.race([responding, silence])) ?? { headers, body: beginning(responding, fail) }
  } finally {
    timer.abort()
  }
}

async function* beginning(
  responding: Promise<CallResponse>,
  fail: (error: RouterError) => string,
): AsyncGenerator<string | Uint8Array, void> {
  // A client that leaves before is seen by the call itself.
  responding.catch(() => {})
  let isRead = false
  try {
    yield ': waiting\n\n'
    const { body } = await responding
    isRead = true
    if (typeof body === 'string') yield body
    else yield* body
  } catch (thrown) {
    isRead = true
    yield fail(asRouterError(thrown))
  } finally {
    if (!isRead) await responding.then(end, () => {})
  }
}

/** Ends an answer that nobody reads: a stream that has not begun would never be settled. */
async function end({ body }: CallResponse): Promise<void> {
  if (typeof body === 'string') return
  await body.next()
  await body.return()
}
