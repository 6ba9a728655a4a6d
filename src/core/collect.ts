import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes that have passed since memory was collected. */
let passed = 0

/**
 * Told of bytes that passed through memory: their buffers are small objects to V8, which would leave some 64 MB of them before it
 * collects; they are collected for each 4 MB.
 */
export function collectPassed(bytes: number): void {
  passed += bytes
  if (passed < passedAtMost) return
  passed = 0
  collector()?.({ type: 'minor' })
}

const passedAtMost = 4 * 1_024 * 1_024

/**
 * Collects all that this thread no longer uses, and gives its memory back, as soon as no request has run for a second: it takes
 * a tenth of one. A start leaves a young generation of its full size behind.
 */
export function collectWhenIdle(running: { begun: number; size: number }): void {
  let begun = running.begun
  const timer = setInterval(() => {
    const isIdle = running.size === 0 && running.begun === begun
    begun = running.begun
    const collect = isIdle ? collector() : undefined
    if (!collect) return
    clearInterval(timer)
    collect({ type: 'major', flavor: 'last-resort' })
  }, idleMs).unref()
}

const idleMs = 1_000

let collectorOfThread: NodeJS.GCFunction | undefined

/**
 * V8's collector in this thread. The flag that shows it is set for a moment only, not for the process: V8 uses kept code only
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
