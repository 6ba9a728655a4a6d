import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/**
 * Sizes are megabytes of a semi-space, what V8 allocates before it collects the young generation; that takes up to three times as much.
 * V8 has no limit of it that can be changed later, but reads at every growth by which factor it grows; a factor of 1 is no growth.
 * The factor is that of the process, so each thread that needs another one sets it again and again.
 */
const doubled = '--semi-space-growth-factor=2'
const unchanged = '--semi-space-growth-factor=1'

/**
 * Flag by which V8, once many objects have become old, allocates everything as old from then on, for the life of the process. All that such
 * an object refers to is taken to be alive until the old generation is collected: the texts of a conversation, long after its call.
 */
const oldAtOnce = '--allocation-site-pretenuring'
const nothingOldAtOnce = '--no-allocation-site-pretenuring'

/**
 * Default size: with as few concurrent calls as most processes have, they cost hardly more than with a larger one; with half of this a
 * twentieth more.
 */
export const usualMb = 16

/** The requests that run: how many there are, how many have begun since the start, and how long their JSON bodies are together. */
type Running = { readonly begun: number; readonly size: number; readonly bodyBytes: number }

/**
 * Keeps the young generation of the main thread at `mb`, and lets it grow to the limit of the heap where that pays: what outlives
 * two of its collections is old, and to collect what is old makes calls wait. With few requests at once hardly anything does. With a
 * crowd of requests that take a tenth of a second each nearly everything does, unless there is room for all that is allocated meanwhile;
 * so it does with a few long conversations. Requests that take seconds, as long streams do, outlive any. Returns a function to call many
 * times a second while requests run, and again and again while many begin, since V8 may double what it is allowed to between two calls.
 */
export function limitYoungGeneration(running: Running, mb: number): () => void {
  const rates = new Rates(running)
  return () => {
    rates.look(performance.now())
    const isCrowd = running.size >= crowd || running.bodyBytes >= crowdBytes
    const mayGrow = semiSpaceMb() < mb || (isCrowd && rates.meanMs() <= briefMs)
    if (running.begun > 0) setFlagsFromString(nothingOldAtOnce)
    setFlagsFromString(mayGrow ? doubled : unchanged)
  }
}

/** Number of requests whose waiting data is half as large as a semi-space of the default size: a body takes seven times its bytes. */
const crowd = 64
const crowdBytes = 1024 * 1024
const briefMs = 500

/** Rate at which requests begin and end in a millisecond, in the mean of the last half second. */
class Rates {
  readonly #running: Running
  #begun: number
  #ended: number
  #begunPerMs = 0
  #endedPerMs = 0
  #at = 0

  constructor(running: Running) {
    this.#running = running
    this.#begun = running.begun
    this.#ended = running.begun - running.size
  }

  look(at: number): void {
    const ms = at - this.#at
    if (ms < lookMs) return
    const weight = Math.min(1, ms / meanMs)
    const [hadBegun, hadEnded] = [this.#begun, this.#ended]
    const { begun, size } = this.#running
    this.#begun = begun
    this.#ended = begun - size
    this.#begunPerMs += ((begun - hadBegun) / ms - this.#begunPerMs) * weight
    this.#endedPerMs += ((this.#ended - hadEnded) / ms - this.#endedPerMs) * weight
    this.#at = at
  }

  /** Returns the mean time of a request, by Little's law, where a crowd neither comes nor leaves. */
  meanMs(): number {
    return this.#running.size / Math.min(this.#begunPerMs, this.#endedPerMs)
  }
}

const lookMs = 40
const meanMs = 500

/** Restores the flags that are changed here to those of a process that starts, until it is held again. */
export function restoreStartFlags(): void {
  setFlagsFromString(doubled)
  setFlagsFromString(oldAtOnce)
}

/**
 * Lets the young generation of another thread grow to `mb`, which is its limit, whatever the main thread does, and makes nothing old at
 * once. Returns what to call now and then while requests run.
 */
export function growYoungGeneration(mb: number): () => void {
  return () => {
    setFlagsFromString(nothingOldAtOnce)
    if (semiSpaceMb() < mb) setFlagsFromString(doubled)
  }
}

/** Returns the size of a semi-space: V8 reports that of two. */
function semiSpaceMb(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
  return (space?.space_size ?? 0) / 2 ** 21
}

/**
 * Restores the sizes that threads ask for: V8 applies the size that a process was started with to all of its threads. After this, only the
 * main thread has it.
 */
export function leaveThreadsTheirSizes(): void {
  setFlagsFromString('--max-semi-space-size=0')
}
