import type { Server, ServerOptions } from 'node:http'
import { type AddressInfo, type ListenOptions, Server as NetServer } from 'node:net'
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
 * each new connection to one of them. Rejects with the system's error.
 */
export async function listen(app: Express, host: string, port: number, { reusePort = false } = {}): Promise<Listening> {
  const server = createServer(classesOf(app), app)
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

/** The port if no other process listens there, for 0 any that is free. Rejects with the system's error. */
export async function freePort(host: string, port: number): Promise<number> {
  const probe = new NetServer()
  await listening(probe, { host, port })
  const { port: found } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return found
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
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
