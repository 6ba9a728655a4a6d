import type { RequestListener, Server } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'

// An import would evaluate all exports of the module, a second HTTP client among them: 12 MB and 30 ms.
const { createServer } = process.getBuiltinModule('node:http')

/** A listening server. */
export type Listening = {
  url: string
  /** Accepts no new connections; existing ones go on. */
  stopListening(): void
  /** Closes every connection. */
  close(): void
}

/** Listens at an address of this machine; port 0 takes any free one. Rejects with the system's error. */
export async function listen(app: RequestListener, host: string, port: number): Promise<Listening> {
  const server = createServer(app)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
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

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
