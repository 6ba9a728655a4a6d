import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'

/** A server that listens, and where. */
export type Listening = {
  url: string
  /** Takes no new connections; those there are go on. */
  closeDoor(): void
  /** Ends every connection. */
  close(): void
}

/** Listens at an address of this machine; port 0 takes any that is free. Rejects with the error of the system. */
export async function listen(app: RequestListener, host: string, port: number): Promise<Listening> {
  const server = createServer(app)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  // Longer than the minute after which load balancers reuse a connection, so that none is closed under a request.
  server.keepAliveTimeout = 65_000
  // Uploads may take long; how long an answer may take is for the limits of the provider to say.
  server.requestTimeout = 0
  return {
    url: urlOf(server, host),
    // An HTTP server that is closed would cut off answers that are ended and still on their way.
    closeDoor: () => void NetServer.prototype.close.call(server),
    close: () => server.close().closeAllConnections(),
  }
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
