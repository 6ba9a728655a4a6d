import type { PluginLog } from './contract.ts'

/** What a hook did wrong. `left_out`: there were too many calls to record, and this one was not. */
export type Fault = 'threw' | 'took_too_long' | 'wrong_result' | 'left_out'

/** How often a hook of a plugin did something wrong. */
export type FaultCount = { plugin: string; hook: string; fault: Fault; count: number }

type Counted = FaultCount & { loggedAt: number; logged: number }

/** Counts what plugins do wrong, by plugin and hook, and logs each kind once a minute at most. They survive reloads. */
export class PluginFaults {
  readonly #log: Pick<PluginLog, 'warn'>
  readonly #now: () => number
  readonly #counted = new Map<string, Counted>()

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
