import { subscribe } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import type * as undici from 'undici'

const load = createRequire(import.meta.url)

/** A pool of connections. The package as a whole also loads fetch, WebSocket and caches, which nothing here uses: 6 MB. */
export const Agent = load('undici/lib/dispatcher/agent.js') as typeof undici.Agent
const buildConnector = load('undici/lib/core/connect.js') as typeof undici.buildConnector
export type Agent = undici.Agent

/** Opens a pool of HTTP/1.1 connections, whose errors tell of `wasKept`; a pool that keeps none opens one for each request. */
export function openAgent({ connectMs, keeps }: { connectMs: number; keeps: boolean }): Agent {
  countRequests()
  const connect = buildConnector({ timeout: connectMs, allowH2: false })
  const connector: undici.buildConnector.connector = (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      // Before undici's own listener: it hands the error on.
      socket?.on('error', (error) => {
        if ((requests.get(socket) ?? 0) > 1) kept.add(error)
      })
      callback(...result)
    })
  return new Agent({
    connect: connector,
    // Our own deadlines limit the response: the pool's limits are too coarse.
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: null,
    ...(!keeps && { pipelining: 0 }),
  })
}

/** Whether an error is of a connection that had served a request before: its other end may have closed it as this one was sent. */
export function wasKept(error: unknown): boolean {
  return typeof error === 'object' && error !== null && kept.has(error)
}

const kept = new WeakSet<object>()
const requests = new WeakMap<Socket, number>()
let isCounting = false

function countRequests(): void {
  if (isCounting) return
  isCounting = true
  subscribe('undici:client:sendHeaders', (message) => {
    const { socket } = message as { socket: Socket }
    requests.set(socket, (requests.get(socket) ?? 0) + 1)
  })
}
