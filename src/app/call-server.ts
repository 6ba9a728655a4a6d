import { LRUCache } from 'lru-cache'
import type { Access } from '../access/keys.ts'
import type { OrganizationCache } from '../access/organizations.ts'
import type { Accounts } from '../accounts/accounts.ts'
import { openConversations } from '../call/open/conversations.ts'
import { InFlightCalls } from '../call/open/in-flight.ts'
import { openAccountResources } from '../call/targets/account-resources.ts'
import { openHeldState } from '../call/targets/held-state.ts'
import type { AdmissionServices, CallLedger, HeldState, Services } from '../call/types.ts'
import type { RefusedCall } from '../core/refused-call.ts'
import type { Sampling } from '../core/trace.ts'
import type { ServerContext } from '../http/context.ts'
import { RunningRequests } from '../http/running-requests.ts'
import { type Log, logOf } from '../observe/log.ts'
import { limitPerSecond } from '../observe/refused-calls.ts'
import {
  type CallsUnderWay,
  type FailingHook,
  type PluginActivity,
  type WorkerFacts,
  WorkerMetrics,
} from '../observe/worker-metrics.ts'
import { openPluginServices, type PluginServices } from '../plugin/call-plugins.ts'
import type { Finding } from '../routing/findings.ts'
import {
  ConcurrencyLimiter,
  type ConcurrencyLimiters,
  type ConcurrencyLimits,
  limiterStatus,
  shared,
} from '../routing/health/concurrency-limiter.ts'
import type { HealthOptions, TargetOutage } from '../routing/health/health.ts'
import { openSharedState } from '../routing/shared-state.ts'
import type { SignatureCache } from '../routing/signature-cache.ts'
import type { Config } from '../snapshot/config.ts'
import type { PluginHost } from '../snapshot/plugin-host.ts'
import type { Watch } from '../snapshot/reload.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { tokensOf } from '../store/ledger/ledger-row.ts'
import type { Store } from '../store/open.ts'
import { openTokenizer } from '../tokenizer/tokenizer.ts'
import { openFetcher } from '../upstream/files/fetcher.ts'
import { openHttpClient } from '../upstream/http/http-client.ts'
import { directoryOf } from './directory.ts'

/** Parts that a worker needs: its own connection to the database, and its quota to spend. */
export type CallServerParts = {
  watch: Pick<Watch, 'current'>
  store: Store
  access: Access
  rulesOf: OrganizationCache['rulesOf']
  ledger: CallLedger
  admission: Pick<AdmissionServices, 'budget' | 'limits' | 'writeFailure'>
  accounts: Pick<Accounts, 'totals'>
  signatures: SignatureCache
  log: Log
  onThrown(thrown: unknown): void
  /** Called with calls that were refused; in a flood, not with all of them. */
  onRefused(call: RefusedCall): void
  keepAliveMs: number
  /** Sampling that decides which traces are recorded. */
  sampling: Sampling
  /** Number of workers that share the limits of concurrent calls. */
  workers: number
  /** Called with findings of this worker about providers that others can use. */
  onFound?: (finding: Finding) => void
  /** Notified when calls have ended. */
  plugins: Pick<PluginHost, 'presentCallsEnd'>
}

/** A worker: all that one event loop needs to serve calls. */
export type CallServer = {
  context: ServerContext
  /** Returns the parts of the providers that take no calls of this worker, or not all. */
  degraded(): TargetOutage[]
  /** Returns the measurements of providers since the last time. */
  takeMeasured(): Finding[]
  /** Adopts findings of other workers about providers. */
  merge(findings: readonly Finding[]): void
  /** Returns the calls of an organization that are in flight. */
  underWay(organization: string): CallsUnderWay
  /** Returns the hooks of plugins that have failed on every call since their load. */
  failingHooks(): FailingHook[]
  /** Returns the calls and faults of the hooks of plugins. */
  pluginActivity(): PluginActivity
  /** Returns the facts that it reports to those who watch the process. */
  facts(): WorkerFacts
  /** Starts to measure the delay of its event loop. */
  watchLoop(): void
  /** Refuses new calls, waits this long for running ones, then aborts them. `stopListening` is called at once. */
  stop(deadlineMs: number, stopListening: () => void): Promise<void>
}

/** Opens a worker, which ends with the stack. */
export function openCallServer(parts: CallServerParts, started: AsyncDisposableStack): CallServer {
  const { watch, store, access, rulesOf, log, onThrown, keepAliveMs, workers } = parts
  const routing = openSharedState({
    settings: () => watch.current().config.health,
    workers,
    onRefused: refusedCredential(logOf(log, 'routing')),
    onFound: parts.onFound,
  })
  const { health, limiters, measurements } = routing
  const limits = () => shared(watch.current().config.server.limits, workers)
  const limiter = new ConcurrencyLimiter(limits)
  const metrics = started.adopt(new WorkerMetrics(), (open) => open.close())
  const ofPlugins = openPluginServices(logOf(log, 'plugin'), started)
  const underWay = new InFlightCalls()
  const held = heldStateOf(parts)
  const services = servicesOf(parts, {
    ofPlugins,
    tokenizer: started.adopt(openTokenizer(), (open) => open.close()),
    authenticate: access.authenticate,
    authenticateById: access.authenticateById,
    revalidate: access.revalidate,
    httpClient: started.adopt(openHttpClient(), (open) => open.close()),
    signatures: parts.signatures,
    ledger: { ...logged(parts, logOf(log, 'call')), begin: underWay.begin },
    conversations: openConversations(store),
    held,
    rulesOf,
    admission: { ...parts.admission, speedOf: (target) => measurements.tokensPerSecond(target) },
    gate: limiter,
    routing,
  })
  const running = new RunningRequests()
  parts.plugins.presentCallsEnd = () => running.presentEnded().then(() => ofPlugins.records.idle(recordsMs))
  const plugins = pluginFacts(ofPlugins, watch)
  const { accounts } = parts
  const known = { underWay, running, limiter, limiters, limits, metrics, plugins, accounts }
  let stopping = false
  const server = () => watch.current().config.server
  return {
    context: {
      services,
      bodyLimits: () => server().body,
      sampling: parts.sampling,
      corsOrigins: () => server().cors,
      log,
      onThrown,
      onCallFailed: (thrown) => metrics.failed(thrown),
      stopping: () => stopping,
      running,
      ...clientLimits(server),
      keepAliveMs,
      keepsAliveEarly: () => server().keepAlive === 'early',
    },
    degraded: () => health.degraded(),
    takeMeasured: () => measurements.takeFindings(),
    merge: routing.merge,
    underWay: underWay.of,
    ...plugins,
    facts: () => factsOf(known),
    watchLoop: () => metrics.watch(),
    stop(deadlineMs, stopListening) {
      stopping = true
      stopListening()
      return ended(deadlineMs, running, ofPlugins)
    },
  }
}

/** Ends running calls, and waits until plugins have recorded them. */
async function ended(deadlineMs: number, running: RunningRequests, { records }: PluginServices): Promise<void> {
  await running.endWithin(deadlineMs)
  // The last error responses have been written.
  await new Promise(setImmediate)
  await records.idle(recordsMs)
}

/** Returns a function that logs, once for each model, that a retired one is still called. */
function retiredNotice(log: Log): NonNullable<Services['onRetired']> {
  const known = new LRUCache<string, true>({ max: maxRetiredNotices })
  return ({ model, shutdown, successor }) => {
    if (known.has(model)) return
    known.set(model, true)
    log.warn({ model, shutdown, ...(successor !== undefined && { successor }) }, 'a retired model is called')
  }
}

/** Number of retired models whose notices are remembered: after that many others, a model may be named again. */
const maxRetiredNotices = 1_000

/** Returns the limits for clients that stall. */
function clientLimits(server: () => Config['server']): Pick<ServerContext, 'clientTimeoutMs' | 'clientMinRate'> {
  return { clientTimeoutMs: () => server().clientTimeoutMs, clientMinRate: () => server().clientMinRate }
}

/** Returns a function that logs which provider does not accept the credential that the router has for it. */
function refusedCredential(log: Log): NonNullable<HealthOptions['onRefused']> {
  // Without its message, which may repeat a prompt: the ledger has that, where it may be stored.
  return (provider, { code }) =>
    log.warn({ provider, error: code }, 'the provider rejects the credential of this router')
}

function heldStateOf({ store, log, onThrown }: CallServerParts): HeldState {
  return openHeldState(store.held, (err) => {
    onThrown(err)
    log.error({ err }, 'state stored at a provider cannot be recorded')
  })
}

/** Returns the calls and failures of the plugins of the current snapshot. */
function pluginFacts(
  { faults }: Pick<PluginServices, 'faults'>,
  watch: CallServerParts['watch'],
): Pick<CallServer, 'failingHooks' | 'pluginActivity'> {
  const plugins = () => watch.current().plugins
  return {
    failingHooks: () => faults.failing(plugins()),
    pluginActivity: () => ({ runs: faults.runs(plugins()), faults: faults.counts() }),
  }
}

/** Returns the facts that a worker reports about itself. */
function factsOf(own: {
  running: RunningRequests
  underWay: InFlightCalls
  limiter: ConcurrencyLimiter
  limiters: ConcurrencyLimiters
  limits: () => ConcurrencyLimits
  metrics: WorkerMetrics
  plugins: Pick<CallServer, 'failingHooks' | 'pluginActivity'>
  accounts: CallServerParts['accounts']
}): WorkerFacts {
  const { running, underWay, limiter, limiters, limits, metrics, plugins, accounts } = own
  const { runs: hookRuns, faults: pluginFaults } = plugins.pluginActivity()
  return {
    running: running.size,
    streams: running.streams,
    underWay: underWay.all(),
    reservedUsd: Number(accounts.totals().reservedNano) / 1e9,
    limiters: [limiterStatus('server', limiter, limits()), ...limiters.standings()],
    pluginFaults,
    failingHooks: plugins.failingHooks(),
    hookRuns,
    ...metrics.facts(),
  }
}

/** Maximum number of refused calls of one organization that are reported in a second. */
const maxRefusedPerSecond = 100

/** Maximum time for which a worker that stops waits for plugins to record calls. Milliseconds. */
const recordsMs = 2_000

type OfSnapshot =
  | 'directory'
  | 'resources'
  | 'admission'
  | 'media'
  | 'maxUnknownFields'
  | 'maxValues'
  | 'keepErrorsMs'
  | 'answerBounds'
  | 'plugins'

/** Returns the services of calls: those of the current snapshot, and those that live as long as the process. */
function servicesOf(
  { watch, store: { organizations }, log }: Pick<CallServerParts, 'watch' | 'store' | 'log'>,
  {
    ofPlugins,
    ...lasting
  }: Omit<Services, OfSnapshot> & {
    ofPlugins: PluginServices
    admission: Omit<AdmissionServices, keyof Config['budget']>
  },
): () => Services {
  const onRetired = retiredNotice(logOf(log, 'routing'))
  const servicesIn = (snapshot: Snapshot, { config, plugins } = snapshot): Services => ({
    ...lasting,
    onRetired,
    ...(plugins.length > 0 && { plugins: { ...ofPlugins, loaded: plugins } }),
    directory: directoryOf(snapshot),
    admission: { ...lasting.admission, ...config.budget },
    resources: openAccountResources(config.organizations, { held: lasting.held, organizations }),
    media: { fetchMedia: openFetcher(config.media), settings: config.media },
    maxUnknownFields: config.server.body.unknownFields,
    maxValues: config.server.body.values,
    keepErrorsMs: config.errors.keepMs,
    answerBounds: config.answers,
  })
  let made: { snapshot: Snapshot; services: Services } | undefined
  return () => {
    const snapshot = watch.current()
    if (made?.snapshot !== snapshot) made = { snapshot, services: servicesIn(snapshot) }
    return made.services
  }
}

/** Returns the ledger, with a log line for every settled call. */
function logged({ ledger, onRefused }: Pick<CallServerParts, 'ledger' | 'onRefused'>, log: Log): CallLedger {
  const isDetailed = () => log.isLevelEnabled('debug')
  return {
    refused: limitPerSecond(maxRefusedPerSecond, onRefused),
    settle(record, response, { detail, keyName } = {}) {
      const { id, attemptOf, trace, requestId, requested, provider, model, served, outcome, status, error, failure } =
        record
      const { durationMs, cost, key } = record
      const { input, output } = tokensOf(record)
      const facts = {
        id,
        attempt_of: attemptOf,
        trace_id: trace?.traceId,
        request_id: requestId,
        key,
        key_name: keyName,
        requested,
        provider,
        model,
        served,
        outcome,
        status,
        error,
        failure,
        ms: durationMs,
        input_tokens: input,
        output_tokens: output,
        detail,
        provider_message: isDetailed() ? record.providerMessage : undefined,
        usd: cost.nanoUsd / 1e9,
        unpriced: cost.unpriced || undefined,
      }
      if (outcome === 'complete') log.info(facts, 'call')
      else log.warn(facts, attemptOf === undefined ? 'call' : 'attempt')
      return ledger.settle(record, response)
    },
  }
}
