import { RouterError } from '../../core/errors.ts'
import type { Target } from '../../manifest/target.ts'

/** The time of one attempt, in milliseconds, and the signal that ends it earlier. */
export type AttemptTime = { signal: AbortSignal; totalMs: number | undefined }

/**
 * Runs an attempt that may be several requests, with a signal that is aborted when its time is over as well. It then rejects like the
 * request that it waits for: with RouterError `provider_timeout`.
 */
export async function withinTime<Result>(
  { provider }: Target,
  { signal, totalMs }: AttemptTime,
  attempt: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  if (totalMs === undefined) return await attempt(signal)
  const time = new AbortController()
  const late = () => {
    const message = `The provider did not finish within ${totalMs} ms.`
    time.abort(new RouterError('provider_timeout', message, { provider: provider.slug }))
  }
  const timer = setTimeout(late, totalMs)
  try {
    return await attempt(AbortSignal.any([signal, time.signal]))
  } finally {
    clearTimeout(timer)
  }
}
