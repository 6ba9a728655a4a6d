import type { ServerContext } from './context.ts'
import { callRoutes } from './endpoints.ts'
import { listen } from './listen.ts'
import { createApp, type JsonRoute } from './server.ts'

/** The routes besides the calls: `common` ones at every address, `manage` at its own address when it has one. */
export type Routes = { common: readonly JsonRoute[]; open: readonly JsonRoute[]; manage: readonly JsonRoute[] }

/** A method, in capitals, and a path in Express's notation: `/v1/responses/:id`. */
export type Endpoint = { method: string; path: string }

/** The addresses of the service, and its endpoints. */
export type Listeners = { url: string; manageUrl: string; endpoints: readonly Endpoint[]; stopListening(): void }

/**
 * Listens; the management API shares the address unless it has a port of its own. The stack closes everything. Throws the
 * system's error, or one that names the setting to change.
 */
export async function openListeners(
  context: ServerContext,
  { common, open, manage }: Routes,
  { host, port, managePort }: { host: string; port: number; managePort: number | null },
  started: AsyncDisposableStack,
): Promise<Listeners> {
  const listenAt = async (chosen: number, calls: typeof callRoutes, reads: readonly JsonRoute[]) =>
    started.adopt(await listen(createApp(context, calls, reads), host, chosen), (listening) => listening.close())
  const shared = managePort === null
  if (managePort === port && port !== 0) {
    throw new Error(`manage.port is ${port}, the port of the server itself: write null to share it, or another number.`)
  }
  const main = await listenAt(port, callRoutes, [...common, ...open, ...(shared ? manage : [])])
  const own = shared ? main : await listenAt(managePort, [], [...common, ...manage])
  return {
    url: main.url,
    manageUrl: own.url,
    endpoints: [
      ...callRoutes.map(({ path }) => ({ method: 'POST', path })),
      ...[...common, ...open, ...manage].map(({ path, method = 'get' }) => ({ method: method.toUpperCase(), path })),
    ],
    stopListening() {
      for (const listening of new Set([main, own])) listening.stopListening()
    },
  }
}
