import type { RouterError } from '../../core/errors.ts'
import type { Leave } from './concurrency-limiter.ts'
import type { Passage } from './health.ts'

/** A passage whose end lets another call in. */
export function leaving(passage: Passage, leave: Leave): Passage {
  const ended = () => {
    leave()
    passage.ended()
  }
  return { ...passage, ended }
}

/** A passage that counts only some failures. */
export function counting(passage: Passage, counts: (error: RouterError) => boolean): Passage {
  return {
    succeeded: () => passage.succeeded(),
    produced: (tokens) => passage.produced?.(tokens),
    failed: (error) => {
      if (counts(error)) passage.failed(error)
    },
    ended: () => passage.ended(),
  }
}
