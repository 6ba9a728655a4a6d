import { MainAccounts } from '../accounts/instance-accounts.ts'
import { allocateAccounts } from '../accounts/memory.ts'
import { explainServicesOf } from '../app/explain-services.ts'
import { processMetrics } from '../app/metrics.ts'
import { storedValues, valuesRoute } from '../app/plugin-services.ts'
import { jsonRoutes } from '../app/routes.ts'
import type { Served, Serving } from '../app/serving.ts'
import { asRouterError, type RouterError } from '../core/errors.ts'
import type { ServerContext } from '../http/context.ts'
import {
  endpointsOf,
  openManagement,
  type Routes,
  requireFreePort,
  requireOwnPort,
  reservePort,
} from '../http/listeners.ts'
import { RunningRequests } from '../http/running-requests.ts'
import { levelsOf, linesWriter, logOf } from '../observe/log.ts'
import type { CallsUnderWay } from '../observe/worker-metrics.ts'
import { sharedClock } from '../routing/findings.ts'
import { openSharedState, type SharedState } from '../routing/shared-state.ts'
import { collectWhenIdle } from '../runtime/collect.ts'
import { limitYoungGeneration } from '../runtime/young-generation.ts'
import { chosenFiles } from '../snapshot/snapshot.ts'
import { unavailable } from '../store/store-error.ts'
import { routeName } from './threads/messages.ts'
import { startWorkers, type WorkerPool, type WorkerPoolOptions } from './threads/worker-pool.ts'

/** The main thread keeps nothing for longer than it takes to write it. */
const youngMb = 8
const lookMs = 1_000

/** Holder of the workers, for those that start before them. */
export type WorkersHolder = { workers?: WorkerPool }

export type SeveralOptions = { count: number; holder: WorkersHolder }

/**
 * Serves in threads of their own, which listen at one address and share the accounts. This thread does the rest of the accounting: it writes
 * the rows of all, and answers everything that changes the database.
 */
export async function serveInThreads(
  served: Served,
  { count, holder }: SeveralOptions,
  started: AsyncDisposableStack,
): Promise<Serving> {
  const { watch, accounting } = served
  const { server, manage } = watch.current().config
  const routing = openSharedState({ settings: () => watch.current().config.health })
  const { routes, metrics } = routesOf(served, { holder, routing })
  requireOwnPort(served.port, manage.port)
  const { port, release } = await sharedPort(server.host, served.port)
  started.defer(release)
  // The workers find what this thread has found out about files.
  await watch.current().cache.written()
  const workers = startWorkers(poolOptions(served, { count, port, routes, routing }))
  holder.workers = workers
  started.adopt(workers, (open) => open.close())
  accounting.store.keys.onChange((hash) => workers.send({ kind: 'changed', change: { key: hash } }))
  accounting.store.organizations.onChange((id) => workers.send({ kind: 'changed', change: { organization: id } }))
  const url = await workers.started()
  release()
  const context = managementContext(served)
  const own =
    manage.port === null
      ? undefined
      : await openManagement(context, routes, { host: server.host, port: manage.port }, started)
  return {
    url,
    manageUrl: own?.url ?? url,
    endpoints: endpointsOf(routes),
    threads: () => workers.threads(),
    metrics,
    open: () => workers.open(),
    limitMemory() {
      const look = setInterval(limitYoungGeneration(context.running, youngMb), lookMs).unref()
      started.defer(() => clearInterval(look))
    },
    settle() {
      collectWhenIdle(context.running)
      workers.send({ kind: 'settle' })
    },
    retired: never,
    async stop(deadlineMs) {
      own?.stopListening()
      await workers.stop(deadlineMs)
      await context.running.endWithin(deadlineMs)
      await new Promise(setImmediate)
    },
  }
}

/** Promise that never resolves. */
const never = new Promise<void>(() => {})

/** `routing` is what all workers have found out about providers. */
type OpenParts = { port: number; count: number; routes: Routes; routing: SharedState }

function poolOptions(served: Served, { count, port, routes, routing }: OpenParts): WorkerPoolOptions {
  const { watch, accounting, log, environment: env, sampling, keepAliveMs } = served
  const { path: configPath, server, manage, store: stored } = watch.current().config
  const cacheFolder = watch.current().cache.folder
  const logs = { logLevels: levelsOf(log), storeUrl: stored.url, cacheFolder }
  const accounts = allocateAccounts({ columns: 1 + count })
  const ways = { configPath, env: { ...env }, sampling, keepAliveMs, workers: count, accounts, ...logs }
  return {
    count,
    setup: { ...ways, host: server.host, port, servesManagement: manage.port === null },
    current: () => ({
      generation: watch.current().generation,
      problems: watch.problems(),
      ...chosenFiles(watch.current()),
    }),
    accounting: {
      accounts: new MainAccounts(accounts, { now: sharedClock }),
      ledger: accounting.ledger,
      routes: new Map(
        [...routes.manage, ...routes.open, valuesRoute(storedValues(accounting.store))].map((route) => [
          routeName(route),
          route,
        ]),
      ),
      onThrown: (thrown: unknown) => explained(thrown, served),
    },
    log: logOf(log, 'worker'),
    writeLog: linesWriter(log),
    onRefused: accounting.refused.add,
    onDamage: (message) => accounting.damage.report({ message }),
    onSignatures() {},
    onFound: ({ findings }) => routing.merge(findings),
    onStart(worker) {
      worker.send({ kind: 'changed', change: { failure: accounting.writeFailure() } })
      worker.send({ kind: 'found', findings: routing.findings() })
    },
  }
}

/** Returns the port of all workers, for 0 any that is free, until they listen and it is released. */
async function sharedPort(host: string, port: number) {
  if (port === 0) return await reservePort(host)
  await requireFreePort(host, port)
  return { port, release() {} }
}

/** Returns the routes of this thread, and the metrics that one of them has. */
function routesOf(
  { watch, accounting, access, rulesOf }: Served,
  { holder, routing }: { holder: WorkersHolder; routing: SharedState },
): { routes: Routes } & Pick<Serving, 'metrics'> {
  const { store, writeFailure, damage } = accounting
  const stopping = () => false
  const degraded = () => routing.health.degraded()
  const workers = () => holder.workers?.facts() ?? { facts: [] }
  const metrics = () => {
    holder.workers?.send({ kind: 'watchLoop' })
    return processMetrics({ accounting, watch, degraded, workers })
  }
  const explaining = explainServicesOf({ watch, store, rulesOf, routing })
  const own = { watch, store, access, rulesOf, stopping, writeFailure, damage: damage.failure }
  const live = {
    watch: (organization: string) => accounting.live.watch(organization),
    underWay: (organization: string) =>
      together(workers().facts.flatMap(({ underWay }) => underWay[organization] ?? [])),
  }
  const failingHooks = () => workers().facts.flatMap(({ failingHooks = [] }) => failingHooks)
  const pluginActivity = () => ({
    runs: workers().facts.flatMap(({ hookRuns = [] }) => hookRuns),
    faults: workers().facts.flatMap(({ pluginFaults }) => pluginFaults),
  })
  const hooks = { failingHooks, pluginActivity }
  const routes = jsonRoutes({ ...own, ...hooks, degraded, metrics, explaining, live, refused: accounting.refused })
  return { routes, metrics }
}

function together(parts: readonly CallsUnderWay[]): CallsUnderWay {
  const sum = (of: (one: CallsUnderWay) => number) => parts.reduce((all, one) => all + of(one), 0)
  return { calls: sum(({ calls }) => calls), streams: sum(({ streams }) => streams) }
}

/** Returns the context of the management API's address, which serves no calls. */
function managementContext({ watch, accounting, log, sampling, keepAliveMs }: Served): ServerContext {
  const server = () => watch.current().config.server
  return {
    services() {
      throw new Error('the main thread serves no calls')
    },
    bodyLimits: () => server().body,
    sampling,
    corsOrigins: () => server().cors,
    log,
    onThrown: accounting.damage.saw,
    stopping: () => false,
    running: new RunningRequests(),
    clientTimeoutMs: () => server().clientTimeoutMs,
    clientMinRate: () => server().clientMinRate,
    keepAliveMs,
    keepsAliveEarly: () => false,
  }
}

/** Returns the error for clients of what a route has thrown. */
function explained(thrown: unknown, { accounting, log }: Served): RouterError {
  accounting.damage.saw(thrown)
  const fault = unavailable(thrown)
  if (fault) log.warn({ err: thrown }, 'the database could not be used')
  return fault ?? asRouterError(thrown)
}
