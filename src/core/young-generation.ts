import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/**
 * Sizes are megabytes of a semi-space, what V8 allocates before it collects the young generation; that takes up to three times as much.
 * V8 has no limit of it that can be changed later, but reads at every growth by which factor it grows; a factor of 1 is no growth.
 * The factor is that of the process, so each thread that needs another one sets it again and again.
 */
const doubled = '--semi-space-growth-factor=2'
const unchanged = '--semi-space-growth-factor=1'

/**
 * Keeps the young generation of the main thread at `usualMb`, and lets it grow to the limit of the heap where that pays: what outlives
 * two of its collections is old, and to collect what is old makes calls wait. With few requests at once hardly anything does. With a
 * crowd of requests that take a tenth of a second each nearly everything does, unless there is room for all that is allocated meanwhile.
 * Requests that take seconds, as long streams do, outlive any. Returns a function to call every 50 ms while requests run.
 */
export function holdYoungGeneration(
  running: { readonly begun: number; readonly size: number },
  usualMb: number,
): () => void {
  let [begun, ended] = [running.begun, running.begun - running.size]
  let [begunPerTick, endedPerTick] = [0, 0]
  return () => {
    const [hadBegun, hadEnded] = [begun, ended]
    begun = running.begun
    ended = begun - running.size
    begunPerTick += (begun - hadBegun - begunPerTick) / ticksOfMean
    endedPerTick += (ended - hadEnded - endedPerTick) / ticksOfMean
    // How long a request takes, by Little's law, where a crowd neither comes nor leaves.
    const ticks = running.size / Math.min(begunPerTick, endedPerTick)
    const mayGrow = semiSpaceMb() < usualMb || (running.size >= crowd && ticks <= briefTicks)
    setFlagsFromString(mayGrow ? doubled : unchanged)
  }
}

/** From here on what waits is as large as half of what a semi-space of the usual size holds. */
const crowd = 64
const ticksOfMean = 10
/** Half a second. */
const briefTicks = 10

/** Lets the young generation of another thread grow to `mb`, which is its limit, whatever the main thread does. Returns what to call now and then. */
export function growYoungGeneration(mb: number): () => void {
  return () => {
    if (semiSpaceMb() < mb) setFlagsFromString(doubled)
  }
}

/** V8 tells the size of two. */
function semiSpaceMb(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
  return (space?.space_size ?? 0) / 2 ** 21
}

/** V8 takes the size that a process was started with for all its threads, whatever they ask for. After this, only the main thread has it. */
export function leaveThreadsTheirSizes(): void {
  setFlagsFromString('--max-semi-space-size=0')
}
