import type { Connection } from './sqlite/connection.ts'

/** The small values that plugins keep. */
export type StoredPluginValues = ReturnType<typeof pluginValues>

/** Queries of plugins' values, which are JSON texts. Times are Unix milliseconds. */
export function pluginValues(db: Connection, mostOfOne = 10_000) {
  const find = db
    .prepare<[string, string, number], string>(
      'SELECT value FROM plugin_values WHERE plugin = ? AND key = ? AND expires_at > ?',
    )
    .pluck()
  const isThere = db.prepare('SELECT 1 FROM plugin_values WHERE plugin = ? AND key = ?').pluck()
  const count = db.prepare<[string], number>('SELECT count(*) FROM plugin_values WHERE plugin = ?').pluck()
  const put = db.prepare('INSERT OR REPLACE INTO plugin_values (plugin, key, value, expires_at) VALUES (?, ?, ?, ?)')
  const remove = db.prepare('DELETE FROM plugin_values WHERE plugin = ? AND key = ?')
  const purge = db.prepare(`
    DELETE FROM plugin_values WHERE (plugin, key) IN
      (SELECT plugin, key FROM plugin_values WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`)
  const purgeOf = db.prepare('DELETE FROM plugin_values WHERE plugin = ? AND expires_at <= ?')
  const get = (plugin: string, key: string, now = Date.now()) => find.get(plugin, key, now)
  const set = (plugin: string, key: string, value: string, until: number): void => {
    if (isThere.get(plugin, key) === undefined && (count.get(plugin) ?? 0) >= mostOfOne) {
      if (purgeOf.run(plugin, Date.now()).changes === 0) throw new TooManyValues(plugin, mostOfOne)
    }
    put.run(plugin, key, value, until)
  }
  return {
    get,
    /** Throws TooManyValues. */
    set: db.transaction(set),
    /** Sets a value that is not there, and returns whether it did. Throws TooManyValues. */
    add: db.transaction((plugin: string, key: string, value: string, until: number): boolean => {
      const isNew = get(plugin, key) === undefined
      if (isNew) set(plugin, key, value, until)
      return isNew
    }),
    delete: (plugin: string, key: string): void => {
      remove.run(plugin, key)
    },
    /** Deletes at most `most` that have expired. Returns how many. */
    purge: (most: number, now = Date.now()): number => purge.run(now, most).changes,
  }
}

/** A plugin keeps as many values as it may. */
export class TooManyValues extends Error {
  constructor(plugin: string, most: number) {
    super(
      `The plugin ${plugin} stores ${most} values, which is the limit: give them a shorter lifetime, or delete some.`,
    )
    this.name = 'TooManyValues'
  }
}
