import type { Server, ServerOptions } from 'node:http'
import { type AddressInfo, connect, type ListenOptions, Server as NetServer } from 'node:net'
import type { Express } from 'express'

// An import would evaluate all exports of the module, a second HTTP client among them: 12 MB and 30 ms.
const { createServer, IncomingMessage, ServerResponse } = process.getBuiltinModule('node:http')

/** A listening server. */
export type Listening = {
  url: string
  /** Accepts no new connections; existing ones go on. */
  stopListening(): void
  /** Closes every connection. */
  close(): void
}

/**
 * Listens at an address of this machine; port 0 takes any free one. `reusePort` shares it with other threads: the system gives
 * each new connection to one of them. Requests wait until it is `opened`. Rejects with the system's error.
 */
export async function listen(
  app: Express,
  host: string,
  port: number,
  { reusePort = false, opened }: { reusePort?: boolean; opened?: Promise<void> | undefined } = {},
): Promise<Listening> {
  const server = createServer(classesOf(app), opened ? (...given) => void opened.then(() => app(...given)) : app)
  await listening(server, { host, port, reusePort })
  // Longer than the minute after which load balancers reuse a connection, so that none is closed under a request.
  server.keepAliveTimeout = 65_000
  // Uploads may take long, and the provider's timeouts limit the rest.
  server.requestTimeout = 0
  return {
    url: urlOf(server, host),
    // Closing the HTTP server itself would cut off responses that are complete but not yet sent.
    stopListening: () => void NetServer.prototype.close.call(server),
    close: () => server.close().closeAllConnections(),
  }
}

/**
 * The port of an address, for 0 any that is free. Rejects as listening does where another process is there: ports that are shared
 * could be shared with it.
 */
export async function freePort(host: string, port: number): Promise<number> {
  if (port === 0) return await anyPort(host)
  if (!(await answers(host, port))) return port
  const message = `listen EADDRINUSE: address already in use ${host}:${port}`
  throw Object.assign(new Error(message), { code: 'EADDRINUSE', address: host, port })
}

async function anyPort(host: string): Promise<number> {
  const probe = new NetServer()
  await listening(probe, { host, port: 0 })
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}

/** Whether anybody listens. */
async function answers(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host: reachable(host), port })
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  return await promise.finally(() => socket.destroy())
}

/** An address at which a server that listens at all addresses can be reached. */
function reachable(host: string): string {
  return host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
}

/**
 * Requests and responses that have the prototypes of Express from the start. To change the prototype of each takes longer than
 * all else that Express does for a call.
 */
function classesOf(app: Express): ServerOptions {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {}
  app.request = Object.setPrototypeOf(AppRequest.prototype, app.request)
  app.response = Object.setPrototypeOf(AppResponse.prototype, app.response)
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse as typeof ServerResponse }
}

async function listening(server: NetServer, options: ListenOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options, resolve)
  })
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  const name = reachable(host)
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
