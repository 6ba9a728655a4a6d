import type { PolicyFile } from '../core/routing/policy-file.ts'
import type { Changes } from './changes.ts'
import type { PageOf } from './groups.ts'
import type { Connection } from './sqlite/connection.ts'
import { storedJson } from './store-error.ts'

/** An organization's alias of a model or a policy. */
export type Alias = { name: string; target: string }

/** An organization's policy, as it was written. */
export type NamedPolicy = PolicyFile & { id: string; description: string }

/** The row of a policy: `targets` and `routing` are JSON. */
export type PolicyRow = { id: string; description: string; targets: string; routing: string }

export const policyColumns = 'id, description, targets, routing'

/** Queries of the aliases and policies of organizations. */
export function names(db: Connection, changes: Changes) {
  const alias = db.prepare<[string, string], Alias>(
    'SELECT name, target FROM aliases WHERE organization = ? AND name = ?',
  )
  const aliases = db.prepare<[string, string, number], Alias>(
    'SELECT name, target FROM aliases WHERE organization = ? AND name > ? ORDER BY name LIMIT ?',
  )
  const setAlias = db.prepare(`
    INSERT INTO aliases (organization, name, target, created_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (organization, name) DO UPDATE SET target = excluded.target`)
  const removeAlias = db.prepare('DELETE FROM aliases WHERE organization = ? AND name = ?')
  const policy = db.prepare<[string, string], PolicyRow>(
    `SELECT ${policyColumns} FROM policies WHERE organization = ? AND id = ?`,
  )
  const policies = db.prepare<[string, string, number], PolicyRow>(
    `SELECT ${policyColumns} FROM policies WHERE organization = ? AND id > ? ORDER BY id LIMIT ?`,
  )
  const setPolicy = db.prepare(`
    INSERT INTO policies (organization, id, description, targets, routing, created_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (organization, id) DO UPDATE
      SET description = excluded.description, targets = excluded.targets, routing = excluded.routing`)
  const removePolicy = db.prepare('DELETE FROM policies WHERE organization = ? AND id = ?')
  const countAliases = db.prepare<[string], number>('SELECT count(*) FROM aliases WHERE organization = ?').pluck()
  const countPolicies = db.prepare<[string], number>('SELECT count(*) FROM policies WHERE organization = ?').pluck()
  const notified = <Result>(organization: string, result: Result): Result => {
    changes.organizations.notify(organization)
    return result
  }
  return {
    alias: (organization: string, name: string): Alias | undefined => alias.get(organization, name),
    /** Aliases of an organization by name. */
    aliases: ({ organization, after = '', limit }: PageOf): Alias[] => aliases.all(organization, after, limit),
    countAliases: (organization: string): number => countAliases.get(organization) ?? 0,
    countPolicies: (organization: string): number => countPolicies.get(organization) ?? 0,
    /** Creates an alias or changes its target. The organization must exist. */
    setAlias(organization: string, { name, target }: Alias): Alias {
      setAlias.run(organization, name, target, Date.now())
      return notified(organization, { name, target })
    },
    /** Returns whether it existed. */
    removeAlias: (organization: string, name: string): boolean =>
      notified(organization, removeAlias.run(organization, name).changes === 1),
    policy(organization: string, id: string): NamedPolicy | undefined {
      const row = policy.get(organization, id)
      return row && namedPolicy(row)
    },
    /** Policies of an organization by id. */
    policies: ({ organization, after = '', limit }: PageOf): NamedPolicy[] =>
      policies.all(organization, after, limit).map(namedPolicy),
    /** Creates a policy or replaces the one with this id. The organization must exist. */
    setPolicy(organization: string, changed: NamedPolicy): NamedPolicy {
      const { id, description, targets, ...routing } = changed
      const columns = [JSON.stringify(targets), JSON.stringify(routing)]
      setPolicy.run(organization, id, description, ...columns, Date.now())
      return notified(organization, changed)
    },
    /** Returns whether it existed. */
    removePolicy: (organization: string, id: string): boolean =>
      notified(organization, removePolicy.run(organization, id).changes === 1),
  }
}

/** Reads a policy from its row. Throws StoreError for damage. */
export function namedPolicy({ id, description, targets, routing }: PolicyRow): NamedPolicy {
  return { id, description, targets: storedJson(targets), ...storedJson<object>(routing) }
}
