import type { Access } from './access/keys.ts'
import { openLimits } from './access/limits.ts'
import type { OrganizationCache } from './access/organizations.ts'
import type { Books } from './books.ts'
import { asRouterError, type RouterError } from './core/errors.ts'
import type { ServerContext } from './http/context.ts'
import { freePort } from './http/listen.ts'
import {
  endpointsOf,
  type Listeners,
  openListeners,
  openManagement,
  type Routes,
  requireOwnPort,
} from './http/listeners.ts'
import { RunningRequests } from './http/running-requests.ts'
import { jsonRoutes } from './json-routes.ts'
import { openBank } from './lending/bank.ts'
import { openLine } from './line.ts'
import { openBudget } from './money/budget.ts'
import { type Log, lineWriter } from './observe/log.ts'
import { openSignatureCache } from './routing/signature-cache.ts'
import type { Watch } from './snapshot/reload.ts'
import { textsOf } from './snapshot/snapshot.ts'
import { unavailable } from './store/store-error.ts'
import { routeName } from './threads/far-books.ts'
import { type Lines, startLines } from './threads/lines.ts'
import { sharedClock } from './threads/port.ts'

/** What serves calls in one or several threads: everything that the process has once. */
export type Served = {
  watch: Watch
  books: Books
  access: Access
  rulesOf: OrganizationCache['rulesOf']
  log: Log
  environment: NodeJS.ProcessEnv
  port: number
  patienceMs: number
  keepAliveMs: number
}

/** The addresses, and the end of all calls: new ones are refused, running ones aborted after a time. */
export type Serving = Omit<Listeners, 'stopListening'> & {
  threads: Lines['threads']
  /** From now on requests are answered. */
  open(): void
  stop(deadlineMs: number): Promise<void>
}

/** Serves in this thread, which owns all that its calls may spend. */
export async function serveInThisThread(served: Served, started: AsyncDisposableStack): Promise<Serving> {
  const { watch, books, access, rulesOf, port } = served
  const { store, ledger, damage, writeFailure } = books
  const admission = { budget: openBudget(store.spend), limits: openLimits(), writeFailure }
  const own = { store, ledger, admission, signatures: openSignatureCache(), onThrown: damage.saw }
  const line = openLine({ ...served, ...own }, started)
  const { stopping } = line.context
  const routes = jsonRoutes({ watch, store, access, rulesOf, stopping, writeFailure, damage: damage.failure })
  const { server, manage } = watch.current().config
  const where = { host: server.host, port, managePort: manage.port }
  const { stopListening, ...listeners } = await openListeners(line.context, routes, where, started)
  return { ...listeners, threads: () => [], open() {}, stop: (deadlineMs) => line.stop(deadlineMs, stopListening) }
}

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
