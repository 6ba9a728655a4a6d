import { hourMs } from '../core/time.ts'
import type { Store } from '../store/open.ts'

/** Rows per commit: each commit blocks the event loop for some milliseconds. */
const batchSize = 100

/** A running purge. */
export type Purge = { stop(): void }

/**
 * Deletes what expired, now and every hour, in batches between which other work goes on. A failure is reported, and the
 * next try is an hour later.
 */
export function startPurge(
  { purge }: Pick<Store['responses'], 'purge'>,
  onError: (error: unknown) => void,
  everyMs = hourMs,
): Purge {
  let next: NodeJS.Timeout | undefined
  const run = () => {
    let more = false
    try {
      more = purge(batchSize) === batchSize
    } catch (thrown) {
      onError(thrown)
    }
    next = setTimeout(run, more ? 0 : everyMs).unref()
  }
  run()
  return { stop: () => clearTimeout(next) }
}
