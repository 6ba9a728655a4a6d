import { ensureFirstKey, openAccess } from './access/keys.ts'
import { openLimits } from './access/limits.ts'
import { openOrganizations } from './access/organizations.ts'
import { type Endpoint, openAddresses } from './http/listeners.ts'
import type { ServerRooms } from './http/server.ts'
import type { AdmissionRooms } from './line/admission.ts'
import { openState } from './line/conversations.ts'
import type { Rooms } from './line/gateway.ts'
import type { Ledger } from './line/settlement.ts'
import type { KnownSources } from './manifest/folder.ts'
import { formatProblem, type Problem } from './manifest/problem.ts'
import { openBudget } from './money/budget.ts'
import { type Ledger as OpenLedger, openLedger } from './money/ledger.ts'
import type { Log } from './observe/log.ts'
import { startPurge } from './purge.ts'
import { jsonRoutes } from './routes.ts'
import { openSeals } from './routing/signature-cache.ts'
import { startSimulator } from './simulator/server.ts'
import { type Watch, type WatchListeners, watchSnapshot } from './snapshot/reload.ts'
import { buildSnapshot, type Snapshot } from './snapshot/snapshot.ts'
import { openStore, type Store } from './store/open.ts'
import { openFetcher } from './upstream/fetcher.ts'
import { openDoor } from './upstream/http-client.ts'

/** How the process is started; `port` goes before the configured one, the optional ones after `log` are for tests. */
export type RouterOptions = {
  configPath: string | undefined
  port?: number
  env: NodeJS.ProcessEnv
  log: Log
  patienceMs?: number
  keepAliveMs?: number
  /** Files that were read before. */
  known?: KnownSources
}

/** The key that a first start made: its secret, or the variable that somebody chose it in. */
export type FirstKey = { secret: string } | { variable: string }

/** A running router. `firstKey` is there when this start made it. */
export type Router = {
  url: string
  /** Where the management API listens: `url`, unless it has a port of its own. */
  manageUrl: string
  firstKey?: FirstKey
  /** All that it answers to. */
  endpoints: readonly Endpoint[]
  snapshot(): Snapshot
  /** Refuses new calls, waits for running ones as long as this, then ends them; settles all. Milliseconds. */
  stop(deadlineMs: number): Promise<void>
}

/** Starts everything in the order of dependence; what was started is stopped again when a later step fails. */
export async function startRouter(options: RouterOptions): Promise<Router> {
  const started = new AsyncDisposableStack()
  try {
    return await start(options, started)
  } catch (error) {
    await started.disposeAsync()
    throw error
  }
}

async function start(
  { configPath, port, env, log, patienceMs = clientPatienceMs, keepAliveMs = silenceMs, known }: RouterOptions,
  started: AsyncDisposableStack,
): Promise<Router> {
  const simulator = started.adopt(await startSimulator(), (running) => running.close())
  const surroundings = { INFERENCE_ROUTER_DEMO_URL: simulator.url, ...env }
  const { snapshot, problems } = await buildSnapshot(configPath, surroundings, undefined, known)
  if (!snapshot) throw new StartRefused(problems)
  const watch = started.adopt(watchSnapshot(snapshot, surroundings, reloadLog(log)), (watching) => watching.close())
  const store = started.adopt(openBooks(snapshot.config.store.url, log), (open) => open.close())
  const access = openAccess(store)
  const { rulesOf } = openOrganizations(store)
  const ledger = started.adopt(openLoggingLedger(store, log), (open) => open.close())
  const trouble = () => ledger.trouble()
  const door = started.adopt(openDoor(), (open) => open.close())
  const rooms = roomsOf(watch, {
    authenticate: access.authenticate,
    again: access.again,
    door,
    seals: openSeals(),
    ledger: logged(ledger, log),
    state: openState(store),
    rulesOf,
    admission: { budget: openBudget(store.spend), limits: openLimits(), trouble },
  })
  started.adopt(
    startPurge(store.responses, (err) => log.error({ err }, 'expired responses could not be deleted')),
    (purging) => purging.stop(),
  )
  const deadline = new AbortController()
  const running = new Set<Promise<void>>()
  let stopping = false
  const serverRooms: ServerRooms = {
    rooms,
    bodyLimitBytes: () => watch.current().config.server.bodyLimitBytes,
    log,
    stopping: () => stopping,
    deadline: deadline.signal,
    running,
    patienceMs,
    keepAliveMs,
  }
  const routes = jsonRoutes({ watch, store, access, rulesOf, stopping: () => stopping, trouble })
  const { server, manage } = snapshot.config
  const where = { host: server.host, port: port ?? server.port, managePort: manage.port }
  const { closeDoors, ...addresses } = await openAddresses(serverRooms, routes, where, started)
  const { url, manageUrl } = addresses
  // Last: a key that is made by a start that fails afterwards would never be shown.
  const firstKey = madeFirstKey(store, env)
  store.waitAtMost(lockPatienceMs)
  log.info({ url, manageUrl, generation: snapshot.generation }, 'serving')

  return {
    ...addresses,
    ...(firstKey && { firstKey }),
    snapshot: watch.current,
    async stop(deadlineMs) {
      stopping = true
      closeDoors()
      const late = setTimeout(() => deadline.abort(), deadlineMs)
      await endOf(running)
      clearTimeout(late)
      await started.disposeAsync()
    },
  }
}

/** The database, for this router alone, with the rows that an earlier process kept beside it. */
function openBooks(url: string, log: Log): Store {
  const store = openStore(url, { asRouter: true })
  try {
    store.proveWritable()
    const recovered = store.ledger.recover((lost, reason) =>
      log.error({ lost, reason }, 'a call that an earlier process kept can never be written to the ledger'),
    )
    if (recovered > 0) log.warn({ recovered }, 'calls that an earlier process could not write are in the ledger')
    return store
  } catch (thrown) {
    store.close()
    throw thrown
  }
}

/** When no call runs, and the clients of those that failed last have been told. */
async function endOf(running: ReadonlySet<Promise<void>>): Promise<void> {
  while (running.size > 0) await Promise.allSettled(running)
  await new Promise(setImmediate)
}

/** The rooms of the snapshot of the moment, and those that live as long as the process. */
function roomsOf(
  watch: Watch,
  lasting: Omit<Rooms, 'directory' | 'admission' | 'media'> & { admission: Omit<AdmissionRooms, 'unstatedOutput'> },
): () => Rooms {
  return () => {
    const { providers, catalog, config } = watch.current()
    return {
      ...lasting,
      directory: { providers, findModel: catalog.find, managed: config.policies },
      admission: { ...lasting.admission, unstatedOutput: config.budget.defaultOutputTokens },
      media: { fetchMedia: openFetcher(config.media), settings: config.media },
    }
  }
}

/** A secret that somebody chose is known to them, and what a process prints ends in logs: it is not repeated. */
function madeFirstKey(store: Store, env: NodeJS.ProcessEnv): FirstKey | undefined {
  const variable = 'INFERENCE_ROUTER_ADMIN_KEY'
  const first = ensureFirstKey(store, env[variable])
  if (!first.created) return undefined
  return env[variable] ? { variable } : { secret: first.secret }
}

/** The event loop stands still while it waits for another process that writes. */
const lockPatienceMs = 250
/** As long as the usual servers and load balancers wait for a client that neither sends nor reads. */
const clientPatienceMs = 60_000
/** Well below the half minute after which the most impatient proxies cut a silent answer. */
const silenceMs = 15_000

/** The router does not start with mistakes in its files; each problem says where. */
export class StartRefused extends Error {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    super(`The router cannot start: ${problems.length} problem(s) in its files.`)
    this.name = 'StartRefused'
    this.problems = problems
  }
}

function reloadLog(log: Log): WatchListeners {
  return {
    onSwap: (snapshot, notes) => log.info({ generation: snapshot.generation, notes }, 'reloaded'),
    onProblems: (problems) => {
      for (const problem of problems)
        log.error({ problem: formatProblem(problem) }, 'reload refused, the old files stay')
    },
  }
}

function openLoggingLedger(store: Store, log: Log): OpenLedger {
  return openLedger(store.ledger.openWriter(), {
    onError: (err, { backlog, lost }) => log.error({ err, backlog, lost }, 'calls could not be written to the ledger'),
    onRecovery: () => log.info('all calls are written to the ledger again'),
  })
}

/** The ledger, with a line in the log for every call that is settled. */
function logged(ledger: Ledger, log: Log): Ledger {
  return {
    settle(record, response) {
      const { id, requested, provider, model, outcome, status, error, durationMs, cost } = record
      const facts = { id, requested, provider, model, outcome, status, error, ms: durationMs, usd: cost.nanoUsd / 1e9 }
      if (outcome === 'complete') log.info(facts, 'call')
      else log.warn(facts, 'call')
      return ledger.settle(record, response)
    },
  }
}
