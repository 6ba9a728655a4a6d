import type { Json } from '../core/json.ts'

/** Where the values of plugins are kept: JSON texts by plugin and key. `until` is in Unix milliseconds. */
export type ValueStore = {
  get(plugin: string, key: string): Promise<string | undefined>
  set(plugin: string, key: string, value: string, until: number): Promise<void>
  /** Sets a value that is not there, and says whether it did. */
  add(plugin: string, key: string, value: string, until: number): Promise<boolean>
  delete(plugin: string, key: string): Promise<void>
}

/** Values in memory, for plugins that are loaded without a database. */
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

/** The text of a value. Throws an Error for what is no JSON, and for more than a value may have. */
export function valueText(value: Json): string {
  const text = JSON.stringify(value)
  if (text === undefined) throw new Error('A value must be JSON.')
  if (Buffer.byteLength(text) > mostBytes) throw new Error(`A value may have ${mostBytes} bytes of JSON.`)
  return text
}

/** Throws an Error for a key that is too long. */
export function requireKey(key: string): string {
  if (typeof key === 'string' && key !== '' && key.length <= longestKey) return key
  throw new Error(`The key of a value is a text of 1 to ${longestKey} characters.`)
}

/** When a value ends. Unix milliseconds. */
export function endOf(ttlMs = longestMs): number {
  if (ttlMs > 0) return Date.now() + Math.min(ttlMs, longestMs)
  throw new Error('The time for which a value is kept must be above 0 ms.')
}

const mostBytes = 64 * 1024
const longestKey = 512
const longestMs = 90 * 86_400_000

/** Values of a database that is opened later: what is asked before then waits. */
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
