import { ensureFirstKey, openAccess } from './access/keys.ts'
import { openLimits } from './access/limits.ts'
import { openOrganizations } from './access/organizations.ts'
import { adminKeyVariable, requireUsableSecret } from './access/secret.ts'
import { watchDamage } from './damage.ts'
import type { ServerContext } from './http/context.ts'
import { type Endpoint, openListeners } from './http/listeners.ts'
import { RunningRequests } from './http/running-requests.ts'
import { jsonRoutes } from './json-routes.ts'
import type { AdmissionServices } from './line/admission.ts'
import { openConversations } from './line/conversations.ts'
import type { Services } from './line/gateway.ts'
import { openHeldState } from './line/held-state.ts'
import type { CallLedger } from './line/settlement.ts'
import { formatProblem, type Problem } from './manifest/problem.ts'
import { openBudget } from './money/budget.ts'
import { type LedgerQueue, openLedger } from './money/ledger.ts'
import type { Log } from './observe/log.ts'
import { startPurge } from './purge.ts'
import { openSignatureCache } from './routing/signature-cache.ts'
import { startSimulator } from './simulator/server.ts'
import { type Watch, type WatchListeners, watchSnapshot } from './snapshot/reload.ts'
import { type After, buildSnapshot, type Snapshot } from './snapshot/snapshot.ts'
import { openStore, type Store } from './store/open.ts'
import { openTokenizer } from './tokenizer/tokenizer.ts'
import { openFetcher } from './upstream/fetcher.ts'
import { openHttpClient } from './upstream/http-client.ts'

/** Start options; `port` overrides the configured one, the optional ones after `log` are for tests. */
export type RouterOptions = {
  configPath: string | undefined
  port?: number
  env: NodeJS.ProcessEnv
  log: Log
  patienceMs?: number
  keepAliveMs?: number
  /** Files that were read before, by this process or by earlier ones. */
  earlier?: Pick<After, 'known' | 'cache'>
}

/** The key that the first start created: its secret, or the environment variable that it was taken from. */
export type FirstKey = { secret: string } | { variable: string }

/** A running router. `firstKey` is there when this start created it. */
export type Router = {
  url: string
  /** Where the management API listens: `url`, unless it has a port of its own. */
  manageUrl: string
  firstKey?: FirstKey
  /** Every method and path that it serves. */
  endpoints: readonly Endpoint[]
  snapshot(): Snapshot
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

async function start(
  { configPath, port, env, log, patienceMs = clientPatienceMs, keepAliveMs = silenceMs, earlier = {} }: RouterOptions,
  started: AsyncDisposableStack,
): Promise<Router> {
  requireUsableSecret(env[adminKeyVariable])
  const simulator = started.adopt(await startSimulator(), (running) => running.close())
  const environment = { INFERENCE_ROUTER_DEMO_URL: simulator.url, ...env }
  const { snapshot, problems } = await buildSnapshot(configPath, environment, earlier)
  if (!snapshot) throw new StartRefused(problems)
  const watch = started.adopt(watchSnapshot(snapshot, environment, reloadLog(log)), (watching) => watching.close())
  const store = started.adopt(openDatabase(snapshot.config.store.url, log), (open) => open.close())
  started.adopt(store.integrity, (checks) => checks.close())
  const access = openAccess(store)
  const { rulesOf } = openOrganizations(store)
  const { ledger, held, writeFailure, damage, onThrown } = openBooks(store, log, started)
  const httpClient = started.adopt(openHttpClient(), (open) => open.close())
  const tokenizer = started.adopt(openTokenizer(), (open) => open.close())
  const services = servicesOf(watch, {
    tokenizer,
    authenticate: access.authenticate,
    revalidate: access.revalidate,
    httpClient,
    signatures: openSignatureCache(),
    ledger: logged(ledger, log),
    conversations: openConversations(store, (id) => rulesOf(id).retention),
    held,
    rulesOf,
    admission: { budget: openBudget(store.spend), limits: openLimits(), writeFailure },
  })
  const running = new RunningRequests()
  let stopping = false
  const context: ServerContext = {
    services,
    bodyLimits: () => watch.current().config.server.body,
    corsOrigins: () => watch.current().config.server.cors,
    log,
    onThrown,
    stopping: () => stopping,
    running,
    patienceMs,
    keepAliveMs,
  }
  const routes = jsonRoutes({ watch, store, access, rulesOf, stopping: () => stopping, writeFailure, damage })
  const { server, manage } = snapshot.config
  const where = { host: server.host, port: port ?? server.port, managePort: manage.port }
  await ledger.ready()
  const { stopListening, ...listeners } = await openListeners(context, routes, where, started)
  const { url, manageUrl } = listeners
  // Last, because a start that fails later would have created a key without displaying it.
  const firstKey = createFirstKey(store, env)
  store.waitAtMost(lockPatienceMs)
  log.info({ url, manageUrl, generation: snapshot.generation }, 'serving')

  return {
    ...listeners,
    ...(firstKey && { firstKey }),
    snapshot: watch.current,
    async stop(deadlineMs) {
      stopping = true
      stopListening()
      const timer = setTimeout(() => running.abortAll(), deadlineMs)
      await running.allEnded()
      clearTimeout(timer)
      // The last error responses have been written.
      await new Promise(setImmediate)
      await started.disposeAsync()
    },
  }
}

/** Opens the database for this router alone, and writes the rows that an earlier process could not. */
function openDatabase(url: string, log: Log): Store {
  const store = openStore(url, { asRouter: true })
  try {
    store.proveWritable()
    const recovered = store.ledger.recover((lost, reason) =>
      log.error({ lost, reason }, 'a call that an earlier process could not write can never be written to the ledger'),
    )
    if (recovered > 0) log.warn({ recovered }, 'calls that an earlier process could not write are in the ledger')
    return store
  } catch (thrown) {
    store.close()
    throw thrown
  }
}

/** The services of calls: those of the current snapshot, and those that live as long as the process. */
function servicesOf(
  watch: Watch,
  lasting: Omit<Services, 'directory' | 'admission' | 'media' | 'maxUnknownFields' | 'answerBounds'> & {
    admission: Omit<AdmissionServices, 'defaultOutputTokens' | 'abandoned'>
  },
): () => Services {
  return () => {
    const { providers, catalog, config } = watch.current()
    return {
      ...lasting,
      directory: { providers, identify: catalog.identify, managed: config.policies },
      admission: { ...lasting.admission, ...config.budget },
      media: { fetchMedia: openFetcher(config.media), settings: config.media },
      maxUnknownFields: config.server.body.unknownFields,
      answerBounds: config.answers,
    }
  }
}

/** A secret from the environment is known already, and output of a process ends up in logs: it is not repeated. */
function createFirstKey(store: Store, env: NodeJS.ProcessEnv): FirstKey | undefined {
  const first = ensureFirstKey(store, env[adminKeyVariable])
  if (!first.created) return undefined
  return env[adminKeyVariable] ? { variable: adminKeyVariable } : { secret: first.secret }
}

/** Waiting for the lock of another process blocks the event loop. */
const lockPatienceMs = 250
/** The usual time after which servers and load balancers give up a client that neither sends nor reads. */
const clientPatienceMs = 60_000
/** Well below the 30 seconds after which the strictest proxies close a silent response. */
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

function reloadLog(log: Log): WatchListeners {
  return {
    onSwap: (snapshot, notes) => log.info({ generation: snapshot.generation, notes }, 'reloaded'),
    onProblems: (problems) => {
      for (const problem of problems)
        log.error({ problem: formatProblem(problem) }, 'reload refused, the old files stay in use')
    },
  }
}

/** The ledger, what providers hold, and the deletion of what expired, all watched for damage of the database. */
function openBooks(store: Store, log: Log, started: AsyncDisposableStack) {
  const { failure: damage, saw: onThrown } = watchDamage(store, log)
  const ledger = started.adopt(openLoggingLedger(store, log, onThrown), (open) => open.close())
  const onPurgeError = (err: unknown) => {
    onThrown(err)
    log.error({ err }, 'expired rows could not be deleted')
  }
  const purge = (most: number) => Math.max(store.responses.purge(most), store.held.purge(most))
  started.adopt(startPurge({ purge }, onPurgeError), (purging) => purging.stop())
  const held = openHeldState(store.held, (err) => {
    onThrown(err as Error)
    log.error({ err }, 'what a provider holds cannot be recorded')
  })
  return { ledger, held, writeFailure: () => damage() ?? ledger.writeFailure(), damage, onThrown }
}

function openLoggingLedger(store: Store, log: Log, onError: (error: Error) => void): LedgerQueue {
  return openLedger(store.ledger.openWriter(), {
    onError: (err, { backlog, lost }) => {
      onError(err)
      log.error({ err, backlog, lost }, 'calls could not be written to the ledger')
    },
    onRecovery: () => log.info('all calls are written to the ledger again'),
  })
}

/** The ledger, with a log line for every settled call. */
function logged(ledger: LedgerQueue, log: Log): CallLedger {
  return {
    settle(record, response, detail) {
      const { id, requestId, requested, provider, model, served, outcome, status, error, durationMs, cost } = record
      const names = { id, request_id: requestId, requested, provider, model, served }
      const costs = { usd: cost.nanoUsd / 1e9, ...(cost.unpriced && { unpriced: true }) }
      const facts = { ...names, outcome, status, error, ms: durationMs, detail, ...costs }
      if (outcome === 'complete') log.info(facts, 'call')
      else log.warn(facts, 'call')
      return ledger.settle(record, response)
    },
  }
}
