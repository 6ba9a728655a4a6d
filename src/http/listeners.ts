import { callRoutes } from './endpoints.ts'
import { listen } from './listen.ts'
import { createApp, type JsonRoute, type ServerRooms } from './server.ts'

/** The routes besides the calls: `common` ones are taken at every address, `manage` at its own when it has one. */
export type Routes = { common: readonly JsonRoute[]; open: readonly JsonRoute[]; manage: readonly JsonRoute[] }

/** A method, in capitals, and the path where it is taken, in Express's words: `/v1/responses/:id`. */
export type Endpoint = { method: string; path: string }

/** The open addresses of the service, and all that is taken there. */
export type Addresses = { url: string; manageUrl: string; endpoints: readonly Endpoint[]; closeDoors(): void }

/** Listens; the management API shares the address unless it has a port. All is closed with the stack. Throws the error of the system, or one that says what to write. */
export async function openAddresses(
  server: ServerRooms,
  { common, open, manage }: Routes,
  { host, port, managePort }: { host: string; port: number; managePort: number | null },
  started: AsyncDisposableStack,
): Promise<Addresses> {
  const at = async (chosen: number, calls: typeof callRoutes, reads: readonly JsonRoute[]) =>
    started.adopt(await listen(createApp(server, calls, reads), host, chosen), (listening) => listening.close())
  const shared = managePort === null
  if (managePort === port && port !== 0) {
    throw new Error(`manage.port is ${port}, the port of the server itself: write null to share it, or another number.`)
  }
  const main = await at(port, callRoutes, [...common, ...open, ...(shared ? manage : [])])
  const own = shared ? main : await at(managePort, [], [...common, ...manage])
  return {
    url: main.url,
    manageUrl: own.url,
    endpoints: [
      ...callRoutes.map(({ path }) => ({ method: 'POST', path })),
      ...[...common, ...open, ...manage].map(({ path, method = 'get' }) => ({ method: method.toUpperCase(), path })),
    ],
    closeDoors() {
      for (const listening of new Set([main, own])) listening.closeDoor()
    },
  }
}
