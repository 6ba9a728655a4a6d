import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/** What one process has used so far: CPU in microseconds over all its threads, resident memory in bytes. */
export type Used = { cpuUs: number; rss: number }

/** A server in a process of its own that can be asked what it has used. */
export type Measured = { url: string; used(): Promise<Used>; stop(): Promise<void> }

/** In the child: listens on loopback, reports the URL to the parent, and answers its questions. */
export function serveMeasurements(server: Server): void {
  server.listen(0, '127.0.0.1', () => announce(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
}

/** In the child: reports its URL to the parent, and answers its questions. */
export function announce(url: string): void {
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.({ cpuUs: user + system, rss: process.memoryUsage().rss })
  })
  process.send?.({ url })
}

/** In the parent: starts a file of this folder as a server. */
export async function startMeasured(file: string, env: Record<string, string> = {}): Promise<Measured> {
  const child = fork(join(import.meta.dirname, file), {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
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
