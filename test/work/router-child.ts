import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { startRouter } from '../../src/app/router.ts'

/**
 * A router that tells its parent what a call takes of it. It is started with its configuration and `--expose-gc`, reports its
 * URL, and answers a question each: `begin`, `look` and `hold` in the middle of a call, `end`. A `look` waits for nothing.
 */
export type Question = 'begin' | 'look' | 'hold' | 'end'
/**
 * `loopMs` is the time of the processor that the event loop has used since `begin`, `sliceMs` the longest that it has not come
 * round to its timers; `heldBytes` what is in memory now and was not at `begin`, garbage aside; `peakBytes` how far the memory
 * of the process has grown since its first `begin`.
 */
export type Measured = { loopMs: number; sliceMs: number; heldBytes: number; peakBytes: number }

const collect = globalThis.gc
if (!collect) throw new Error('Start it with --expose-gc.')

const router = await startRouter({
  configPath: process.argv[2] ?? '',
  env: process.env,
  log: pino({ level: 'silent' }),
})

/** What this thread has worked, whatever else runs on the machine. */
function workedMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

function liveBytes(): number {
  collect?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** The most memory that this process had so far; where the system does not tell, what it has now. */
function mostBytes(): number {
  try {
    const kilobytes = /VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    return Number(kilobytes) * 1_024
  } catch {
    return process.memoryUsage.rss()
  }
}

let last = workedMs()
let [loopMs, sliceMs, live] = [0, 0, 0]
let first: number | undefined

function look(): void {
  const now = workedMs()
  loopMs += now - last
  sliceMs = Math.max(sliceMs, now - last)
  last = now
}
setInterval(look, 5)

/** Waits until what has arrived is read: the loop works no more. */
async function whenIdle(): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    const before = loopMs
    await pause(10)
    look()
    quiet = loopMs - before < 2 ? quiet + 1 : 0
  }
}

/** What an earlier call held is free only after its finalizers have run. */
async function forgetEarlier(): Promise<void> {
  liveBytes()
  await pause(5)
}

process.on('message', async (question: Question) => {
  if (question === 'look') {
    look()
    return void process.send?.({ loopMs, sliceMs, heldBytes: 0, peakBytes: 0 } satisfies Measured)
  }
  if (question !== 'begin') await whenIdle()
  else await forgetEarlier()
  look()
  const now = question === 'end' ? live : liveBytes()
  // What the question takes is not the call's.
  last = workedMs()
  if (question === 'begin') {
    live = now
    loopMs = 0
    sliceMs = 0
    first ??= mostBytes()
  }
  const measured: Measured = { loopMs, sliceMs, heldBytes: now - live, peakBytes: mostBytes() - (first ?? 0) }
  process.send?.(measured)
})
process.on('disconnect', () => process.exit())
process.send?.(router.url)
