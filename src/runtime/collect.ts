import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes that have passed since memory was collected. */
let passed = 0

/**
 * Counts bytes that passed through memory: their buffers are small objects to V8, which would leave some 64 MB of them before it
 * collects; they are collected for each 4 MB.
 */
export function collectPassed(bytes: number): void {
  passed += bytes
  if (passed < maxPassed) return
  passed = 0
  collector()?.({ type: 'minor' })
}

const maxPassed = 4 * 1_024 * 1_024

/**
 * Collects all that this thread no longer uses, and gives its memory back, as soon as no request has run for a second: it takes
 * a tenth of one. A start leaves a young generation of its full size behind. Once there have been many requests it does so when
 * none has run for a minute: V8 may keep what a crowd leaves behind until there is work again, but it also forgets how it has
 * compiled what no request uses at that moment, and the next thousands of calls take twice the work.
 */
export function collectWhenIdle(running: { begun: number; size: number }): void {
  let { begun } = running
  let collectedAt: number | undefined
  let idleTicks = 0
  const isDue = () => {
    const isCold = collectedAt === undefined && begun < crowd
    return isCold ? idleTicks >= 1 : idleTicks >= crowdTicks && begun - (collectedAt ?? 0) >= crowd
  }
  setInterval(() => {
    idleTicks = running.size === 0 && running.begun === begun ? idleTicks + 1 : 0
    begun = running.begun
    const collect = isDue() ? collector() : undefined
    if (!collect) return
    collect({ type: 'major', flavor: 'last-resort' })
    collectedAt = begun
  }, tickMs).unref()
}

const tickMs = 1_000
const crowdTicks = 60
const crowd = 1_000

let collectorOfThread: NodeJS.GCFunction | undefined

/**
 * Returns V8's collector in this thread. The flag that shows it is set for a moment only, not for the process: V8 uses kept code only
 * under the flags with which it was compiled, and Node's own code was compiled without. Undefined where another thread has just
 * taken the flag away: the next time it is there.
 */
function collector(): NodeJS.GCFunction | undefined {
  collectorOfThread ??= globalThis.gc ?? shownCollector()
  return collectorOfThread
}

function shownCollector(): NodeJS.GCFunction | undefined {
  setFlagsFromString('--expose-gc')
  const shown = runInNewContext('globalThis.gc')
  setFlagsFromString('--no-expose-gc')
  return shown
}
