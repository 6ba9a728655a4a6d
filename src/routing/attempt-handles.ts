import type { RouterError } from '../core/errors.ts'
import type { Release } from './health/concurrency-limiter.ts'
import type { AttemptHandle } from './health/health.ts'

/** Wraps an attempt handle so that its end admits another call. */
export function releasing(handle: AttemptHandle, leave: Release): AttemptHandle {
  const ended = () => {
    leave()
    handle.ended()
  }
  return { ...handle, ended }
}

/** Wraps an attempt handle so that only some failures count. */
export function counting(handle: AttemptHandle, counts: (error: RouterError) => boolean): AttemptHandle {
  return {
    succeeded: () => handle.succeeded(),
    produced: (...tokens) => handle.produced?.(...tokens),
    failed: (error) => {
      if (counts(error)) handle.failed(error)
    },
    ended: () => handle.ended(),
  }
}
