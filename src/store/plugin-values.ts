import type { Database } from './database.ts'

/** The small values that plugins keep. */
export type StoredPluginValues = ReturnType<typeof pluginValues>

/** Queries of plugins' values, which are JSON texts. Times are Unix milliseconds. */
export function pluginValues(db: Database, maxOfOne = 10_000) {
  return {
    get: (plugin: string, key: string, now = Date.now()): Promise<string | undefined> => read(db, plugin, key, now),
    /** Rejects with TooManyValues. */
    set: (plugin: string, key: string, value: string, until: number): Promise<void> =>
      db.transaction((tx) => write(tx, { plugin, key, value, until, maxOfOne })),
    /** Sets a value that is not there, and returns whether it did. Rejects with TooManyValues. */
    add: (plugin: string, key: string, value: string, until: number): Promise<boolean> =>
      db.transaction(async (tx) => {
        const isNew = (await read(tx, plugin, key, Date.now())) === undefined
        if (isNew) await write(tx, { plugin, key, value, until, maxOfOne })
        return isNew
      }),
    async delete(plugin: string, key: string): Promise<void> {
      await db.run('DELETE FROM plugin_values WHERE plugin = @plugin AND key = @key', { plugin, key })
    },
    /** Deletes at most `most` that have expired. Returns how many. */
    purge: (most: number, now = Date.now()): Promise<number> => db.run(purge, { now, most }),
  }
}

async function read(db: Database, plugin: string, key: string, now: number): Promise<string | undefined> {
  const sql = 'SELECT value FROM plugin_values WHERE plugin = @plugin AND key = @key AND expires_at > @now'
  return (await db.get<{ value: string }>(sql, { plugin, key, now }))?.value
}

type NewValue = { plugin: string; key: string; value: string; until: number; maxOfOne: number }

async function write(db: Database, { plugin, key, value, until, maxOfOne }: NewValue): Promise<void> {
  const isThere = await db.get('SELECT 1 FROM plugin_values WHERE plugin = @plugin AND key = @key', { plugin, key })
  if (!isThere && (await countOf(db, plugin)) >= maxOfOne) {
    const sql = 'DELETE FROM plugin_values WHERE plugin = @plugin AND expires_at <= @now'
    if ((await db.run(sql, { plugin, now: Date.now() })) === 0) throw new TooManyValues(plugin, maxOfOne)
  }
  await db.run(put, { plugin, key, value, until })
}

async function countOf(db: Database, plugin: string): Promise<number> {
  const sql = 'SELECT count(*) AS values_of_plugin FROM plugin_values WHERE plugin = @plugin'
  return Number((await db.get<{ values_of_plugin: bigint }>(sql, { plugin }))?.values_of_plugin)
}

const put = `
  INSERT INTO plugin_values (plugin, key, value, expires_at) VALUES (@plugin, @key, @value, @until)
  ON CONFLICT (plugin, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`

const purge = `
  DELETE FROM plugin_values WHERE (plugin, key) IN
    (SELECT plugin, key FROM plugin_values WHERE expires_at <= @now ORDER BY expires_at LIMIT @most)`

/** A plugin keeps as many values as it may. */
export class TooManyValues extends Error {
  constructor(plugin: string, most: number) {
    super(
      `The plugin ${plugin} stores ${most} values, which is the limit: give them a shorter lifetime, or delete some.`,
    )
    this.name = 'TooManyValues'
  }
}
