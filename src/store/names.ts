import type { PolicyFile } from '../core/routing/policy-file.ts'
import type { Changes } from './changes.ts'
import type { Database, Parameters } from './database.ts'
import type { PageOf } from './groups.ts'
import { storedJson } from './store-error.ts'

/** An organization's alias of a model or a policy. */
export type Alias = { name: string; target: string }

/** An organization's policy, as it was written. */
export type NamedPolicy = PolicyFile & { id: string; description: string }

/** The row of a policy: `targets` and `routing` are JSON. */
export type PolicyRow = { id: string; description: string; targets: string; routing: string }

export const policyColumns = 'id, description, targets, routing'

/** Queries of the aliases and policies of organizations. */
export function names(db: Database, changes: Changes) {
  const count = async (table: 'aliases' | 'policies', organization: string): Promise<number> => {
    const sql = `SELECT count(*) AS names FROM ${table} WHERE organization = @organization`
    return Number((await db.get<{ names: bigint }>(sql, { organization }))?.names)
  }
  const change = async (organization: string, sql: string, parameters: Parameters): Promise<number> => {
    const changed = await db.run(sql, { organization, ...parameters })
    changes.organizations.notify(organization)
    return changed
  }
  return {
    alias: (organization: string, name: string): Promise<Alias | undefined> =>
      db.get('SELECT name, target FROM aliases WHERE organization = @organization AND name = @name', {
        organization,
        name,
      }),
    /** Aliases of an organization by name. */
    aliases: ({ organization, after = '', limit }: PageOf): Promise<Alias[]> =>
      db.all(
        'SELECT name, target FROM aliases WHERE organization = @organization AND name > @after ORDER BY name LIMIT @limit',
        { organization, after, limit },
      ),
    countAliases: (organization: string): Promise<number> => count('aliases', organization),
    countPolicies: (organization: string): Promise<number> => count('policies', organization),
    /** Creates an alias or changes its target. The organization must exist. */
    async setAlias(organization: string, { name, target }: Alias): Promise<Alias> {
      await change(organization, setAlias, { name, target, now: Date.now() })
      return { name, target }
    },
    /** Returns whether it existed. */
    removeAlias: async (organization: string, name: string): Promise<boolean> =>
      (await change(organization, 'DELETE FROM aliases WHERE organization = @organization AND name = @name', {
        name,
      })) === 1,
    async policy(organization: string, id: string): Promise<NamedPolicy | undefined> {
      const sql = `SELECT ${policyColumns} FROM policies WHERE organization = @organization AND id = @id`
      const row = await db.get<PolicyRow>(sql, { organization, id })
      return row && namedPolicy(row)
    },
    /** Policies of an organization by id. */
    async policies({ organization, after = '', limit }: PageOf): Promise<NamedPolicy[]> {
      const sql = `SELECT ${policyColumns} FROM policies WHERE organization = @organization AND id > @after ORDER BY id LIMIT @limit`
      return (await db.all<PolicyRow>(sql, { organization, after, limit })).map(namedPolicy)
    },
    /** Creates a policy or replaces the one with this id. The organization must exist. */
    async setPolicy(organization: string, changed: NamedPolicy): Promise<NamedPolicy> {
      const { id, description, targets, ...routing } = changed
      const texts = { targets: JSON.stringify(targets), routing: JSON.stringify(routing) }
      await change(organization, setPolicy, { id, description, ...texts, now: Date.now() })
      return changed
    },
    /** Returns whether it existed. */
    removePolicy: async (organization: string, id: string): Promise<boolean> =>
      (await change(organization, 'DELETE FROM policies WHERE organization = @organization AND id = @id', { id })) ===
      1,
  }
}

const setAlias = `
  INSERT INTO aliases (organization, name, target, created_at) VALUES (@organization, @name, @target, @now)
  ON CONFLICT (organization, name) DO UPDATE SET target = excluded.target`

const setPolicy = `
  INSERT INTO policies (organization, id, description, targets, routing, created_at)
  VALUES (@organization, @id, @description, @targets, @routing, @now)
  ON CONFLICT (organization, id) DO UPDATE
    SET description = excluded.description, targets = excluded.targets, routing = excluded.routing`

/** Reads a policy from its row. Throws StoreError for damage. */
export function namedPolicy({ id, description, targets, routing }: PolicyRow): NamedPolicy {
  return { id, description, targets: storedJson(targets), ...storedJson<object>(routing) }
}
