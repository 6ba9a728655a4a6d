import { resourceLimits, workerData } from 'node:worker_threads'
import { type Access, openAccess } from '../access/keys.ts'
import { openOrganizations } from '../access/organizations.ts'
import { openQuotaLimits } from '../access/quota-limits.ts'
import { type CallServer, openCallServer } from '../app/call-server.ts'
import { remoteValues, storedBudgets, valuesRoute } from '../app/plugin-services.ts'
import { isForMainThread, jsonRoutes } from '../app/routes.ts'
import type { RefusedCall } from '../core/refused-call.ts'
import { homePage } from '../http/console.ts'
import { openListeners, type Routes } from '../http/listeners.ts'
import type { JsonRoute } from '../http/types.ts'
import { noCache, openFileCache } from '../manifest/read/file-cache.ts'
import { openQuotaBudget } from '../money/quota-budget.ts'
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
import { FarBooks } from './threads/far-books.ts'
import type { LineSetup, Said, Told } from './threads/messages.ts'
import type { LineStart } from './threads/near-line.ts'

/** How often a line tells what changes with every call. Milliseconds. */
const tellMs = 500

/** V8 takes the young generation to consist of three. */
const semiSpaceMb = (resourceLimits.maxYoungGenerationSizeMb ?? 0) / 3

/** The thread of one line: it serves calls at the port that all lines share. */
const { port, ownSent, otherSent, setup }: LineStart = workerData
// Plugins can read it too.
for (const name of Object.keys(workerData)) delete workerData[name]
await serve(setup)

async function serve(setup: LineSetup): Promise<void> {
  const { storeUrl, logLevels, ...ways } = setup
  const started = new AsyncDisposableStack()
  const { log, plugins, connect } = openLent(logLevels, started)
  const files = await openFiles(setup, plugins)
  const store = await openStore(storeUrl)
  store.waitAtMost(eventLoopPatienceMs)
  let failure: string | undefined
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const onTold = (told: Told) => {
    if (told.kind === 'failure') failure = told.failure
    else if (told.kind === 'key') store.announce.key(told.hash && Buffer.from(told.hash))
    else if (told.kind === 'organization') store.announce.organization(told.id)
    else if (told.kind === 'signatures') signatures.merge(told.remembered)
    else if (told.kind === 'found') line.merge(told.findings)
    else if (told.kind === 'open') open()
    else if (told.kind === 'watchLoop') line.watchLoop()
    else if (told.kind === 'settle') collectWhenIdle(line.context.running)
    else if (told.kind === 'stop') void stop(told)
    else if (told.kind === 'retire') void listening.retire().then(end)
    else files.hear(told, (said) => books.port.sayNow(said))
  }
  const books = new FarBooks(port, { counters: { ownSent, otherSent }, onTold })
  const informed = informedBy(() => books.port.catchUp())
  const signatures = openSignatureCache((remembered) => books.port.say({ kind: 'signatures', remembered }))
  const access = informedAccess(openAccess(store), informed)
  const rulesOf = informed(openOrganizations(store).rulesOf)
  const writeFailure = informed(() => failure)
  const watch = { current: informed(files.current), problems: files.problems }
  const onThrown = (thrown: unknown) => {
    if (isDamage(thrown)) books.port.sayNow({ kind: 'damaged', message: (thrown as Error).message })
  }
  connect(books, store)
  started.defer(() => plugins.close(files.current()))
  const budget = openQuotaBudget(books.purse)
  const limits = openQuotaLimits(books.purse, { now: sharedClock })
  const onRefused = (call: RefusedCall) => books.port.say({ kind: 'refused', call })
  const own = { watch, store, access, rulesOf, ledger: books.ledger, signatures, log, plugins, onThrown, onRefused }
  const onFound = (finding: Finding) => books.found(finding)
  const line = openCallServer({ ...own, ...ways, onFound, admission: { budget, limits, writeFailure } }, started)
  const { context } = line
  context.running.onLook = growYoungGeneration(semiSpaceMb)
  const { stopping } = context
  const routes = jsonRoutes({ watch, store, access, rulesOf, stopping, writeFailure, ...knownHere(line) })
  started.defer(watchLine(line, (said) => books.port.say(said)))
  const { host, servesManagement } = ways
  const where = { host, port: ways.port, managePort: null, reusePort: true, opened }
  const listening = await openListeners(context, servedHere(routes, servesManagement, books), where, started)
  books.port.sayNow({ kind: 'listening', url: listening.url })

  async function stop({ deadlineMs }: Extract<Told, { kind: 'stop' }>): Promise<void> {
    await line.stop(deadlineMs, listening.stopListening)
    await end()
  }

  /** All calls have ended. */
  async function end(): Promise<void> {
    await books.allSettled()
    await started.disposeAsync()
    await store.close()
    books.port.sayNow({ kind: 'stopped' })
  }
}

/** What plugins are lent, before the books and the database are there: until then lines of the log are held, and values wait. */
function openLent(levels: LogLevels, started: AsyncDisposableStack) {
  let held: string[] = []
  let write: WriteLines = (lines) => void held.push(lines)
  const { log, flush } = openRemoteLog(levels, (lines) => write(lines))
  started.defer(flush)
  const { values, open } = valuesLater()
  const { budgets, open: openBudgets } = budgetsLater()
  const connect = (books: FarBooks, store: Store) => {
    write = (lines) => books.log(lines)
    for (const lines of held) write(lines)
    held = []
    // A plugin may end the thread.
    process.on('exit', () => {
      flush()
      books.port.flush()
    })
    open(remoteValues(store, books.far(valuesRoute(values)).answer))
    openBudgets(storedBudgets(store))
  }
  return { log, plugins: new PluginHost({ log: logOf(log, 'plugin'), values, budgets }), connect }
}

/** Tells what the line has measured of providers, and of itself when that has changed. Returns what ends that. */
function watchLine({ takeMeasured, facts }: CallServer, tell: (said: Said) => void): () => void {
  let told = ''
  const timer = setInterval(() => {
    const measured = takeMeasured()
    if (measured.length > 0) tell({ kind: 'found', findings: measured })
    const now = facts()
    const text = JSON.stringify(now)
    if (text !== told) tell({ kind: 'facts', facts: now })
    told = text
  }, tellMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** What the routes of this thread tell. Damage, counts and what happens now are known to the books. */
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

/** What changes the database is left to the books. */
function servedHere({ common, open, manage, console }: Routes, servesManagement: boolean, books: FarBooks): Routes {
  const placed = (route: JsonRoute) => (isForMainThread(route) ? books.far(route) : route)
  const managed = servesManagement ? { console, manage: manage.map(placed) } : { console: homePage(), manage: [] }
  return { common, open: open.map(placed), ...managed }
}

/** Makes functions hear first what the books have told. */
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

/** The snapshot of this line, which is replaced together with those of the others. */
async function openFiles(setup: LineSetup, plugins: PluginHost) {
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
    { generation: next, texts, unavailable }: Extract<Told, { kind: 'prepare' }>,
    say: (said: Said) => void,
  ) => {
    const built = await buildSnapshot(configPath, env, { previous: snapshot, texts, unavailable, services })
    if (prepared) plugins.discard(prepared, snapshot)
    prepared = built.snapshot && { ...built.snapshot, generation: next }
    say({ kind: 'prepared', generation: next, problems: prepared ? [] : built.problems })
  }
  const swap = () => {
    if (prepared) plugins.replace(snapshot, prepared)
    snapshot = prepared ?? snapshot
    prepared = undefined
  }
  return {
    current: () => snapshot,
    problems: () => problems,
    hear(told: Told, say: (said: Said) => void): void {
      if (told.kind === 'prepare') preparing = prepare(told, say)
      else if (told.kind === 'problems') problems = told.problems
      else if (told.kind === 'swap' && prepared?.generation === told.generation) swap()
      else if (told.kind === 'swap') void preparing?.then(swap)
    },
  }
}
