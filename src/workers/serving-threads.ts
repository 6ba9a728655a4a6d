import { MainAccounts } from '../accounts/instance-accounts.ts'
import { type AccountMemory, allocateAccounts } from '../accounts/memory.ts'
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
import { spendReader } from '../money/payments.ts'
import { levelsOf, linesWriter, logOf } from '../observe/log.ts'
import type { CallsUnderWay } from '../observe/worker-metrics.ts'
import { sharedClock } from '../routing/findings.ts'
import { openSharedState, type SharedState } from '../routing/shared-state.ts'
import { collectWhenIdle } from '../runtime/collect.ts'
import { limitYoungGeneration } from '../runtime/young-generation.ts'
import { chosenFiles } from '../snapshot/snapshot.ts'
import type { Store } from '../store/open.ts'
import { unavailable } from '../store/store-error.ts'
import { Handover } from './handover/handover.ts'
import type { FromNew, FromOld } from './handover/messages.ts'
import { type Handed, Predecessor } from './handover/predecessor.ts'
import { type MainMessage, routeName } from './threads/messages.ts'
import { startWorkers, type WorkerPool, type WorkerPoolOptions } from './threads/worker-pool.ts'

/** The main thread keeps nothing for longer than it takes to write it. */
const youngMb = 8
const lookMs = 1_000

/** Holder of those that follow what the main thread knows: the workers, and the process that served before. */
export type WorkersHolder = { workers?: WorkerPool; predecessor?: Predecessor }

/** Number of threads; `handed` is the process that served before, `mayHandOver` says whether another one may follow. */
export type SeveralOptions = {
  count: number
  holder: WorkersHolder
  handed?: Handed | undefined
  mayHandOver: boolean
}

/**
 * Serves in threads of their own, which listen at one address and share the accounts. This thread does the rest of the accounting: it writes
 * the rows of all, and answers everything that changes the database.
 */
export async function serveInThreads(
  served: Served,
  { count, holder, handed, mayHandOver }: SeveralOptions,
  started: AsyncDisposableStack,
): Promise<Serving> {
  const { watch, accounting } = served
  const { server, manage } = watch.current().config
  const routing = openSharedState({ settings: () => watch.current().config.health })
  const { routes, metrics } = routesOf(served, { holder, routing })
  requireOwnPort(served.port, manage.port)
  const { port, release } = await sharedPort(server.host, served.port, handed?.port)
  started.defer(release)
  // The workers find what this thread has found out about files.
  await watch.current().cache.written()
  const retire = async () => {
    context.running.endEndless()
    await Promise.all([workers.retire(), own?.retire()])
  }
  const memory = allocateAccounts({ columns: 2 + count })
  const accounts = new MainAccounts(memory, { now: sharedClock })
  const handover = openHandover(served, { port, accounts, holder, routing, retire })
  started.defer(() => handover.close())
  const parts = { count, port, routes, routing, memory, accounts, handover, holder }
  const workers = startWorkers(poolOptions(served, parts))
  holder.workers = workers
  if (handed) holder.predecessor = followPredecessor(served, handed, { ...parts, thread: 1 + count })
  started.defer(() => holder.predecessor?.close())
  started.adopt(workers, (open) => open.close())
  sendChanges(accounting.store, (message) => {
    workers.send(message)
    sendOthers({ handover, holder }, message)
  })
  const url = await workers.started()
  release()
  const context = managementContext(served)
  const own =
    manage.port === null
      ? undefined
      : await openManagement(
          context,
          routes,
          await sharedAddress(server.host, manage.port, { handed, mayHandOver }),
          started,
        )
  return {
    url,
    manageUrl: own?.url ?? url,
    endpoints: endpointsOf(routes),
    threads: () => workers.threads(),
    metrics,
    open() {
      workers.open()
      holder.predecessor?.send({ kind: 'stop' })
      if (mayHandOver) void handover.offer()
    },
    limitMemory() {
      const look = setInterval(limitYoungGeneration(context.running, youngMb), lookMs).unref()
      started.defer(() => clearInterval(look))
    },
    settle() {
      collectWhenIdle(context.running)
      workers.send({ kind: 'settle' })
    },
    retired: handover.retired,
    async stop(deadlineMs) {
      own?.stopListening()
      await workers.stop(deadlineMs)
      await context.running.endWithin(deadlineMs)
      await new Promise(setImmediate)
    },
  }
}

/** Sends what changes in the store. */
function sendChanges({ keys, organizations }: Store, send: (message: Shared) => void): void {
  keys.onChange((hash) => send({ kind: 'changed', change: { key: hash } }))
  organizations.onChange((id) => send({ kind: 'changed', change: { organization: id } }))
}

/** `routing` is what all workers have found out about providers. */
type OpenParts = {
  port: number
  count: number
  routes: Routes
  routing: SharedState
  memory: AccountMemory
  accounts: MainAccounts
  handover: Handover
  holder: WorkersHolder
}

/** Opens the way on which another process may take over. */
function openHandover(
  { watch, accounting, log }: Served,
  {
    port,
    accounts,
    holder,
    routing,
    retire,
  }: Pick<OpenParts, 'port' | 'accounts' | 'holder' | 'routing'> & { retire(): Promise<void> },
): Handover {
  return new Handover({
    storeUrl: watch.current().config.store.url,
    ...{ port, accounting, accounts, retire },
    readSpent: spendReader(accounting.store.immediate.spend),
    log: logOf(log, 'worker'),
    rows: () => holder.workers?.rows() ?? [],
    findings: routing.findings,
    reasonToKeep: () =>
      holder.predecessor && !holder.predecessor.isGone ? 'calls of the process before it still run.' : undefined,
    onMessage(message) {
      if (message.kind === 'found') routing.merge(message.findings)
      if (isForWorkers(message)) holder.workers?.send(message)
    },
  })
}

/** Lets the last calls of the process that served before use the accounts of this one. */
function followPredecessor(
  { accounting }: Served,
  { channel }: Handed,
  {
    accounts,
    thread,
    routing,
    holder,
    handover,
  }: Pick<OpenParts, 'accounts' | 'routing' | 'handover' | 'holder'> & { thread: number },
): Predecessor {
  const { store, writeFailure } = accounting
  return new Predecessor(channel, {
    ...{ accounts, thread, writeFailure },
    readSpent: spendReader(store.immediate.spend),
    ledger: handover.ledger,
    onMessage(message) {
      if (message.kind === 'found') routing.merge(message.findings)
      if (isForWorkers(message)) holder.workers?.send(message)
    },
  })
}

/** A message that processes pass on to their workers. */
type Shared = Extract<MainMessage, { kind: 'changed' | 'signatures' | 'found' }>

function isForWorkers(message: FromOld | FromNew): message is Shared {
  return message.kind === 'changed' || message.kind === 'signatures' || message.kind === 'found'
}

/** Sends a message to the processes that served before and that serve after this one. */
function sendOthers({ handover, holder }: Pick<OpenParts, 'handover' | 'holder'>, message: Shared): void {
  handover.send(message)
  holder.predecessor?.send(message)
}

function poolOptions(served: Served, own: OpenParts): WorkerPoolOptions {
  const { count, port, routes, routing, memory, accounts, handover } = own
  const { watch, accounting, log, environment: env, sampling, keepAliveMs } = served
  const { path: configPath, server, manage, store: stored } = watch.current().config
  const cacheFolder = watch.current().cache.folder
  const logs = { logLevels: levelsOf(log), storeUrl: stored.url, cacheFolder }
  const ways = { configPath, env: { ...env }, sampling, keepAliveMs, workers: count, accounts: memory, ...logs }
  return {
    count,
    setup: { ...ways, host: server.host, port, servesManagement: manage.port === null },
    current: () => ({
      generation: watch.current().generation,
      problems: watch.problems(),
      ...chosenFiles(watch.current()),
    }),
    accounting: {
      accounts,
      ledger: handover.ledger,
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
    onSignatures: (message) => sendOthers(own, message),
    onFound(message) {
      routing.merge(message.findings)
      sendOthers(own, message)
    },
    onStart(worker) {
      worker.send({ kind: 'changed', change: { failure: accounting.writeFailure() } })
      worker.send({ kind: 'found', findings: routing.findings() })
    },
  }
}

/** Returns an address that the process which serves before or after this one may have as well, but no other. */
async function sharedAddress(
  host: string,
  port: number,
  { handed, mayHandOver }: Pick<SeveralOptions, 'handed' | 'mayHandOver'>,
) {
  await requireFreePort(host, port, handed && port)
  return { host, port, reusePort: mayHandOver }
}

/** Returns the port of all workers, for 0 any that is free, until they listen and it is released; `handed` is that of another process. */
async function sharedPort(host: string, port: number, handed: number | undefined) {
  if (port === 0) return await reservePort(host)
  await requireFreePort(host, port, handed)
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
