/**
 * Loaded into a measured process before its own code (`--import`): answers what it has used, and profiles itself between two
 * questions for it, over the channel to its parent. It starts no timer and does not keep the process alive.
 */
import { Session } from 'node:inspector/promises'
import type { Worker } from 'node:worker_threads'
import { connections } from './connections.ts'
import type { Used } from './measured.ts'
import type { ThreadProfile } from './types.ts'

/** Microseconds between samples of the main thread. */
const samplingUs = 200
const workers = new Set<Worker>()
type Profiling = { stop(): Promise<ThreadProfile> }
let running: Promise<Profiling[]> | undefined

process.on('worker', (worker) => {
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
})
process.on('message', async (question) => {
  if (question !== 'profile') process.send?.(used())
  else if (running) {
    const threads = await running
    running = undefined
    process.send?.({ profiles: await Promise.all(threads.map((thread) => thread.stop())) })
  } else {
    running = Promise.all([profileMain(), ...[...workers].map(profileWorker)])
    await running
    process.send?.({})
  }
})
// A bench that fails leaves no process behind.
process.on('disconnect', () => process.exit(1))
process.channel?.unref()

function used(): Used {
  const { user, system } = process.cpuUsage()
  const main = process.threadCpuUsage()
  return {
    cpuUs: user + system,
    mainUs: main.user + main.system,
    rss: process.memoryUsage.rss(),
    mostRss: process.resourceUsage().maxRSS * 1_024,
    heldMs: Number.NaN,
    threadOf: connections(),
  }
}

async function profileMain(): Promise<Profiling> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: samplingUs })
  await session.post('Profiler.start')
  const begun = process.threadCpuUsage()
  return {
    async stop() {
      const { user, system } = process.threadCpuUsage(begun)
      const { profile } = await session.post('Profiler.stop')
      session.disconnect()
      return { name: 'main thread', profile, cpuUs: user + system }
    },
  }
}

async function profileWorker(worker: Worker): Promise<Profiling> {
  const begun = await worker.cpuUsage()
  const handle = await worker.startCpuProfile()
  return {
    async stop() {
      const { user, system } = await worker.cpuUsage(begun)
      const profile = JSON.parse(await handle.stop())
      return { name: `thread ${worker.threadId}`, profile, cpuUs: user + system }
    },
  }
}
