import type { Connection } from './sqlite/connection.ts'

/** State that providers hold for organizations, by its id there: containers, files, the messages of threads. */
export type HeldStates = ReturnType<typeof heldStates>

/** Queries of the state that providers hold. Times are Unix milliseconds. */
export function heldStates(db: Connection) {
  const insert = db.prepare(
    'INSERT OR REPLACE INTO held_state (organization, provider, id, expires_at) VALUES (?, ?, ?, ?)',
  )
  const find = db
    .prepare('SELECT 1 FROM held_state WHERE organization = ? AND provider = ? AND id = ? AND expires_at > ?')
    .pluck()
  // One lookup for each provider of the organization: the key of the table begins with both.
  const findAnywhere = db
    .prepare(`
      WITH RECURSIVE known(provider) AS (
        SELECT min(provider) FROM held_state WHERE organization = :organization
        UNION ALL
        SELECT (SELECT min(provider) FROM held_state WHERE organization = :organization AND provider > known.provider)
          FROM known WHERE known.provider IS NOT NULL)
      SELECT 1 FROM known JOIN held_state AS held
        ON held.organization = :organization AND held.provider = known.provider AND held.id = :id
        WHERE held.expires_at > :now LIMIT 1`)
    .pluck()
  const purge = db.prepare(`
    DELETE FROM held_state WHERE (organization, provider, id) IN
      (SELECT organization, provider, id FROM held_state WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`)
  const insertAll = db.transaction((organization: string, provider: string, ids: readonly string[], until: number) => {
    for (const id of ids) insert.run(organization, provider, id, until)
  })
  return {
    /** Records that a provider holds something for an organization. */
    add: (organization: string, provider: string, ids: readonly string[], until: number): void =>
      insertAll(organization, provider, ids, until),
    has: (organization: string, provider: string, id: string, now = Date.now()): boolean =>
      find.get(organization, provider, id, now) !== undefined,
    /** Checks whether any provider holds this for an organization. */
    hasAnywhere: (organization: string, id: string, now = Date.now()): boolean =>
      findAnywhere.get({ organization, id, now }) !== undefined,
    /** Deletes at most `most` that have expired. Returns how many. */
    purge: (most: number, now = Date.now()): number => purge.run(now, most).changes,
  }
}
