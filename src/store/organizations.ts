import { randomUUIDv7 } from 'node:crypto'
import type { Connection } from './connection.ts'
import { isDuplicate, StoreError } from './failure.ts'

/** An organization with its books: all credit it was given and all it spent, in nano-USD. Times are Unix milliseconds. */
export type Organization = { id: string; name: string; createdAt: number; creditNano: bigint; spendNano: bigint }

/** Whether an organization keeps its responses, and for how many days (1 to `longestRetentionDays`). */
export type Retention = { keeps: boolean; days: number }

/** The longest time that responses may be kept, in days. */
export const longestRetentionDays = 3_650

type Row = { id: string; name: string; created_at: bigint; credit_nano: bigint; spend_nano: bigint }

/** The organizations of a database and their credits. */
export type Organizations = ReturnType<typeof organizations>

/** The functions on the table of organizations. */
export function organizations(db: Connection) {
  const select = `
    SELECT id, name, created_at,
      (SELECT coalesce(sum(nano), 0) FROM credits WHERE organization = organizations.id) AS credit_nano,
      (SELECT coalesce(sum(nano), 0) FROM organization_spend WHERE organization = organizations.id) AS spend_nano
    FROM organizations`
  const insert = db.prepare('INSERT INTO organizations (id, name, created_at) VALUES (?, ?, ?)')
  const byId = db.prepare<[string], Row>(`${select} WHERE id = ?`).safeIntegers()
  const byName = db.prepare<[string], Row>(`${select} WHERE name = ?`).safeIntegers()
  const all = db.prepare<[], Row>(`${select} ORDER BY created_at, rowid`).safeIntegers()
  const insertCredit = db.prepare(
    'INSERT INTO credits (id, organization, nano, note, created_at) VALUES (?, ?, ?, ?, ?)',
  )
  const retention = db.prepare<[string], { keeps_responses: number; retention_days: number }>(
    'SELECT keeps_responses, retention_days FROM organizations WHERE id = ?',
  )
  const setRetention = db.prepare('UPDATE organizations SET keeps_responses = ?, retention_days = ? WHERE id = ?')
  const moveExpiry = db.prepare('UPDATE responses SET expires_at = created_at + ? WHERE organization = ?')
  const retentionOf = (id: string): Retention => {
    const row = retention.get(id)
    return { keeps: row?.keeps_responses === 1, days: row?.retention_days ?? 0 }
  }
  const changeRetention = db.transaction((id: string, changes: Partial<Retention>): Retention => {
    const before = retentionOf(id)
    const { keeps, days } = { ...before, ...changes }
    setRetention.run(keeps ? 1 : 0, days, id)
    if (days !== before.days) moveExpiry.run(days * dayMs, id)
    return { keeps, days }
  })
  const find = (id: string) => organization(byId.get(id))
  return {
    /** A new organization without credit. Throws StoreError when the name is taken. */
    create(name: string): Organization {
      const id = randomUUIDv7()
      try {
        insert.run(id, name, Date.now())
      } catch (thrown) {
        if (isDuplicate(thrown)) throw new StoreError(`There is already an organization named '${name}'.`, thrown)
        throw thrown
      }
      return find(id) as Organization
    },
    find,
    findByName: (name: string) => organization(byName.get(name)),
    /** All organizations, the oldest first. */
    list: (): Organization[] => all.all().map((row) => organization(row) as Organization),
    /** Adds credit, or takes it back when negative. The organization must exist. */
    credit(id: string, nano: bigint, note = ''): Organization {
      insertCredit.run(randomUUIDv7(), id, nano, note, Date.now())
      return find(id) as Organization
    },
    /** Whether an organization keeps its responses; an unknown one keeps none. */
    retention: retentionOf,
    /** Changes what is given. A new number of days holds for the responses that are kept already as well. */
    setRetention: (id: string, changes: Partial<Retention>): Retention => changeRetention.immediate(id, changes),
  }
}

const dayMs = 24 * 60 * 60 * 1_000

function organization(row: Row | undefined): Organization | undefined {
  if (!row) return undefined
  const { id, name, created_at, credit_nano, spend_nano } = row
  return { id, name, createdAt: Number(created_at), creditNano: credit_nano, spendNano: spend_nano }
}
