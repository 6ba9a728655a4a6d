import type { CallRecord } from '../core/call.ts'
import type { Connection } from './sqlite/connection.ts'

/** Queries of the messages of providers about failed attempts. Times are Unix milliseconds. */
export function providerMessages(db: Connection) {
  const purgeOld = db.prepare(`
    DELETE FROM provider_messages WHERE id IN (SELECT id FROM provider_messages WHERE at <= ? ORDER BY at LIMIT ?)`)
  const purgeForbidden = db.prepare(`
    DELETE FROM provider_messages WHERE id IN
      (SELECT kept.id FROM organizations JOIN provider_messages AS kept ON kept.organization = organizations.id
        WHERE ${forbids('organizations')} LIMIT ?)`)
  return {
    /** Deletes at most `most` that are as old as `until`, or of organizations whose data must not be retained. Returns how many. */
    purge(most: number, until: number): number {
      const { changes } = purgeOld.run(until, most)
      return changes + (changes < most ? purgeForbidden.run(most - changes).changes : 0)
    },
  }
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
        WHERE kept.id = ? AND NOT coalesce(${forbids('organizations')}, 0)`)
    .pluck()
  return ({ id, error }) => (error === undefined ? undefined : find.get(id))
}

/** The condition under which an organization's rules forbid to retain data. */
function forbids(organization: string): string {
  return `json_extract(${organization}.data_rules, '$.data_retention') = 0`
}
