import type { CallRecord } from '../core/call.ts'
import type { Database } from './database.ts'
import type { Connection } from './sqlite/connection.ts'

/** The messages of providers in a database. */
export type ProviderMessages = ReturnType<typeof providerMessages>

/** Queries of the messages of providers about failed attempts. Times are Unix milliseconds. */
export function providerMessages(db: Database) {
  const purgeForbidden = `
    DELETE FROM provider_messages WHERE id IN
      (SELECT kept.id FROM organizations JOIN provider_messages AS kept ON kept.organization = organizations.id
        WHERE ${forbids[db.dialect]} LIMIT @most)`
  return {
    /** Deletes at most `most` that are as old as `until`, or of organizations whose data must not be retained. Returns how many. */
    async purge(most: number, until: number): Promise<number> {
      const old = await db.run(purgeOld, { until, most })
      return old + (old < most ? await db.run(purgeForbidden, { most: most - old }) : 0)
    },
  }
}

const purgeOld = `
  DELETE FROM provider_messages WHERE id IN (SELECT id FROM provider_messages WHERE at <= @until ORDER BY at LIMIT @most)`

/** The condition under which an organization's rules forbid to retain data. */
const forbids = {
  sqlite: "json_extract(organizations.data_rules, '$.data_retention') = 0",
  postgres: "CAST(organizations.data_rules AS JSONB) ->> 'data_retention' = 'false'",
}

/** A function that writes the message of a record that has one. */
export function messageWriter(db: Connection): (record: CallRecord) => void {
  const insert = db.prepare(
    'INSERT OR REPLACE INTO provider_messages (id, at, organization, message) VALUES (?, ?, ?, ?)',
  )
  return ({ id, at, organization, providerMessage }) =>
    void insert.run(id, Math.round(at), organization, providerMessage)
}

/** A function that reads the message of a record. One that may not be kept is not returned, even if it has not been deleted yet. */
export function messageReader(db: Connection): (record: Pick<CallRecord, 'id' | 'error'>) => string | undefined {
  const find = db
    .prepare<[string], string>(`
      SELECT message FROM provider_messages AS kept LEFT JOIN organizations ON organizations.id = kept.organization
        WHERE kept.id = ? AND NOT coalesce(${forbids.sqlite}, 0)`)
    .pluck()
  return ({ id, error }) => (error === undefined ? undefined : find.get(id))
}
