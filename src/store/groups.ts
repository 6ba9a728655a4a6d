import { randomUUIDv7 } from 'node:crypto'
import type { Changes } from './changes.ts'
import type { Database } from './database.ts'
import { unlessTaken } from './store-error.ts'

/** Keys of an organization that share a monthly limit. Nano-USD, null means unlimited; Unix milliseconds. */
export type Group = {
  id: string
  organization: string
  name: string
  monthlyLimitNano: bigint | null
  createdAt: number
}

/** The properties of a new group; without a limit it is unlimited. */
export type NewGroup = Pick<Group, 'organization' | 'name'> & Partial<Pick<Group, 'monthlyLimitNano'>>

/** One page of an organization's records: those after an id or name, in its order. */
export type PageOf = { organization: string; after?: string; limit: number }

type Row = { id: string; organization: string; name: string; monthly_limit_nano: bigint | null; created_at: bigint }

const columns = 'id, organization, name, monthly_limit_nano, created_at'
const select = `SELECT ${columns} FROM groups`

/** Queries of the groups. */
export function groups(db: Database, changes: Changes) {
  const find = (id: string) => groupById(db, id)
  const notified = (changed: Group | undefined): Group | undefined => {
    if (changed) changes.organizations.notify(changed.organization)
    return changed
  }
  return {
    /** Creates a group without keys. Rejects with NameTaken when the organization has a group of this name. */
    async create({ organization, name, monthlyLimitNano = null }: NewGroup): Promise<Group> {
      const group = { id: randomUUIDv7(), organization, name, monthlyLimitNano, createdAt: Date.now() }
      const inserting = db.run(
        `INSERT INTO groups (id, organization, name, monthly_limit_nano, created_at)
          VALUES (@id, @organization, @name, @monthlyLimitNano, @createdAt)`,
        group,
      )
      await unlessTaken(`There is already a group named '${name}'.`, inserting)
      return notified(group) as Group
    },
    find,
    async count(organization: string): Promise<number> {
      const sql = 'SELECT count(*) AS groups FROM groups WHERE organization = @organization'
      return Number((await db.get<{ groups: bigint }>(sql, { organization }))?.groups)
    },
    findByName: async (organization: string, name: string): Promise<Group | undefined> =>
      group(await db.get<Row>(`${select} WHERE organization = @organization AND name = @name`, { organization, name })),
    /** Groups of an organization by id, the oldest first. */
    async page({ organization, after = '', limit }: PageOf): Promise<Group[]> {
      const sql = `${select} WHERE organization = @organization AND id > @after ORDER BY id LIMIT @limit`
      return (await db.all<Row>(sql, { organization, after, limit })).map((row) => group(row) as Group)
    },
    /** Sets the monthly limit; null is unlimited. Undefined for an unknown id. */
    async setLimit(id: string, monthlyLimitNano: bigint | null): Promise<Group | undefined> {
      const sql = `UPDATE groups SET monthly_limit_nano = @monthlyLimitNano WHERE id = @id RETURNING ${columns}`
      return notified(group(await db.get<Row>(sql, { id, monthlyLimitNano })))
    },
    /** Deletes a group; its keys remain, without a group. Returns the deleted group, undefined for an unknown id. */
    async remove(id: string): Promise<Group | undefined> {
      const { removed, keys } = await db.transaction(async (tx) => {
        const removed = await groupById(tx, id)
        const keys = await tx.run('UPDATE api_keys SET group_id = NULL WHERE group_id = @id', { id })
        await tx.run('DELETE FROM groups WHERE id = @id', { id })
        return { removed, keys }
      })
      if (keys > 0) changes.keys.notify(undefined)
      return notified(removed)
    },
  }
}

async function groupById(db: Database, id: string): Promise<Group | undefined> {
  return group(await db.get<Row>(`${select} WHERE id = @id`, { id }))
}

function group(row: Row | undefined): Group | undefined {
  if (!row) return undefined
  const { id, organization, name, monthly_limit_nano, created_at } = row
  return { id, organization, name, monthlyLimitNano: monthly_limit_nano, createdAt: Number(created_at) }
}
