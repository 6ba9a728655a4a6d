/** Loaded with the probe: which thread has the connection of which port of a client, where BENCH_CONNECTIONS is set. */
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads'

const found = new Map<number, number>()
if (process.env.BENCH_CONNECTIONS) shareConnections()

/** In the main thread: what the threads have told. */
export function connections(): [port: number, thread: number][] {
  return [...found]
}

function shareConnections(): void {
  const channel = new BroadcastChannel('bench-connections')
  channel.unref()
  channel.onmessage = (event) => {
    const [port, thread] = (event as { data: [number, number] }).data
    found.set(port, thread)
  }
  if (isMainThread) return
  subscribe('http.server.request.start', (message) => {
    const { request } = message as { request: IncomingMessage }
    channel.postMessage([request.socket.remotePort, threadId])
  })
}
