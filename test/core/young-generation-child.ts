/**
 * Allocates while requests of a kind run, under flags set late, and prints the size of a semi-space that V8 has come to: the arguments
 * are the name of the kind, and the flags.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { isMainThread, resourceLimits, Worker } from 'node:worker_threads'
import {
  growYoungGeneration,
  leaveThreadsTheirSizes,
  limitYoungGeneration,
} from '../../src/runtime/young-generation.ts'

const running = { begun: 0, size: 0, bodyBytes: 0 }
const kept: unknown[] = []

/** What requests do in each tick. */
const kinds: Record<string, (tick: number) => void> = {
  few() {
    running.size = 32
    running.begun += 100
  },
  'brief ones of a crowd'() {
    running.size = 250
    running.begun += 100
  },
  'brief ones with long bodies'() {
    running.size = 16
    running.bodyBytes = 2_000_000
    running.begun += 100
  },
  'long streams'() {
    running.size = 1_000
    running.begun += 1
  },
  'long streams that begin'(tick) {
    running.size = tick * 10
    running.begun = tick * 10
  },
  'long streams that end'(tick) {
    running.begun = 1_000
    running.size = Math.max(0, 1_000 - tick)
  },
}

if (isMainThread) main(process.argv[2] ?? '')
else work(growYoungGeneration((resourceLimits.maxYoungGenerationSizeMb ?? 0) / 3))

function main(name: string): void {
  leaveThreadsTheirSizes()
  for (const flag of process.argv.slice(3)) setFlagsFromString(flag)
  if (name === 'another thread') {
    // The main thread has come to its size, and wants no growth.
    work(limitYoungGeneration(running, 16))
    new Worker(new URL(import.meta.url), { resourceLimits: { maxYoungGenerationSizeMb: 24 } })
    return
  }
  const kind = kinds[name]
  if (!kind) throw new Error(`no kind ${name}`)
  let tick = 0
  const look = limitYoungGeneration(running, 16)
  performance.now = () => tick * 50
  work(() => {
    kind(tick++)
    look()
  })
}

/** A megabyte in each tick, of which nearly all outlives a collection or two: V8 grows the young generation as fast as it may. */
function work(onTick: () => void): void {
  for (let tick = 0; tick < 1_000; tick++) {
    onTick()
    for (let index = 0; index < 5_000; index++) kept[(tick * 5_000 + index) % 20_000] = new Array(20).fill(index)
  }
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
  console.log((space?.space_size ?? 0) / 2 ** 21)
}
