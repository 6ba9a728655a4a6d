import { monitorEventLoopDelay } from 'node:perf_hooks'
import { RouterError } from '../core/errors.ts'
import { isRefusal } from '../core/refused-call.ts'
import type { Family, Sample } from './families.ts'

/** Facts that one event loop knows about itself. Times are in seconds, money in US dollars. */
export type WorkerFacts = {
  /** Requests and, of them, streams that are being answered. */
  running: number
  streams: number
  /** Calls in flight, by organization. */
  underWay: { [organization: string]: CallsUnderWay }
  /** Amount that running calls have reserved. */
  reservedUsd: number
  /** Calls at once, where they are limited: `server`, or a target. */
  limiters: readonly LimiterFacts[]
  /** Calls that no provider was asked for, by code, since the start. */
  refused: { [code: string]: number }
  /** Faults of the hooks of plugins. */
  pluginFaults: readonly PluginFault[]
  /** Hooks that have failed on every call since their plugin was loaded. */
  failingHooks?: readonly FailingHook[]
  /** Calls of hooks since their plugins were loaded. */
  hookRuns?: readonly HookRuns[]
  /** Delay with which the loop came round to its work in the last 30 to 60 seconds; missing until somebody asks. */
  delay?: LoopDelay
}

/** Delay of an event loop. */
export type LoopDelay = { mean: number; p99: number; max: number }

/** Admitted calls that are not settled yet, and how many of them stream. */
export type CallsUnderWay = { calls: number; streams: number }

/** Number of faults of one kind of a plugin's hook. */
export type PluginFault = { plugin: string; hook: string; fault: string; count: number }

/** A hook that has failed on every call since its plugin was loaded, and how often. */
export type FailingHook = { plugin: string; hook: string; calls: number }

/** Calls of a hook since its plugin was loaded, and how many of them failed. */
export type HookRuns = { plugin: string; hook: string; calls: number; failed: number }

/** Activity of plugins: calls of their hooks since they were loaded, and their faults since the start. */
export type PluginActivity = { runs: readonly HookRuns[]; faults: readonly PluginFault[] }

export type LimiterFacts = { name: string; running: number; waiting: number; max: number }

/** The delay is measured in periods of this length, whoever reads it how often: readers do not take it from each other. */
const periodMs = 30_000

/** Counter of facts that no row of the ledger records. */
export class WorkerMetrics {
  readonly #refused: { [code: string]: number } = Object.create(null)
  readonly #now: () => number
  #delay: ReturnType<typeof monitorEventLoopDelay> | undefined
  #begunAt = 0
  #lastPeriod: LoopDelay | undefined

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Counts a call that ended with this error; if no provider was asked for it, it was refused. */
  failed(thrown: unknown): void {
    if (!isRefusal(thrown)) return
    const code = thrown instanceof RouterError ? thrown.code : 'internal'
    this.#refused[code] = (this.#refused[code] ?? 0) + 1
  }

  /** Starts to measure the delay of the event loop. */
  watch(): void {
    if (this.#delay) return
    this.#delay = monitorEventLoopDelay({ resolution: 20 })
    this.#delay.enable()
    this.#begunAt = this.#now()
  }

  facts(): Pick<WorkerFacts, 'refused' | 'delay'> {
    const delay = this.#recentDelay()
    return { refused: { ...this.#refused }, ...(delay && { delay }) }
  }

  /** Returns the delay in this period or the one before, whichever is worse. */
  #recentDelay(): LoopDelay | undefined {
    const delay = this.#delay
    if (!delay) return undefined
    const current = delay.count > 0 ? delayOf(delay) : undefined
    const recent = worseOf(current, this.#lastPeriod)
    if (this.#now() - this.#begunAt >= periodMs) {
      this.#lastPeriod = current
      this.#begunAt = this.#now()
      delay.reset()
    }
    return recent
  }

  close(): void {
    this.#delay?.disable()
  }
}

function delayOf(delay: ReturnType<typeof monitorEventLoopDelay>): LoopDelay {
  return { mean: delay.mean / 1e9, p99: delay.percentile(99) / 1e9, max: delay.max / 1e9 }
}

function worseOf(one: LoopDelay | undefined, other: LoopDelay | undefined): LoopDelay | undefined {
  if (!one || !other) return one ?? other
  return { mean: Math.max(one.mean, other.mean), p99: Math.max(one.p99, other.p99), max: Math.max(one.max, other.max) }
}

/** Returns the metrics of all workers: counts are added up, delays are kept apart. `ended` are the counts of workers that have ended. */
export function workerFamilies(lines: readonly WorkerFacts[], ended: WorkerFacts['refused'] = {}): Family[] {
  const sum = (of: (line: WorkerFacts) => number) => lines.reduce((all, line) => all + of(line), 0)
  const gauge = (name: string, help: string, samples: Sample[]): Family => ({ name, help, type: 'gauge', samples })
  const one = (value: number): Sample[] => [{ labels: {}, value }]
  const refused = merged([ended, ...lines.map((line) => line.refused)])
  const gates = limitersOf(lines)
  const gateSamples = (of: (gate: LimiterFacts) => number) =>
    gates.map((gate) => ({ labels: { limit: gate.name }, value: of(gate) }))
  return [
    {
      name: 'inference_router_refused_total',
      help: 'Calls refused before any provider was asked, by error code.',
      type: 'counter',
      samples: Object.entries(refused).map(([code, value]) => ({ labels: { code }, value })),
    },
    {
      name: 'inference_router_plugin_faults_total',
      help: 'Failures of plugin hooks.',
      type: 'counter',
      samples: faultSamples(lines.flatMap(({ pluginFaults }) => pluginFaults)),
    },
    gauge('inference_router_requests_running', 'Requests in flight.', one(sum(({ running }) => running))),
    gauge('inference_router_streams_running', 'Streams in flight.', one(sum(({ streams }) => streams))),
    gauge(
      'inference_router_reserved_usd',
      'US dollars reserved by running calls.',
      one(sum(({ reservedUsd }) => reservedUsd)),
    ),
    gauge(
      'inference_router_limit_running',
      'Concurrent calls where they are limited: of the server, or of a target.',
      gateSamples(({ running }) => running),
    ),
    gauge(
      'inference_router_limit_waiting',
      'Calls waiting for the limit of concurrent calls.',
      gateSamples(({ waiting }) => waiting),
    ),
    gauge(
      'inference_router_limit_calls',
      'Limit of concurrent calls.',
      gateSamples(({ max }) => max),
    ),
    gauge(
      'inference_router_event_loop_delay_seconds',
      'Delay of the event loops in the last 30 to 60 seconds.',
      lines.flatMap(({ delay = {} }, index) =>
        Object.entries(delay).map(([stat, value]) => ({ labels: { line: String(index), stat }, value })),
      ),
    ),
  ]
}

function faultSamples(faults: readonly PluginFault[]): Sample[] {
  const same = Map.groupBy(faults, ({ plugin, hook, fault }) => `${plugin} ${hook} ${fault}`)
  return [...same.values()].flatMap((counted) => {
    const [first] = counted
    if (!first) return []
    const { count: _, ...labels } = first
    return [{ labels, value: counted.reduce((sum, { count }) => sum + count, 0) }]
  })
}

function merged(counts: readonly WorkerFacts['refused'][]): WorkerFacts['refused'] {
  const all: WorkerFacts['refused'] = {}
  for (const one of counts) for (const [code, count] of Object.entries(one)) all[code] = (all[code] ?? 0) + count
  return all
}

function limitersOf(lines: readonly WorkerFacts[]): LimiterFacts[] {
  const named = Map.groupBy(
    lines.flatMap(({ limiters }) => limiters),
    ({ name }) => name,
  )
  return [...named].map(([name, gates]) => {
    const sum = (of: (gate: LimiterFacts) => number) => gates.reduce((all, gate) => all + of(gate), 0)
    return {
      name,
      running: sum((gate) => gate.running),
      waiting: sum((gate) => gate.waiting),
      max: sum((gate) => gate.max),
    }
  })
}
