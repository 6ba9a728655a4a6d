import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { FailingHook, HookRuns } from '../observe/worker-metrics.ts'
import type { Hooks, PluginLog } from './contract.ts'

/** Kind of fault of a hook. `left_out`: there were too many calls to record, and this one was not. */
export type Fault = 'threw' | 'took_too_long' | 'wrong_result' | 'left_out'

/** Number of faults of one kind of a plugin's hook. */
export type FaultCount = { plugin: string; hook: string; fault: Fault; count: number }

type Runs = { calls: number; failed: number }

type Counted = FaultCount & { loggedAt: number; logged: number }

/** Returns the problem that a failing hook is, as `/ready` reports it. */
export function hookProblem({ plugin, hook, calls }: FailingHook): string {
  const times = calls === 1 ? 'its only call' : `all of its ${calls} calls`
  return `plugin ${plugin}: the hook \`${hook}\` has failed on ${times} since it was loaded; the log has the errors`
}

/** Faults of plugins, counted by plugin and hook. Each kind is logged once a minute at most. They survive reloads. */
export class PluginFaults {
  readonly #log: Pick<PluginLog, 'warn'>
  readonly #now: () => number
  readonly #counted = new Map<string, Counted>()
  /** The calls of each hook of a plugin as it is loaded, and the number of those that failed. */
  readonly #sinceLoad = new WeakMap<Hooks, Map<string, Runs>>()

  constructor(log: Pick<PluginLog, 'warn'>, now: () => number = () => performance.now()) {
    this.#log = log
    this.#now = now
  }

  saw(plugin: string, hook: string, fault: Fault, { call, err }: { call?: string; err: unknown }): void {
    const counted = this.#of(plugin, hook, fault)
    counted.count++
    const now = this.#now()
    if (now - counted.loggedAt < reminderMs) return
    const times = counted.count - counted.logged
    counted.loggedAt = now
    counted.logged = counted.count
    this.#log.warn({ plugin, hook, fault, id: call, err, ...(times > 1 && { times }) }, 'a hook of a plugin failed')
  }

  /** Counts a call of a hook of a plugin as it is loaded. */
  ran(hooks: Hooks, hook: string, hasFailed: boolean): void {
    let known = this.#sinceLoad.get(hooks)
    if (!known) {
      known = new Map()
      this.#sinceLoad.set(hooks, known)
    }
    let runs = known.get(hook)
    if (!runs) {
      runs = { calls: 0, failed: 0 }
      known.set(hook, runs)
    }
    runs.calls++
    if (hasFailed) runs.failed++
  }

  /** Returns the calls of the hooks of these plugins since they were loaded. */
  runs(plugins: readonly { name: string; hooks: Hooks }[]): HookRuns[] {
    return plugins.flatMap(({ name: plugin, hooks }) =>
      [...(this.#sinceLoad.get(hooks) ?? [])].map(([hook, runs]) => ({ plugin, hook, ...runs })),
    )
  }

  /** Returns the hooks of these plugins that have failed whenever they were called. */
  failing(plugins: readonly { name: string; hooks: Hooks }[]): FailingHook[] {
    return this.runs(plugins).flatMap(({ failed, ...hook }) => (failed === hook.calls ? [hook] : []))
  }

  counts(): FaultCount[] {
    return [...this.#counted.values()].map(({ loggedAt: _, logged: __, ...count }) => count)
  }

  #of(plugin: string, hook: string, fault: Fault): Counted {
    const key = `${plugin} ${hook} ${fault}`
    let counted = this.#counted.get(key)
    if (!counted) {
      counted = { plugin, hook, fault, count: 0, loggedAt: Number.NEGATIVE_INFINITY, logged: 0 }
      this.#counted.set(key, counted)
    }
    return counted
  }
}

const reminderMs = 60_000

const running = new AsyncLocalStorage<string>()
const notified = new Set<Pick<PluginFaults, 'saw'>>()
let isCatching = false

const contexts = new Map<string, AsyncResource>()

/**
 * Returns the context in which work is attributed to a plugin: to enter one that is there (`runInAsyncScope`) takes a tenth of the time of
 * making one.
 */
export function contextOf(name: string): AsyncResource {
  let context = contexts.get(name)
  if (!context) {
    context = running.run(name, () => new AsyncResource('PLUGIN'))
    contexts.set(name, context)
  }
  return context
}

/** Runs code of a plugin: work that it leaves running is attributed to the plugin as well. */
export function inPlugin<Result>(name: string, run: () => Result): Result {
  return contextOf(name).runInAsyncScope(run)
}

/**
 * Catches, from now on, uncaught errors of work that a plugin has left behind, so that they end nothing. All others end the process, as
 * ever.
 */
export function catchUncaughtErrors(): void {
  if (isCatching) return
  isCatching = true
  process.on('uncaughtException', (err) => {
    const plugin = running.getStore()
    if (plugin !== undefined) for (const faults of notified) faults.saw(plugin, 'background', 'threw', { err })
    // Where another listener exists, that one decides what happens to it.
    else if (process.listenerCount('uncaughtException') === 1) throw err
  })
}

/** Counts such errors, until the function that is returned is called. */
export function countUncaughtErrors(faults: Pick<PluginFaults, 'saw'>): () => void {
  notified.add(faults)
  return () => void notified.delete(faults)
}
