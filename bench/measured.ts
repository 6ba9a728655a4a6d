import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/**
 * What one process has used so far: CPU in microseconds over all its threads, and of its main one where it says so, resident memory in bytes, now and at most,
 * and the longest time since the last question that its event loop was held, as time of the processor in milliseconds, where it
 * watches its loop; and which thread has the connection of which port of its clients, where BENCH_CONNECTIONS is set.
 */
export type Used = {
  cpuUs: number
  mainUs?: number
  rss: number
  mostRss: number
  heldMs: number
  threadOf?: [port: number, thread: number][]
}

/** A server in a process of its own that can be asked what it has used. */
export type Measured = { url: string; used(): Promise<Used>; stop(): Promise<void> }

/** In the child: listens on loopback, reports the URL to the parent, and answers its questions. */
export function serveMeasurements(server: Server): void {
  server.listen(0, '127.0.0.1', () => announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
}

/** In the child: reports its URL to the parent, and answers its questions; `watch` costs a timer of five milliseconds. */
export function announce(url: string, { watch = false } = {}): void {
  const loop = watch ? watchLoop() : undefined
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    const { maxRSS } = process.resourceUsage()
    process.send?.({
      cpuUs: user + system,
      rss: process.memoryUsage().rss,
      mostRss: maxRSS * 1_024,
      heldMs: loop?.longest() ?? Number.NaN,
    })
  })
  // A bench that fails leaves no process behind.
  process.on('disconnect', () => process.exit(1))
  process.send?.({ url })
}

/** The most that this thread has worked without coming round to its timers, in time of its own, whatever else runs here. */
function watchLoop(): { longest(): number } {
  let last = process.threadCpuUsage()
  let most = 0
  const look = () => {
    const { user, system } = process.threadCpuUsage(last)
    last = process.threadCpuUsage()
    most = Math.max(most, (user + system) / 1_000)
  }
  setInterval(look, 5)
  return {
    longest() {
      look()
      const longest = most
      most = 0
      return longest
    },
  }
}

/** In the parent: starts a file of this folder, or of another one, as a server. `cpus` are the only cores that it may
 * use (Linux), `heapMb` is the size of its heap, `flags` are others of Node. */
export async function startMeasured(
  file: string,
  env: Record<string, string> = {},
  { cpus, heapMb, flags = [] }: { cpus?: string | undefined; heapMb?: number; flags?: readonly string[] } = {},
): Promise<Measured> {
  const child = fork(join(import.meta.dirname, file), {
    env: { ...process.env, ...env },
    execArgv: [...flags, ...(heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`])],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  if (cpus !== undefined) pin(child.pid, cpus)
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${file} ended before it listened`)
  })
  const [{ url }] = (await Promise.race([once(child, 'message'), ended])) as [{ url: string }]
  return {
    url,
    used: async () => {
      child.send('used')
      const [answer] = (await once(child, 'message')) as [Used]
      return answer
    },
    stop: async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

/** Keeps all threads of a process on these cores; without taskset (util-linux) nothing is pinned. */
export function pin(pid: number | undefined, cpus: string): void {
  try {
    execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cpus, `${pid}`], { stdio: 'ignore' })
  } catch {}
}
