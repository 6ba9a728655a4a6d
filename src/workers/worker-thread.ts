import { resourceLimits, workerData } from 'node:worker_threads'
import { type Access, openAccess } from '../access/keys.ts'
import { openLimits } from '../access/limits.ts'
import { openOrganizations } from '../access/organizations.ts'
import { Accounts } from '../accounts/accounts.ts'
import type { AccountMemory } from '../accounts/memory.ts'
import { type CallServer, openCallServer } from '../app/call-server.ts'
import { remoteValues, storedBudgets, valuesRoute } from '../app/plugin-services.ts'
import { isForMainThread, jsonRoutes } from '../app/routes.ts'
import type { RefusedCall } from '../core/refused-call.ts'
import { homePage } from '../http/console.ts'
import { openListeners, type Routes } from '../http/listeners.ts'
import type { JsonRoute } from '../http/types.ts'
import { noCache, openFileCache } from '../manifest/read/file-cache.ts'
import { openBudget } from '../money/budget.ts'
import { spendReader } from '../money/payments.ts'
import { type LogLevels, logOf, openRemoteLog, type WriteLines } from '../observe/log.ts'
import { budgetsLater, valuesLater } from '../plugin/kit.ts'
import { type Finding, sharedClock } from '../routing/findings.ts'
import { openSignatureCache } from '../routing/signature-cache.ts'
import { collectWhenIdle } from '../runtime/collect.ts'
import { growYoungGeneration } from '../runtime/young-generation.ts'
import { PluginHost } from '../snapshot/plugin-host.ts'
import { buildSnapshot, type Snapshot } from '../snapshot/snapshot.ts'
import { eventLoopPatienceMs, openStore, type Store } from '../store/open.ts'
import { isDamage } from '../store/store-error.ts'
import type { MainMessage, StoreChange, WorkerMessage, WorkerSetup } from './threads/messages.ts'
import { RemoteAccounting } from './threads/remote-accounting.ts'
import type { WorkerStart } from './threads/worker-handle.ts'

/** How often a worker reports what changes with every call. Milliseconds. */
const reportMs = 500

/** V8 takes the young generation to consist of three. */
const semiSpaceMb = (resourceLimits.maxYoungGenerationSizeMb ?? 0) / 3

/** The thread of one worker: it serves calls at the port that all workers share. */
const { port, ownSent, otherSent, setup, thread }: WorkerStart = workerData
// Plugins can read it too.
for (const name of Object.keys(workerData)) delete workerData[name]
await serve(setup)

async function serve(setup: WorkerSetup): Promise<void> {
  const { storeUrl, logLevels, accounts: memory, ...ways } = setup
  const started = new AsyncDisposableStack()
  const { log, plugins, connect } = openForPlugins(logLevels, started)
  const files = await openFiles(setup, plugins)
  const store = await openStore(storeUrl)
  store.waitAtMost(eventLoopPatienceMs)
  let failure: string | undefined
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const onMessage = (message: MainMessage) => {
    if (message.kind === 'changed' && 'failure' in message.change) failure = message.change.failure
    else if (message.kind === 'changed') announce(store, message.change)
    else if (message.kind === 'signatures') signatures.merge(message.remembered)
    else if (message.kind === 'found') server.merge(message.findings)
    else if (message.kind === 'open') open()
    else if (message.kind === 'watchLoop') server.watchLoop()
    else if (message.kind === 'settle') collectWhenIdle(server.context.running)
    else if (message.kind === 'stop') void stop(message)
    else files.handle(message, (prepared) => accounting.port.sendNow(prepared))
  }
  const accounts = openAccounts(memory, store, () => accounting)
  const counters = { ownSent, otherSent }
  const accounting: RemoteAccounting = new RemoteAccounting(port, { counters, accounts, onMessage })
  const informed = informedBy(() => accounting.port.catchUp())
  const signatures = openSignatureCache((remembered) => accounting.port.send({ kind: 'signatures', remembered }))
  const access = informedAccess(openAccess(store), informed)
  const rulesOf = informed(openOrganizations(store).rulesOf)
  const writeFailure = informed(() => failure)
  const watch = { current: informed(files.current), problems: files.problems }
  const onThrown = (thrown: unknown) => {
    if (isDamage(thrown)) accounting.port.sendNow({ kind: 'damaged', message: (thrown as Error).message })
  }
  connect(accounting, store)
  started.defer(() => plugins.close(files.current()))
  const admission = { budget: openBudget(accounts), limits: openLimits(accounts), writeFailure }
  const onRefused = (call: RefusedCall) => accounting.port.send({ kind: 'refused', call })
  const { ledger } = accounting
  const own = { watch, store, access, rulesOf, accounts, ledger, signatures, log, plugins, onThrown, onRefused }
  const onFound = (finding: Finding) => accounting.found(finding)
  const server = openCallServer({ ...own, ...ways, onFound, admission }, started)
  const { context } = server
  context.running.onLook = growYoungGeneration(semiSpaceMb)
  const { stopping } = context
  const routes = jsonRoutes({ watch, store, access, rulesOf, stopping, writeFailure, ...knownHere(server) })
  started.defer(reportRegularly(server, (message) => accounting.port.send(message)))
  const { host, servesManagement } = ways
  const where = { host, port: ways.port, managePort: null, reusePort: true, opened }
  const listening = await openListeners(context, servedHere(routes, servesManagement, accounting), where, started)
  accounting.port.sendNow({ kind: 'listening', url: listening.url })

  async function stop({ deadlineMs }: Extract<MainMessage, { kind: 'stop' }>): Promise<void> {
    await (deadlineMs === undefined ? listening.retire() : server.stop(deadlineMs, listening.stopListening))
    await end()
  }

  /** All calls have ended. */
  async function end(): Promise<void> {
    await accounting.allSettled()
    await started.disposeAsync()
    await store.close()
    accounting.port.sendNow({ kind: 'stopped' })
  }
}

/** Announces a change that another connection has made. */
function announce({ announce }: Store, change: StoreChange): void {
  if ('key' in change) announce.key(change.key && Buffer.from(change.key))
  if ('organization' in change) announce.organization(change.organization)
}

/** Opens the part of this thread in the accounts that all threads share. The main thread decides about what was granted to other instances. */
function openAccounts(memory: AccountMemory, { immediate }: Store, accounting: () => RemoteAccounting): Accounts {
  return new Accounts({
    ...{ memory, thread, now: sharedClock },
    readSpent: spendReader(immediate.spend),
    beyondGrant: (needs) => accounting().reserve(needs),
    onLow: (needs) => accounting().refill(needs),
  })
}

/** Opens what plugins use, before the accounting and the database are there: until then lines of the log are held, and values wait. */
function openForPlugins(levels: LogLevels, started: AsyncDisposableStack) {
  let held: string[] = []
  let write: WriteLines = (lines) => void held.push(lines)
  const { log, flush } = openRemoteLog(levels, (lines) => write(lines))
  started.defer(flush)
  const { values, open } = valuesLater()
  const { budgets, open: openBudgets } = budgetsLater()
  const connect = (accounting: RemoteAccounting, store: Store) => {
    write = (lines) => accounting.log(lines)
    for (const lines of held) write(lines)
    held = []
    // A plugin may end the thread.
    process.on('exit', () => {
      flush()
      accounting.port.flush()
    })
    open(remoteValues(store, accounting.remote(valuesRoute(values)).answer))
    openBudgets(storedBudgets(store))
  }
  return { log, plugins: new PluginHost({ log: logOf(log, 'plugin'), values, budgets }), connect }
}

/** Reports what the worker has measured of providers, and its own facts when they have changed. Returns a function that ends that. */
function reportRegularly({ takeMeasured, facts }: CallServer, send: (message: WorkerMessage) => void): () => void {
  let reported = ''
  const timer = setInterval(() => {
    const measured = takeMeasured()
    if (measured.length > 0) send({ kind: 'found', findings: measured })
    const now = facts()
    const text = JSON.stringify(now)
    if (text !== reported) send({ kind: 'facts', facts: now })
    reported = text
  }, reportMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** Returns what the routes of this thread know. The main thread knows of damage, counts and what happens now. */
function knownHere({ degraded, failingHooks, pluginActivity, context }: CallServer) {
  return {
    damage: () => undefined,
    degraded,
    failingHooks,
    pluginActivity,
    metrics: () => [],
    explaining: context.services,
    live: { watch: () => undefined, underWay: () => ({ calls: 0, streams: 0 }) },
    refused: { since: Date.now(), of: () => [] },
  }
}

/** Leaves what changes the database to the main thread. */
function servedHere(
  { common, open, manage, console }: Routes,
  servesManagement: boolean,
  accounting: RemoteAccounting,
): Routes {
  const placed = (route: JsonRoute) => (isForMainThread(route) ? accounting.remote(route) : route)
  const managed = servesManagement ? { console, manage: manage.map(placed) } : { console: homePage(), manage: [] }
  return { common, open: open.map(placed), ...managed }
}

/** Makes functions handle first what the main thread has sent. */
function informedBy(catchUp: () => void) {
  return <Given extends unknown[], Result>(call: (...given: Given) => Result) =>
    (...given: Given): Result => {
      catchUp()
      return call(...given)
    }
}

function informedAccess(access: Access, informed: ReturnType<typeof informedBy>): Access {
  const { authenticate, authenticateById, identify, revalidate } = access
  return {
    authenticate: informed(authenticate),
    authenticateById: informed(authenticateById),
    identify: informed(identify),
    revalidate: informed(revalidate),
  }
}

/** Opens the snapshot of this worker, which is replaced together with those of the others. */
async function openFiles(setup: WorkerSetup, plugins: PluginHost) {
  const { configPath, env, generation, texts, unavailable, cacheFolder } = setup
  const { services } = plugins
  const cache = cacheFolder === undefined ? noCache : openFileCache(cacheFolder)
  const { snapshot: first, problems: found } = await buildSnapshot(configPath, env, {
    cache,
    texts,
    unavailable,
    services,
  })
  if (!first) throw new Error(`the files cannot be used: ${found.map(({ message }) => message).join('; ')}`)
  let snapshot: Snapshot = { ...first, generation }
  let prepared: Snapshot | undefined
  let preparing: Promise<void> | undefined
  let { problems } = setup
  const prepare = async (
    { generation: next, texts, unavailable }: Extract<MainMessage, { kind: 'prepare' }>,
    send: (message: WorkerMessage) => void,
  ) => {
    const built = await buildSnapshot(configPath, env, { previous: snapshot, texts, unavailable, services })
    if (prepared) plugins.discard(prepared, snapshot)
    prepared = built.snapshot && { ...built.snapshot, generation: next }
    send({ kind: 'prepared', generation: next, problems: prepared ? [] : built.problems })
  }
  const swap = () => {
    if (prepared) plugins.replace(snapshot, prepared)
    snapshot = prepared ?? snapshot
    prepared = undefined
  }
  return {
    current: () => snapshot,
    problems: () => problems,
    handle(message: MainMessage, send: (message: WorkerMessage) => void): void {
      if (message.kind === 'prepare') preparing = prepare(message, send)
      else if (message.kind === 'problems') problems = message.problems
      else if (message.kind === 'swap' && prepared?.generation === message.generation) swap()
      else if (message.kind === 'swap') void preparing?.then(swap)
    },
  }
}
