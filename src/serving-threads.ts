import type { Books } from './books.ts'
import { asRouterError, type RouterError } from './core/errors.ts'
import type { ServerContext } from './http/context.ts'
import { freePort } from './http/listen.ts'
import { endpointsOf, openManagement, type Routes, requireOwnPort } from './http/listeners.ts'
import { RunningRequests } from './http/running-requests.ts'
import { jsonRoutes } from './json-routes.ts'
import { openBank } from './lending/bank.ts'
import { lineWriter } from './observe/log.ts'
import type { Served, Serving } from './serving.ts'
import { textsOf } from './snapshot/snapshot.ts'
import { unavailable } from './store/store-error.ts'
import { type Lines, startLines } from './threads/lines.ts'
import { routeName } from './threads/messages.ts'
import { sharedClock } from './threads/port.ts'

/**
 * Serves in threads of their own, which listen at one address. This thread has the books: it writes their rows, lends them what
 * they may spend, and answers all that changes the database.
 */
export async function serveInThreads(
  served: Served,
  { count, lines: holder }: { count: number; lines: { lines?: Lines } },
  started: AsyncDisposableStack,
): Promise<Serving> {
  const { watch, books, log } = served
  const { server, manage, store: stored } = watch.current().config
  const routes = routesOf(served)
  requireOwnPort(served.port, manage.port)
  const port = await freePort(server.host, served.port)
  const nearBooks = {
    bank: openBank({
      readSpent: (account) => spentIn(books, account),
      recall: (line, accounts) => holder.lines?.recall(line, accounts) ?? Promise.reject(new Error('no thread')),
      now: sharedClock,
    }),
    ledger: books.ledger,
    writeFailure: books.writeFailure,
    routes: new Map([...routes.manage, ...routes.open].map((route) => [routeName(route), route])),
    onThrown: (thrown: unknown) => explained(thrown, served),
  }
  const { environment: env, patienceMs, keepAliveMs } = served
  const { path: configPath } = watch.current().config
  const cacheFolder = watch.current().cache.folder
  const logs = { logLevel: log.level, storeUrl: stored.url, cacheFolder }
  const ways = { configPath, env: { ...env }, patienceMs, keepAliveMs, ...logs }
  const lines = startLines({
    count,
    setup: { ...ways, host: server.host, port, servesManagement: manage.port === null },
    current: () => ({ generation: watch.current().generation, texts: textsOf(watch.current()) }),
    books: nearBooks,
    log,
    writeLog: lineWriter(log),
    onDamage: (message) => books.damage.report({ message }),
    onStart: (line) => line.tell({ kind: 'failure', failure: books.writeFailure() }),
  })
  holder.lines = lines
  started.adopt(lines, (open) => open.close())
  books.store.keys.onChange((hash) => lines.tell({ kind: 'key', hash }))
  books.store.organizations.onChange((id) => lines.tell({ kind: 'organization', id }))
  const url = await lines.started()
  const context = managementContext(served)
  const own =
    manage.port === null ? undefined : await openManagement(context, routes, { ...server, port: manage.port }, started)
  return {
    url,
    manageUrl: own?.url ?? url,
    endpoints: endpointsOf(routes),
    threads: () => lines.threads(),
    open: () => lines.open(),
    async stop(deadlineMs) {
      own?.stopListening()
      await lines.stop(deadlineMs)
      const timer = setTimeout(() => context.running.abortAll(), deadlineMs)
      await context.running.allEnded()
      clearTimeout(timer)
      await new Promise(setImmediate)
    },
  }
}

/** The routes of this thread. */
function routesOf({ watch, books, access, rulesOf }: Served): Routes {
  const { store, writeFailure, damage } = books
  return jsonRoutes({ watch, store, access, rulesOf, stopping: () => false, writeFailure, damage: damage.failure })
}

/** The address of the management API serves no calls. */
function managementContext({ watch, books, log, patienceMs, keepAliveMs }: Served): ServerContext {
  const server = () => watch.current().config.server
  return {
    services() {
      throw new Error('this thread serves no calls')
    },
    bodyLimits: () => server().body,
    corsOrigins: () => server().cors,
    log,
    onThrown: books.damage.saw,
    stopping: () => false,
    running: new RunningRequests(),
    patienceMs,
    keepAliveMs,
  }
}

/** The spend of an account of money by the name that purses use: `key <id> <month>`, `group <id> <month>`, `organization <id>`. */
function spentIn({ store }: Books, account: string): bigint {
  const [owner, id = '', month] = account.split(' ')
  if (owner === 'organization') return store.spend.totalOfOrganization(id)
  const at = Date.parse(`${month}-01T00:00:00Z`)
  return owner === 'key' ? store.spend.ofKey(id, at) : store.spend.ofGroup(id, at)
}

/** What clients are told of an error of a route. */
function explained(thrown: unknown, { books, log }: Served): RouterError {
  books.damage.saw(thrown)
  const fault = unavailable(thrown)
  if (fault) log.warn({ err: thrown }, 'the database could not be used')
  return fault ?? asRouterError(thrown)
}
