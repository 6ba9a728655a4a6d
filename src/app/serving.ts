import type { Access } from '../access/keys.ts'
import { openLimits } from '../access/limits.ts'
import type { OrganizationCache } from '../access/organizations.ts'
import { Accounts } from '../accounts/accounts.ts'
import type { Sampling } from '../core/trace.ts'
import { type Listeners, openListeners } from '../http/listeners.ts'
import { openBudget } from '../money/budget.ts'
import { countingLedger, spendReader } from '../money/payments.ts'
import type { Family } from '../observe/families.ts'
import type { Log } from '../observe/log.ts'
import { openSignatureCache } from '../routing/signature-cache.ts'
import { collectWhenIdle } from '../runtime/collect.ts'
import { limitYoungGeneration, usualMb } from '../runtime/young-generation.ts'
import type { PluginHost } from '../snapshot/plugin-host.ts'
import type { Watch } from '../snapshot/reload.ts'
import type { WorkerPool } from '../workers/threads/worker-pool.ts'
import type { Accounting } from './accounting.ts'
import { openCallServer } from './call-server.ts'
import { processMetrics } from './metrics.ts'
import { jsonRoutes } from './routes.ts'

/** Parts that serve calls in one or several threads: everything that the process has once. */
export type Served = {
  watch: Watch
  accounting: Accounting
  access: Access
  rulesOf: OrganizationCache['rulesOf']
  plugins: PluginHost
  log: Log
  environment: NodeJS.ProcessEnv
  /** Sampling that decides which traces are recorded. */
  sampling: Sampling
  port: number
  keepAliveMs: number
}

/** The addresses, and the end of all calls: new ones are refused, running ones aborted after a time. */
export type Serving = Omit<Listeners, 'stopListening' | 'retire'> & {
  threads: WorkerPool['threads']
  /** Returns all metrics of the process. */
  metrics(): Family[]
  /** Starts to answer requests. */
  open(): void
  /** Keeps the young generation small: the process is this router's alone. */
  limitMemory(): void
  /** Ends the start: its garbage is collected when no call runs. */
  settle(): void
  /** Resolves when another process serves, and the last call has ended here. */
  retired: Promise<void>
  stop(deadlineMs: number): Promise<void>
}

/** Serves in this thread, which owns the whole quota of its calls. */
export async function serveInThisThread(served: Served, started: AsyncDisposableStack): Promise<Serving> {
  const { watch, accounting, access, rulesOf, port } = served
  const { store, ledger, damage, writeFailure } = accounting
  const accounts = new Accounts({ readSpent: spendReader(store.immediate.spend) })
  const admission = { budget: openBudget(accounts), limits: openLimits(accounts), writeFailure }
  const own = { workers: 1, store, accounts, admission, signatures: openSignatureCache() }
  const hearing = { onThrown: damage.saw, onRefused: accounting.refused.add }
  const line = openCallServer({ ...served, ...own, ...hearing, ledger: countingLedger(ledger, accounts) }, started)
  const { stopping } = line.context
  const metrics = () => {
    line.watchLoop()
    return processMetrics({ accounting, watch, degraded: line.degraded, workers: () => ({ facts: [line.facts()] }) })
  }
  const routes = jsonRoutes({
    watch,
    store,
    access,
    rulesOf,
    stopping,
    writeFailure,
    damage: damage.failure,
    degraded: line.degraded,
    failingHooks: line.failingHooks,
    pluginActivity: line.pluginActivity,
    metrics,
    explaining: line.context.services,
    live: { watch: (organization) => accounting.live.watch(organization), underWay: line.underWay },
    refused: accounting.refused,
  })
  const { server, manage } = watch.current().config
  const where = { host: server.host, port, managePort: manage.port }
  const { stopListening, retire: _, ...listeners } = await openListeners(line.context, routes, where, started)
  const stop = (deadlineMs: number) => line.stop(deadlineMs, stopListening)
  const { running } = line.context
  return {
    ...listeners,
    threads: () => [],
    metrics,
    open() {},
    limitMemory() {
      running.onLook = limitYoungGeneration(running, usualMb)
    },
    settle: () => collectWhenIdle(running),
    retired: never,
    stop,
  }
}

/** Promise that never resolves: no other process can take over from a single thread. */
const never = new Promise<void>(() => {})
