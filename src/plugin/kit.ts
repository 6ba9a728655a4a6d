import type { Environment } from '../manifest/read/environment.ts'
import type { Log } from '../observe/log.ts'
import type { ReadBudgets } from './budgets.ts'
import type { Kit, PluginLog } from './contract.ts'
import { endOf, requireKey, type ValueStore, valueText } from './values.ts'

/** What the router lends to all plugins. */
export type Lent = {
  log: Pick<Log, keyof PluginLog>
  env: Environment
  /** The variables that hold credentials of providers: no plugin gets them. */
  credentials: ReadonlySet<string>
  values: ValueStore
  budgets: ReadBudgets
  /** A `fetch` to public addresses and these hosts. */
  openFetch(hosts: readonly string[]): GuardedFetch
}

export type GuardedFetch = { fetch: Kit['fetch']; close(): Promise<void> }

/** The kit of one plugin, which ends with it. */
export function openKit(plugin: string, hosts: readonly string[], lent: Lent): { kit: Kit; close(): Promise<void> } {
  const { fetch, close } = lent.openFetch(hosts)
  const { values } = lent
  const kit: Kit = {
    log: pluginLog(plugin, lent.log),
    values: {
      async get(key) {
        const text = await values.get(plugin, requireKey(key))
        return text === undefined ? undefined : JSON.parse(text)
      },
      set: async (key, value, ttlMs) => values.set(plugin, requireKey(key), valueText(value), endOf(ttlMs)),
      add: async (key, value, ttlMs) => values.add(plugin, requireKey(key), valueText(value), endOf(ttlMs)),
      delete: async (key) => values.delete(plugin, requireKey(key)),
    },
    budgets: lent.budgets,
    fetch,
    secret: (reference) => secretOf(reference, lent),
  }
  return { kit: Object.freeze(kit), close }
}

function pluginLog(plugin: string, log: Lent['log']): PluginLog {
  return {
    debug: (facts, message) => log.debug({ ...facts, plugin }, message),
    info: (facts, message) => log.info({ ...facts, plugin }, message),
    warn: (facts, message) => log.warn({ ...facts, plugin }, message),
    error: (facts, message) => log.error({ ...facts, plugin }, message),
  }
}

function secretOf(reference: string, { env, credentials }: Pick<Lent, 'env' | 'credentials'>): string {
  const name = /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(reference)?.[1]
  if (name === undefined) throw new Error('A secret is named by the variable that holds it: $NAME.')
  if (credentials.has(name)) throw new Error(`${name} is a credential of a provider, which no plugin gets.`)
  const value = env[name]
  if (!value) throw new Error(`The variable ${name} is not set.`)
  return value
}
