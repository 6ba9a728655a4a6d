import type { Server } from 'node:http'
import { type AddressInfo, connect, type ListenOptions, Server as NetServer } from 'node:net'
import { type App, appServer, type Handler, lastResort } from './app.ts'
import { homePage } from './console.ts'
import type { ServerContext } from './context.ts'
import { callRoutes } from './endpoints.ts'
import { createApp } from './server.ts'
import type { JsonRoute } from './types.ts'

/** The routes besides the calls: `common` ones at every address, `manage` and the console at their own address when they have one. */
export type Routes = {
  common: readonly JsonRoute[]
  open: readonly JsonRoute[]
  manage: readonly JsonRoute[]
  console: Handler
}

/** A method, in capitals, and a path in Express's notation: `/v1/responses/:id`. */
export type Endpoint = { method: string; path: string }

/** The addresses of the service, and its endpoints. */
export type Listeners = {
  url: string
  manageUrl: string
  endpoints: readonly Endpoint[]
  stopListening(): void
  retire(): Promise<void>
}

/** Address to listen on; `reusePort` shares the port of the calls with other threads, which answer once all are `opened`. */
type ListenAddress = {
  host: string
  port: number
  managePort: number | null
  reusePort?: boolean
  opened?: Promise<void>
}

/**
 * Listens; the management API shares the address unless it has a port of its own. The stack closes everything. Throws the
 * system's error, or one that names the setting to change.
 */
export async function openListeners(
  context: ServerContext,
  routes: Routes,
  { host, port, managePort, reusePort = false, opened }: ListenAddress,
  started: AsyncDisposableStack,
): Promise<Listeners> {
  const { common, open, manage } = routes
  requireOwnPort(port, managePort)
  const isShared = managePort === null
  const app = createApp(
    context,
    callRoutes,
    [...common, ...open, ...(isShared ? manage : [])],
    isShared ? routes.console : homePage(),
  )
  const main = started.adopt(await listen(app, host, port, { reusePort, opened }), (listening) => listening.close())
  const own = isShared ? main : await openManagement(context, routes, { host, port: managePort }, started)
  return {
    url: main.url,
    manageUrl: own.url,
    endpoints: endpointsOf(routes),
    stopListening() {
      for (const listening of new Set([main, own])) listening.stopListening()
    },
    async retire() {
      context.running.endEndless()
      await Promise.all([...new Set([main, own])].map((listening) => listening.retire()))
    },
  }
}

/** Listens for the management API alone. */
export async function openManagement(
  context: ServerContext,
  { common, manage, console }: Routes,
  { host, port, reusePort = false }: { host: string; port: number; reusePort?: boolean },
  started: AsyncDisposableStack,
): Promise<Listening> {
  return started.adopt(
    await listen(createApp(context, [], [...common, ...manage], console), host, port, { reusePort }),
    (open) => open.close(),
  )
}

/** Throws an error that names the setting to change when the management API would have the port of the calls. */
export function requireOwnPort(port: number, managePort: number | null): void {
  if (managePort !== port || port === 0) return
  throw new Error(`manage.port is ${port}, the port of the server itself: write null to share it, or another number.`)
}

/** Lists every method and path. */
export function endpointsOf({ common, open, manage }: Omit<Routes, 'console'>): Endpoint[] {
  return [
    ...callRoutes.map(({ path }) => ({ method: 'POST', path })),
    ...[...common, ...open, ...manage].map(({ path, method = 'get' }) => ({ method: method.toUpperCase(), path })),
  ]
}

/** A listening server. */
type Listening = {
  url: string
  /** Accepts no new connections; existing ones go on. */
  stopListening(): void
  /**
   * Accepts no new connections, closes each of the others with the next response on it, or when it has been silent as long as
   * usual, and resolves when none is left.
   */
  retire(): Promise<void>
  /** Closes every connection. */
  close(): void
}

/**
 * Listens at an address of this machine; port 0 takes any free one. `reusePort` shares it with other threads: the system gives
 * each new connection to one of them. Requests wait until it is `opened`. Rejects with the system's error.
 */
async function listen(
  app: App,
  host: string,
  port: number,
  { reusePort = false, opened }: { reusePort?: boolean; opened?: Promise<void> | undefined } = {},
): Promise<Listening> {
  let isRetiring = false
  const server = appServer((request, response) => {
    if (isRetiring) response.shouldKeepAlive = false
    const handle = () => app.handle(request, response, lastResort(request, response))
    if (opened) void opened.then(handle)
    else handle()
  })
  await listening(server, { host, port, reusePort, backlog: maxUnaccepted })
  // Longer than the minute after which load balancers reuse a connection, so that none is closed under a request.
  server.keepAliveTimeout = 65_000
  // Uploads may take long, and the provider's timeouts limit the rest.
  server.requestTimeout = 0
  return {
    url: urlOf(server, host),
    // Closing the HTTP server itself would cut off responses that are complete but not yet sent.
    stopListening: () => void NetServer.prototype.close.call(server),
    async retire() {
      await quiet(server)
      const closed = new Promise<void>((resolve) => void NetServer.prototype.close.call(server, () => resolve()))
      // Not earlier: clients that are asked to reconnect could do it in the moment in which the port closes.
      isRetiring = true
      await closed
    },
    close: () => server.close().closeAllConnections(),
  }
}

/**
 * Connections that wait to be accepted: Linux drops those beyond, and their clients try again after a second, then after three. Node
 * asks for 511; the system may allow fewer (`net.core.somaxconn`).
 */
const maxUnaccepted = 4_096

/**
 * Rejects as listening does where another process listens: a port that is shared could be shared with it. `shared` is one that may
 * be.
 */
export async function requireFreePort(host: string, port: number, shared?: number): Promise<void> {
  if (port === 0 || port === shared || !(await answers(host, port))) return
  const message = `listen EADDRINUSE: address already in use ${host}:${port}`
  throw Object.assign(new Error(message), { code: 'EADDRINUSE', address: host, port })
}

/**
 * Reserves any free port, for servers that share it. Nobody else gets it before it is released: until one of them listens, the system
 * could give it to a connection.
 */
export async function reservePort(host: string): Promise<{ port: number; release(): void }> {
  const server = new NetServer((socket) => socket.destroy())
  await listening(server, { host, port: 0, reusePort: true })
  const { port } = server.address() as AddressInfo
  return { port, release: () => void server.close() }
}

/** Checks whether anybody listens. */
async function answers(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host: reachable(host), port })
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  return await promise.finally(() => socket.destroy())
}

/** Returns an address at which a server that listens at all addresses can be reached. */
function reachable(host: string): string {
  return host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
}

/**
 * Resolves in a turn of the event loop in which no connection has arrived: those that the system has established and that are not
 * accepted yet are cut off when a server closes.
 */
async function quiet(server: NetServer): Promise<void> {
  let last = performance.now()
  const until = last + maxLoudMs
  let turns = 0
  const onConnection = () => {
    turns = 0
    last = performance.now()
  }
  server.on('connection', onConnection)
  while (turns < quietTicks && last < until) {
    turns++
    await new Promise(setImmediate)
  }
  server.off('connection', onConnection)
}

const quietTicks = 3
const maxLoudMs = 1_000

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
