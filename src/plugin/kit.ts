import type { Json } from '../core/json.ts'
import type { Environment } from '../manifest/read/environment.ts'
import type { Log } from '../observe/log.ts'
import type { Kit, PluginBudget, PluginLog } from './contract.ts'

/** Services that the router provides to all plugins. */
export type KitServices = {
  log: Pick<Log, keyof PluginLog>
  env: Environment
  /** The variables that hold credentials of providers: no plugin gets them. */
  credentials: ReadonlySet<string>
  values: ValueStore
  budgets: ReadBudgets
  /** Opens a `fetch` to public addresses and these hosts. */
  openFetch(hosts: readonly string[]): GuardedFetch
}

type GuardedFetch = { fetch: Kit['fetch']; close(): Promise<void> }

/** Opens the kit of one plugin, which ends with it. */
export function openKit(
  plugin: string,
  hosts: readonly string[],
  lent: KitServices,
): { kit: Kit; close(): Promise<void> } {
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

function pluginLog(plugin: string, log: KitServices['log']): PluginLog {
  return {
    debug: (facts, message) => log.debug({ ...facts, plugin }, message),
    info: (facts, message) => log.info({ ...facts, plugin }, message),
    warn: (facts, message) => log.warn({ ...facts, plugin }, message),
    error: (facts, message) => log.error({ ...facts, plugin }, message),
  }
}

function secretOf(reference: string, { env, credentials }: Pick<KitServices, 'env' | 'credentials'>): string {
  const name = /^\$([A-Za-z_][A-Za-z0-9_]*)$/.exec(reference)?.[1]
  if (name === undefined) throw new Error('Name a secret by the variable that contains it: $NAME.')
  if (credentials.has(name)) throw new Error(`${name} is a credential of a provider, which plugins do not get.`)
  const value = env[name]
  if (!value) throw new Error(`The variable ${name} is not set.`)
  return value
}

/** Store of the values of plugins: JSON texts by plugin and key. `until` is in Unix milliseconds. */
export type ValueStore = {
  get(plugin: string, key: string): Promise<string | undefined>
  set(plugin: string, key: string, value: string, until: number): Promise<void>
  /** Sets a value that is not there, and says whether it did. */
  add(plugin: string, key: string, value: string, until: number): Promise<boolean>
  delete(plugin: string, key: string): Promise<void>
}

/** Opens values in memory, for plugins that are loaded without a database. */
export function valuesInMemory(): ValueStore {
  const kept = new Map<string, { value: string; until: number }>()
  const name = (plugin: string, key: string) => `${plugin} ${key}`
  const find = (plugin: string, key: string) => {
    const entry = kept.get(name(plugin, key))
    return entry && entry.until > Date.now() ? entry.value : undefined
  }
  const put = (plugin: string, key: string, value: string, until: number) => {
    kept.set(name(plugin, key), { value, until })
  }
  return {
    get: async (plugin, key) => find(plugin, key),
    set: async (plugin, key, value, until) => put(plugin, key, value, until),
    async add(plugin, key, value, until) {
      const isNew = find(plugin, key) === undefined
      if (isNew) put(plugin, key, value, until)
      return isNew
    },
    async delete(plugin, key) {
      kept.delete(name(plugin, key))
    },
  }
}

/** Returns the text of a value. Throws an Error for anything that is not JSON, and for a value that is too large. */
export function valueText(value: Json): string {
  const text = JSON.stringify(value)
  if (text === undefined) throw new Error('A value must be JSON.')
  if (Buffer.byteLength(text) > maxBytes) throw new Error(`A value may have at most ${maxBytes} bytes of JSON.`)
  return text
}

/** Throws an Error for a key that is too long. */
export function requireKey(key: string): string {
  if (typeof key === 'string' && key !== '' && key.length <= maxKeyLength) return key
  throw new Error(`The key of a value must have 1 to ${maxKeyLength} characters.`)
}

/** Returns the time at which a value ends. Unix milliseconds. */
export function endOf(ttlMs = maxMs): number {
  if (ttlMs > 0) return Date.now() + Math.min(ttlMs, maxMs)
  throw new Error('The time for which a value is kept must be above 0 ms.')
}

const maxBytes = 64 * 1024
const maxKeyLength = 512
const maxMs = 90 * 86_400_000

/** Returns the values of a database that is opened later: earlier requests wait. */
export function valuesLater(): { values: ValueStore; open(store: ValueStore): void } {
  const { promise, resolve: open } = Promise.withResolvers<ValueStore>()
  const values: ValueStore = {
    get: async (...given) => (await promise).get(...given),
    set: async (...given) => (await promise).set(...given),
    add: async (...given) => (await promise).add(...given),
    delete: async (...given) => (await promise).delete(...given),
  }
  return { values, open }
}

/** Reads the budgets that calls of a key are charged to; an unknown key has none. */
export type ReadBudgets = (key: string) => Promise<readonly PluginBudget[]>

/** Budgets for plugins that are loaded without a database. */
export const noBudgets: ReadBudgets = async () => []

/** Returns the budgets of a database that is opened later: earlier requests wait. */
export function budgetsLater(): { budgets: ReadBudgets; open(read: ReadBudgets): void } {
  const { promise, resolve: open } = Promise.withResolvers<ReadBudgets>()
  return { budgets: async (key) => (await promise)(key), open }
}
