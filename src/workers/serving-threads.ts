import type { Accounting } from '../app/accounting.ts'
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
import { openBank } from '../lending/bank.ts'
import { levelsOf, linesWriter, logOf } from '../observe/log.ts'
import type { CallsUnderWay } from '../observe/worker-metrics.ts'
import { sharedClock } from '../routing/findings.ts'
import { openSharedState, type SharedState } from '../routing/shared-state.ts'
import { collectWhenIdle } from '../runtime/collect.ts'
import { limitYoungGeneration } from '../runtime/young-generation.ts'
import { chosenFiles } from '../snapshot/snapshot.ts'
import { unavailable } from '../store/store-error.ts'
import { openAdoption } from './adoption.ts'
import { Handover, type HandoverParts } from './handover.ts'
import type { Handed } from './threads/adopted-lines.ts'
import type { FromNew, FromOld } from './threads/handover-messages.ts'
import { type Lines, type LinesOptions, startLines } from './threads/lines.ts'
import { routeName, type Told } from './threads/messages.ts'
import type { Adoption } from './types.ts'

/** The books keep nothing for longer than it takes to write it. */
const youngMb = 8
const lookMs = 1_000

/** All that are to be told what the books know: the lines of this process, and those of the one that served before. */
export type LinesHolder = { lines?: Lines; adopted?: Adoption }

/** How many threads; `handed` are the books of the process that served before, `mayHandOver` says whether another one may follow. */
export type SeveralOptions = {
  count: number
  holder: LinesHolder
  handed?: Handed | undefined
  mayHandOver: boolean
}

/**
 * Serves in threads of their own, which listen at one address. This thread has the books: it writes their rows, lends them what
 * they may spend, and answers all that changes the database.
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
  const retire = async () => {
    context.running.endEndless()
    await Promise.all([lines.retire(), own?.retire()])
  }
  const adoption = openAdoption({ books: accounting, routing, handover: () => handover, lines: () => lines })
  holder.adopted = adoption
  const handover = openHandover(served, { port, holder, retire, routing, adopt: adoption.later })
  started.defer(() => handover.close())
  // The lines find what this thread has found out about files.
  await watch.current().cache.written()
  const lines = startLines(linesOptions(served, { count, port, routes, holder, handover, routing }))
  holder.lines = lines
  started.defer(() => adoption.close())
  if (handed) adoption.first(handed)
  started.adopt(lines, (open) => open.close())
  const tellAll = (told: Told & FromOld & FromNew) => {
    lines.tell(told)
    tellOthers({ holder, handover }, told)
  }
  accounting.store.keys.onChange((hash) => tellAll({ kind: 'key', hash }))
  accounting.store.organizations.onChange((id) => tellAll({ kind: 'organization', id }))
  const url = await lines.started()
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
    threads: () => lines.threads(),
    metrics,
    open() {
      lines.open()
      adoption.tell({ kind: 'retire' })
      if (mayHandOver) void handover.offer()
    },
    limitMemory() {
      const look = setInterval(limitYoungGeneration(context.running, youngMb), lookMs).unref()
      started.defer(() => clearInterval(look))
    },
    settle() {
      collectWhenIdle(context.running)
      lines.tell({ kind: 'settle' })
    },
    retired: handover.retired,
    async stop(deadlineMs) {
      own?.stopListening()
      await lines.stop(deadlineMs)
      await context.running.endWithin(deadlineMs)
      await new Promise(setImmediate)
    },
  }
}

/** `routing` is what all lines have found out about providers. */
type OpenLines = { port: number; holder: LinesHolder; handover: Handover; routing: SharedState }

/** The books of this process, which another one may take over. */
function openHandover(
  { watch, accounting, log }: Served,
  own: Omit<OpenLines, 'handover'> & Pick<HandoverParts, 'retire' | 'adopt'>,
): Handover {
  const { port, holder, retire, routing, adopt } = own
  const recall = (purse: number, accounts: readonly string[]) => {
    const lines = purse < 0 ? holder.adopted : holder.lines
    return lines?.recall(purse, accounts) ?? Promise.reject(new Error('no worker'))
  }
  return new Handover({
    storeUrl: watch.current().config.store.url,
    port,
    books: accounting,
    log: logOf(log, 'worker'),
    openBank: () => openBank({ readSpent: (account) => spentIn(accounting, account), recall, now: sharedClock }),
    holder,
    recall,
    retire,
    adopt,
    findings: routing.findings,
  })
}

function linesOptions(served: Served, own: OpenLines & { count: number; routes: Routes }): LinesOptions {
  const { watch, accounting, log, environment: env, sampling, keepAliveMs } = served
  const { count, port, routes, handover, routing } = own
  const { path: configPath, server, manage, store: stored } = watch.current().config
  const cacheFolder = watch.current().cache.folder
  const logs = { logLevels: levelsOf(log), storeUrl: stored.url, cacheFolder }
  const ways = { configPath, env: { ...env }, sampling, keepAliveMs, workers: count, ...logs }
  return {
    count,
    setup: { ...ways, host: server.host, port, servesManagement: manage.port === null },
    current: () => ({
      generation: watch.current().generation,
      problems: watch.problems(),
      ...chosenFiles(watch.current()),
    }),
    books: {
      money: handover.money,
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
    onSignatures: (said) => tellOthers(own, said),
    onFound(said) {
      routing.merge(said.findings)
      tellOthers(own, said)
    },
    onStart(line) {
      line.tell({ kind: 'failure', failure: handover.money().writeFailure() })
      line.tell({ kind: 'found', findings: routing.findings() })
    },
  }
}

/** Tells the processes that served before and that serve after this one. */
function tellOthers({ holder, handover }: Pick<OpenLines, 'holder' | 'handover'>, told: FromOld & FromNew): void {
  handover.tell(told)
  holder.adopted?.tell(told)
}

/** An address that the process that serves before or after this one may have as well, but no other. */
async function sharedAddress(
  host: string,
  port: number,
  { handed, mayHandOver }: Pick<SeveralOptions, 'handed' | 'mayHandOver'>,
) {
  await requireFreePort(host, port, handed && port)
  return { host, port, reusePort: mayHandOver }
}

/** The port of all lines, for 0 any that is free, until they listen and it is released; `handed` are those of another process. */
async function sharedPort(host: string, port: number, handed: number | undefined) {
  if (port === 0) return await reservePort(host)
  await requireFreePort(host, port, handed)
  return { port, release() {} }
}

/** The routes of this thread, and the metrics that one of them has. */
function routesOf(
  { watch, accounting, access, rulesOf }: Served,
  { holder, routing }: Pick<OpenLines, 'holder' | 'routing'>,
): { routes: Routes } & Pick<Serving, 'metrics'> {
  const { store, writeFailure, damage } = accounting
  const stopping = () => false
  const degraded = () => routing.health.degraded()
  const workers = () => holder.lines?.facts() ?? { facts: [] }
  const metrics = () => {
    holder.lines?.tell({ kind: 'watchLoop' })
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

/** The address of the management API serves no calls. */
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

/** The spend of an account of money by the name that purses use: `key <id> <month>`, `group <id> <month>`, `organization <id>`. */
function spentIn({ store }: Accounting, account: string): bigint {
  const [owner, id = '', month] = account.split(' ')
  const { spend } = store.immediate
  if (owner === 'organization') return spend.totalOfOrganization(id)
  const at = Date.parse(`${month}-01T00:00:00Z`)
  return owner === 'key' ? spend.ofKey(id, at) : spend.ofGroup(id, at)
}

/** What clients are told of an error of a route. */
function explained(thrown: unknown, { accounting, log }: Served): RouterError {
  accounting.damage.saw(thrown)
  const fault = unavailable(thrown)
  if (fault) log.warn({ err: thrown }, 'the database could not be used')
  return fault ?? asRouterError(thrown)
}
