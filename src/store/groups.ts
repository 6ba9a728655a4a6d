import { randomUUIDv7 } from 'node:crypto'
import type { Changes } from './changes.ts'
import type { Connection } from './sqlite/connection.ts'
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

/** Queries of the groups. */
export function groups(db: Connection, changes: Changes) {
  const insert = db.prepare('INSERT INTO groups VALUES (@id, @organization, @name, @monthlyLimitNano, @createdAt)')
  const byId = db.prepare<[string], Row>('SELECT * FROM groups WHERE id = ?').safeIntegers()
  const byName = db
    .prepare<[string, string], Row>('SELECT * FROM groups WHERE organization = ? AND name = ?')
    .safeIntegers()
  const page = db
    .prepare<[string, string, number], Row>(
      'SELECT * FROM groups WHERE organization = ? AND id > ? ORDER BY id LIMIT ?',
    )
    .safeIntegers()
  const setLimit = db.prepare('UPDATE groups SET monthly_limit_nano = ? WHERE id = ?')
  const detachKeys = db.prepare('UPDATE api_keys SET group_id = NULL WHERE group_id = ?')
  const remove = db.prepare('DELETE FROM groups WHERE id = ?')
  const count = db.prepare<[string], number>('SELECT count(*) FROM groups WHERE organization = ?').pluck()
  const find = (id: string) => group(byId.get(id))
  const notified = (changed: Group | undefined): Group | undefined => {
    if (changed) changes.organizations.notify(changed.organization)
    return changed
  }
  return {
    /** Creates a group without keys. Throws NameTaken when the organization has a group of this name. */
    create({ organization, name, monthlyLimitNano = null }: NewGroup): Group {
      const id = randomUUIDv7()
      const row = { id, organization, name, monthlyLimitNano, createdAt: Date.now() }
      unlessTaken(`There is already a group named '${name}'.`, () => insert.run(row))
      return notified(find(id)) as Group
    },
    find,
    count: (organization: string): number => count.get(organization) ?? 0,
    findByName: (organization: string, name: string) => group(byName.get(organization, name)),
    /** Groups of an organization by id, the oldest first. */
    page: ({ organization, after = '', limit }: PageOf): Group[] =>
      page.all(organization, after, limit).map((row) => group(row) as Group),
    /** Sets the monthly limit; null is unlimited. Undefined for an unknown id. */
    setLimit(id: string, monthlyLimitNano: bigint | null): Group | undefined {
      setLimit.run(monthlyLimitNano, id)
      return notified(find(id))
    },
    /** Deletes a group; its keys remain, without a group. Returns the deleted group, undefined for an unknown id. */
    remove: (id: string): Group | undefined =>
      changes.atomically(() => {
        const removed = find(id)
        if (removed && detachKeys.run(id).changes > 0) changes.keys.notify(undefined)
        remove.run(id)
        return notified(removed)
      }),
  }
}

function group(row: Row | undefined): Group | undefined {
  if (!row) return undefined
  const { id, organization, name, monthly_limit_nano, created_at } = row
  return { id, organization, name, monthlyLimitNano: monthly_limit_nano, createdAt: Number(created_at) }
}
