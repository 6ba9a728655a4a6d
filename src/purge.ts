import { hourMs } from './core/time.ts'
import type { Store } from './store/open.ts'

/** How many rows one commit deletes: what one batch holds up, some milliseconds. */
const batch = 100

/** Something that goes on until it is stopped. */
export type Purge = { stop(): void }

/**
 * Deletes responses whose time is over, now and every hour, in batches between which other work goes on. A failure is
 * told and tried again an hour later.
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
      more = purge(batch) === batch
    } catch (thrown) {
      onError(thrown)
    }
    next = setTimeout(run, more ? 0 : everyMs).unref()
  }
  run()
  return { stop: () => clearTimeout(next) }
}
