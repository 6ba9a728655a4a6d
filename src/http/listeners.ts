import type { Handler } from './app.ts'
import { homePage } from './console.ts'
import type { ServerContext } from './context.ts'
import { callRoutes } from './endpoints.ts'
import { type Listening, listen } from './listen.ts'
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

/** Where to listen; `reusePort` shares the port of the calls with other threads, which answer once all are `opened`. */
export type Where = {
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
  { host, port, managePort, reusePort = false, opened }: Where,
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

/** Every method and path. */
export function endpointsOf({ common, open, manage }: Omit<Routes, 'console'>): Endpoint[] {
  return [
    ...callRoutes.map(({ path }) => ({ method: 'POST', path })),
    ...[...common, ...open, ...manage].map(({ path, method = 'get' }) => ({ method: method.toUpperCase(), path })),
  ]
}
