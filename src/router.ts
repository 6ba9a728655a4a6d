import { createServer, type Server } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { type Access, ensureFirstKey, openAccess } from './access/keys.ts'
import type { NamedModel } from './api/models/list.ts'
import { callRoutes, healthRoutes, type ModelSource, modelRoutes, type Readiness } from './endpoints.ts'
import type { Rooms } from './gateway.ts'
import { keptResponseRoutes } from './kept-responses.ts'
import { formatProblem, type Problem } from './manifest/problem.ts'
import { type Ledger as OpenLedger, openLedger } from './money/ledger.ts'
import type { Log } from './observe/log.ts'
import { startPurge } from './purge.ts'
import { type Watch, type WatchListeners, watchSnapshot } from './reload.ts'
import { openSeals } from './routing/seals.ts'
import { createApp, type JsonRoute } from './server.ts'
import type { Ledger } from './settlement.ts'
import { startSimulator } from './simulator/server.ts'
import { buildSnapshot, type Snapshot } from './snapshot.ts'
import { openState } from './state.ts'
import { openStore, type Store } from './store/open.ts'
import { openDoor } from './upstream/door.ts'
import { openFetcher } from './upstream/fetcher.ts'

/** How the process is started; `port` goes before the configured one, `patienceMs` and `keepAliveMs` are for tests. */
export type RouterOptions = {
  configPath: string | undefined
  port?: number
  env: NodeJS.ProcessEnv
  log: Log
  patienceMs?: number
  keepAliveMs?: number
}

/** A running router. `firstKey` is there when this start made it. */
export type Router = {
  url: string
  firstKey?: string
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
  { configPath, port, env, log, patienceMs = clientPatienceMs, keepAliveMs = silenceMs }: RouterOptions,
  started: AsyncDisposableStack,
): Promise<Router> {
  const simulator = started.adopt(await startSimulator(), (running) => running.close())
  const surroundings = { INFERENCE_ROUTER_DEMO_URL: simulator.url, ...env }
  const { snapshot, problems } = await buildSnapshot(configPath, surroundings)
  if (!snapshot) throw new StartRefused(problems)
  const watch = started.adopt(watchSnapshot(snapshot, surroundings, reloadLog(log)), (watching) => watching.close())
  const store = started.adopt(openStore(snapshot.config.store.url), (open) => open.close())
  const first = ensureFirstKey(store, env.INFERENCE_ROUTER_ADMIN_KEY)
  const access = openAccess(store)
  const ledger = started.adopt(openLoggingLedger(store, log), (open) => open.close())
  const door = started.adopt(openDoor(), (open) => open.close())
  const rooms = roomsOf(watch, {
    authenticate: access.authenticate,
    door,
    seals: openSeals(),
    ledger: logged(ledger, log),
    state: openState(store),
  })
  started.adopt(
    startPurge(store.responses, (err) => log.error({ err }, 'expired responses could not be deleted')),
    (purging) => purging.stop(),
  )
  const deadline = new AbortController()
  const running = new Set<Promise<void>>()
  let stopping = false
  const app = createApp(
    {
      rooms,
      bodyLimitBytes: () => watch.current().config.server.bodyLimitBytes,
      log,
      stopping: () => stopping,
      deadline: deadline.signal,
      running,
      patienceMs,
      keepAliveMs,
    },
    callRoutes,
    jsonRoutes({ watch, store, access, stopping: () => stopping }),
  )
  const { host, port: configuredPort } = snapshot.config.server
  const server = await listen(createServer(app), host, port ?? configuredPort)
  const url = urlOf(server, host)
  log.info({ url, generation: snapshot.generation }, 'serving')

  return {
    url,
    ...(first.created && { firstKey: first.secret }),
    snapshot: watch.current,
    async stop(deadlineMs) {
      stopping = true
      stopListening(server)
      const late = setTimeout(() => deadline.abort(), deadlineMs)
      while (running.size > 0) await Promise.allSettled(running)
      clearTimeout(late)
      server.close().closeAllConnections()
      await started.disposeAsync()
    },
  }
}

type RouteRooms = { watch: Watch; store: Store; access: Access; stopping(): boolean }

function jsonRoutes({ watch, store, access, stopping }: RouteRooms): JsonRoute[] {
  return [
    ...healthRoutes(() => readiness(watch, stopping())),
    ...modelRoutes({ ...modelSource(watch), access }),
    ...keptResponseRoutes(store, access),
  ]
}

/** The rooms of the snapshot of the moment, and those that live as long as the process. */
function roomsOf(
  watch: Watch,
  lasting: Pick<Rooms, 'authenticate' | 'door' | 'seals' | 'ledger' | 'state'>,
): () => Rooms {
  return () => {
    const { providers, catalog, config } = watch.current()
    return {
      ...lasting,
      directory: { providers, findModel: catalog.find },
      media: { fetchMedia: openFetcher(config.media), settings: config.media },
    }
  }
}

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

function readiness(watch: Watch, stopping: boolean): Readiness {
  return {
    ready: !stopping,
    generation: watch.current().generation,
    reasons: stopping ? ['The router is stopping.'] : [],
    problems: watch.problems().map(formatProblem),
  }
}

function modelSource(watch: Watch): Pick<ModelSource, 'models' | 'managedPolicies'> {
  return {
    models() {
      const snapshot = watch.current()
      const known = listed.get(snapshot) ?? callableModels(snapshot)
      listed.set(snapshot, known)
      return known
    },
    managedPolicies: () => noModels,
  }
}

const listed = new WeakMap<Snapshot, readonly NamedModel[]>()
const noModels: readonly NamedModel[] = []

/** Models of providers that are configured: what is listed can be called. */
function callableModels({ providers, catalog }: Snapshot): NamedModel[] {
  return catalog
    .list()
    .filter(({ provider }) => providers.get(provider)?.missing.length === 0)
    .map(({ provider, model, entry }) => ({ id: `${provider}/${model}`, entry }))
}

function openLoggingLedger(store: Store, log: Log): OpenLedger {
  return openLedger(store.ledger.openWriter(), {
    onError: (err, { backlog, lost }) => log.error({ err, backlog, lost }, 'calls could not be written to the ledger'),
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

async function listen(server: Server, host: string, port: number): Promise<Server> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  // Longer than the minute after which load balancers reuse a connection, so that none is closed under a request.
  server.keepAliveTimeout = 65_000
  // Uploads may take long; how long an answer may take is for the limits of the provider to say.
  server.requestTimeout = 0
  return server
}

/** An HTTP server that is closed would cut off answers that are ended and still on their way: this closes only its door. */
function stopListening(server: Server): void {
  NetServer.prototype.close.call(server)
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
