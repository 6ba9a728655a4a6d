import { bounded, type Family, type Sample, single } from '../observe/families.ts'
import { type WorkerFacts, workerFamilies } from '../observe/worker-metrics.ts'
import type { TargetOutage } from '../routing/health/health.ts'
import type { Watch } from '../snapshot/reload.ts'
import type { Accounting } from './accounting.ts'

/** Sources of the metrics of a process; `lines` are the facts that its event loops report, and the counts of those that have ended. */
export type MetricSources = {
  accounting: Pick<Accounting, 'ledger' | 'metrics'>
  watch: Pick<Watch, 'current' | 'problems' | 'refusals'>
  degraded(): readonly TargetOutage[]
  workers(): { facts: readonly WorkerFacts[]; ended?: WorkerFacts['refused'] }
}

/** Returns all metrics of the process. */
export function processMetrics({ accounting, watch, degraded, workers }: MetricSources): Family[] {
  const { facts, ended } = workers()
  const { series } = watch.current().config.metrics
  return [
    ...accounting.metrics.calls.families(),
    ...[...workerFamilies(facts, ended), circuits(degraded())].map((family) => bounded(family, series)),
    single(
      'gauge',
      'inference_router_ledger_backlog',
      'Settled calls that are not on disk yet.',
      accounting.ledger.backlog(),
    ),
    accounting.metrics.commitFamily(),
    single(
      'gauge',
      'inference_router_snapshot_generation',
      'The generation of the files in use.',
      watch.current().generation,
    ),
    single(
      'gauge',
      'inference_router_reload_problems',
      'Problems of files that are not in use, or not in their newest version.',
      watch.problems().length,
    ),
    single(
      'counter',
      'inference_router_reloads_refused_total',
      'Changes of files that were rejected, as a whole or for one file.',
      watch.refusals(),
    ),
    ...ofProcess(),
  ]
}

/** Describes the circuits that take no calls, or not all. */
function circuits(troubled: readonly TargetOutage[]): Family {
  const samples = troubled.map(({ scope, name, state }): Sample => ({ labels: { scope, name, state }, value: 1 }))
  const help = 'Addresses, credentials and targets of providers that take no calls, or only some.'
  return { name: 'inference_router_circuit_not_closed', help, type: 'gauge', samples }
}

/** Returns the names that libraries of Prometheus use for every process. */
function ofProcess(): Family[] {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  return [
    single('counter', 'process_cpu_seconds_total', 'CPU time of all threads, in seconds.', (user + system) / 1e6),
    single('gauge', 'process_resident_memory_bytes', 'Resident memory.', rss),
    single('gauge', 'process_start_time_seconds', 'When the process started, in Unix seconds.', startedAt),
    single('gauge', 'nodejs_heap_size_used_bytes', 'Memory of the JavaScript heap of the main thread.', heapUsed),
  ]
}

const startedAt = Date.now() / 1_000 - process.uptime()
