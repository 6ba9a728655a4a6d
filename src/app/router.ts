import { availableParallelism } from 'node:os'
import { ensureFirstKey, openAccess } from '../access/keys.ts'
import { openOrganizations } from '../access/organizations.ts'
import { adminKeyVariable, requireUsableSecret } from '../access/secrets.ts'
import type { Endpoint } from '../http/listeners.ts'
import { type FileProblem, formatProblem, hasErrors, isFileProblem, type Problem } from '../manifest/check/problem.ts'
import { type Log, logOf } from '../observe/log.ts'
import { openTelemetry } from '../observe/telemetry.ts'
import { budgetsLater, valuesLater } from '../plugin/kit.ts'
import { startSimulator } from '../simulator/server.ts'
import type { Config } from '../snapshot/config.ts'
import { PluginHost } from '../snapshot/plugin-host.ts'
import { type WatchListeners, watchSnapshot } from '../snapshot/reload.ts'
import { type After, buildSnapshot, chosenFiles, type Snapshot } from '../snapshot/snapshot.ts'
import { eventLoopPatienceMs, type Store } from '../store/open.ts'
import { takeOver } from '../workers/handover/predecessor.ts'
import type { SeveralOptions, WorkersHolder } from '../workers/serving-threads.ts'
import { openAccounting } from './accounting.ts'
import { storedBudgets, storedValues } from './plugin-services.ts'
import { type Served, type Serving, serveInThisThread } from './serving.ts'

/** Start options; `port` overrides the configured one, the optional ones after `log` are for tests. */
export type RouterOptions = {
  configPath: string | undefined
  port?: number
  /** Takes over from a router that runs with the same database, and lets another one do so. */
  takeOver?: boolean
  /** Refuses to start, and any change later, while one file has an error. */
  strictFiles?: boolean
  env: NodeJS.ProcessEnv
  log: Log
  keepAliveMs?: number
  /** Files that were read before, by this process or by earlier ones. */
  earlier?: Pick<After, 'known' | 'cache'>
}

/** The key that the first start created: its secret, or the environment variable that it was taken from. */
export type FirstKey = { secret: string } | { variable: string }

/** A running router. `firstKey` is there when this start created it. */
export type Router = {
  url: string
  /** Address of the management API: `url`, unless it has a port of its own. */
  manageUrl: string
  firstKey?: FirstKey
  /** True where the pages of the console are served, at `manageUrl`. */
  hasConsole: boolean
  /** Methods and paths that it serves. */
  endpoints: readonly Endpoint[]
  /** The threads that serve calls, where that is not this one. */
  threads: Serving['threads']
  snapshot(): Snapshot
  /** Returns the problems of files that are not in use in their newest version. */
  problems(): readonly FileProblem[]
  /** Resolves when another process has taken over, and the last call has ended here. */
  retired: Promise<void>
  /** Keeps the young generation small as long as that is enough: the process is this router's alone. */
  limitMemory(): void
  /** Notifies all threads that the start is over: its garbage is collected when they are idle. */
  settle(): void
  /** Refuses new calls, waits this long for running ones, then aborts them; settles all. Milliseconds. */
  stop(deadlineMs: number): Promise<void>
}

/** Starts everything in the order of dependence. If a step fails, everything started before it is stopped. */
export async function startRouter(options: RouterOptions): Promise<Router> {
  const started = new AsyncDisposableStack()
  try {
    return await start(options, started)
  } catch (error) {
    await started.disposeAsync()
    throw error
  }
}

async function start(options: RouterOptions, started: AsyncDisposableStack): Promise<Router> {
  const { configPath, log, keepAliveMs = silenceMs, strictFiles: strict, takeOver: mayHandOver = false } = options
  // A copy: plugins find no credentials in that of the process.
  const env = { ...options.env }
  requireUsableSecret(env[adminKeyVariable])
  const simulator = started.adopt(await startSimulator(), (running) => running.close())
  const environment = { INFERENCE_ROUTER_DEMO_URL: simulator.url, ...env }
  const { values, open: openValues } = valuesLater()
  const { budgets, open: openBudgets } = budgetsLater()
  const plugins = new PluginHost({ log: logOf(log, 'plugin'), values, budgets })
  const ofFiles = logOf(log, 'files')
  const after = { ...options.earlier, services: plugins.services, strict }
  const { snapshot, problems } = await firstSnapshot(configPath, environment, after, ofFiles)
  const { server, store: stored, metrics } = snapshot.config
  const count = threadCount(snapshot.config, mayHandOver)
  const holder: WorkersHolder = {}
  const listeners = reloadListeners(ofFiles, holder)
  const watching = watchSnapshot(snapshot, environment, listeners, { plugins, problems, strict })
  const watch = started.adopt(watching, async (open) => {
    await open.close()
    await plugins.close(open.current())
  })
  const handed = mayHandOver ? await takeOver(stored.url) : undefined
  // Closed last: then the other process may take the database back.
  if (handed) started.adopt(handed.channel, (channel) => channel.close())
  // Closed after the accounting: its last rows are spans as well.
  const { sampling, tracing, sendMetrics } = await openTelemetry(env, { log, hasMetrics: metrics.enabled }, started)
  const config = () => watch.current().config
  const accounting = await openAccounting(
    stored.url,
    { log: logOf(log, 'ledger'), onFailure: (failure) => notifyFailure(holder, failure), metrics, tracing, config },
    started,
  )
  openValues(storedValues(accounting.store))
  openBudgets(storedBudgets(accounting.store))
  started.defer(() => plugins.close(watch.current()))
  const access = openAccess(accounting.store)
  const { rulesOf } = openOrganizations(accounting.store)
  await accounting.ledger.ready()
  const port = options.port ?? server.port
  const opened = { watch, accounting, access, rulesOf, plugins }
  const served = { ...opened, sampling, log, environment, port, keepAliveMs }
  const serving = await (count === 1 && !mayHandOver
    ? serveInThisThread(served, started)
    : serveInSeveral(served, { count, holder, handed, mayHandOver }, started))
  // Ends first, when no call runs any more: the last metrics count all of them.
  sendMetrics(serving.metrics, started)
  // Last, because a start that fails later would have created a key without displaying it.
  const firstKey = await createFirstKey(accounting.store, env)
  serving.open()
  accounting.store.waitAtMost(eventLoopPatienceMs)
  log.info(
    { url: serving.url, manageUrl: serving.manageUrl, threads: count, generation: snapshot.generation },
    'serving',
  )
  return {
    ...serving,
    ...(firstKey && { firstKey }),
    hasConsole: watch.current().config.console.enabled,
    snapshot: watch.current,
    problems: watch.problems,
    async stop(deadlineMs) {
      await serving.stop(deadlineMs)
      await started.disposeAsync()
    },
  }
}

/** Builds the first snapshot, and logs what is wrong with files. Throws StartRefused where there is none. */
async function firstSnapshot(
  configPath: string | undefined,
  env: NodeJS.ProcessEnv,
  after: After,
  log: Log,
): Promise<{ snapshot: Snapshot; problems: FileProblem[] }> {
  const { snapshot, problems: found } = await buildSnapshot(configPath, env, after)
  if (!snapshot) throw new StartRefused(found)
  const problems = found.filter(isFileProblem)
  logWarnings(found, log)
  logProblems(problems, log)
  return { snapshot, problems }
}

/** Reports to the workers, and to those of the process before, whether rows can be written. */
function notifyFailure({ workers, predecessor }: WorkersHolder, failure: string | undefined): void {
  const message = { kind: 'changed', change: { failure } } as const
  workers?.send(message)
  predecessor?.send(message)
}

/** Serves in several threads. Loaded on demand: one thread needs none of it. */
async function serveInSeveral(
  served: Served,
  several: SeveralOptions,
  started: AsyncDisposableStack,
): Promise<Serving> {
  const { serveInThreads } = await import('../workers/serving-threads.ts')
  return await serveInThreads(served, several, started)
}

/** Returns the number of threads that serve calls. Throws an error that names the setting where several cannot. */
function threadCount({ server: { threads }, store }: Config, mayHandOver: boolean): number {
  const whyNot = sharesPorts ? 'a database in memory cannot be read by several' : 'this system cannot share a port'
  const canShare = sharesPorts && store.url !== 'sqlite::memory:'
  if (mayHandOver && !canShare) throw new Error(`--takeover is not possible: ${whyNot}.`)
  if (threads === 'auto') return canShare ? availableParallelism() : 1
  if (threads === 1 || canShare) return threads
  throw new Error(`server.threads is ${threads}, but ${whyNot}: write 1 or auto.`)
}

/** Set where the system distributes new connections among all that listen on a port. */
const sharesPorts = ['linux', 'freebsd', 'sunos', 'aix'].includes(process.platform)

/** Creates the first key. A secret from the environment is known already, and output of a process ends up in logs: it is not repeated. */
async function createFirstKey(store: Store, env: NodeJS.ProcessEnv): Promise<FirstKey | undefined> {
  const first = await ensureFirstKey(store, env[adminKeyVariable])
  if (!first.created) return undefined
  return env[adminKeyVariable] ? { variable: adminKeyVariable } : { secret: first.secret }
}

/**
 * Time after which a silent stream gets a keep-alive: well below the 30 seconds after which the strictest proxies close a silent response.
 */
const silenceMs = 15_000

/** The configuration files have errors, so the router does not start. */
export class StartRefused extends Error {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(`The router cannot start: ${problems.length} problem(s) in its files.`)
    this.name = 'StartRefused'
    this.problems = problems
  }
}

/** Logs the warnings about files that are in use nevertheless, such as keys with an old name. */
function logWarnings(problems: readonly Problem[], log: Log): void {
  for (const problem of problems)
    if (!hasErrors([problem])) log.warn({ problem: formatProblem(problem) }, 'the files have a warning')
}

function logProblems(problems: readonly FileProblem[], log: Log): void {
  for (const problem of problems)
    log.error({ problem: formatProblem(problem), effect: problem.effect }, 'a file has an error, the others are in use')
}

function reloadListeners(log: Log, holder: WorkersHolder): WatchListeners {
  return {
    prepare: async (next) => (await holder.workers?.prepare(next.generation, chosenFiles(next))) ?? [],
    onSwap(snapshot, notes) {
      holder.workers?.send({ kind: 'swap', generation: snapshot.generation })
      log.info({ generation: snapshot.generation, notes }, 'reloaded')
    },
    onProblems(problems, added) {
      holder.workers?.send({ kind: 'problems', problems })
      logProblems(added, log)
      if (problems.length === 0) log.info('all files are in use again')
    },
  }
}
