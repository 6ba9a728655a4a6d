import type { Database } from './database.ts'

/** State that providers hold for organizations, by its id there: containers, files, the messages of threads. */
export type HeldStates = ReturnType<typeof heldStates>

/** Queries of the state that providers hold. Times are Unix milliseconds. */
export function heldStates(db: Database) {
  return {
    /** Records that a provider holds something for an organization. */
    add: (organization: string, provider: string, ids: readonly string[], until: number): Promise<void> =>
      db.transaction(async (tx) => {
        for (const id of ids) await tx.run(insert, { organization, provider, id, until })
      }),
    /** The providers that hold this for an organization. */
    async holders(organization: string, id: string, now = Date.now()): Promise<string[]> {
      const rows = await db.all<{ provider: string }>(holders, { organization, id, now })
      return rows.map(({ provider }) => provider)
    },
    /** Deletes at most `most` that have expired. Returns how many. */
    purge: (most: number, now = Date.now()): Promise<number> => db.run(purge, { now, most }),
  }
}

const insert = `
  INSERT INTO held_state (organization, provider, id, expires_at) VALUES (@organization, @provider, @id, @until)
  ON CONFLICT (organization, provider, id) DO UPDATE SET expires_at = excluded.expires_at`

/** One lookup for each provider of the organization: the key of the table begins with both. */
const holders = `
  WITH RECURSIVE known(provider) AS (
    SELECT min(provider) FROM held_state WHERE organization = @organization
    UNION ALL
    SELECT (SELECT min(provider) FROM held_state WHERE organization = @organization AND provider > known.provider)
      FROM known WHERE known.provider IS NOT NULL)
  SELECT held.provider FROM known JOIN held_state AS held
    ON held.organization = @organization AND held.provider = known.provider AND held.id = @id
    WHERE held.expires_at > @now`

const purge = `
  DELETE FROM held_state WHERE (organization, provider, id) IN
    (SELECT organization, provider, id FROM held_state WHERE expires_at <= @now ORDER BY expires_at LIMIT @most)`
