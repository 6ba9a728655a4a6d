import { randomUUIDv7 } from 'node:crypto'
import type { DataRules } from '../core/names.ts'
import { dayMs } from '../core/time.ts'
import type { Changes } from './changes.ts'
import type { PageOf } from './groups.ts'
import type { RateLimits } from './keys.ts'
import { type Retention, rulesReader } from './rules.ts'
import type { Connection } from './sqlite/connection.ts'
import { unlessTaken } from './store-error.ts'

export type { OrganizationRules, Retention } from './rules.ts'

/** An organization with all its credit and spend, in nano-USD. Times are Unix milliseconds. */
export type Organization = { id: string; name: string; createdAt: number; creditNano: bigint; spendNano: bigint }

/** The longest retention of responses, in days. */
export const maxRetentionDays = 3_650

type Row = { id: string; name: string; created_at: bigint; credit_nano: bigint; spend_nano: bigint }

/** The organizations of a database and their credits. */
export type Organizations = ReturnType<typeof organizations>

/** Queries of the organizations and their credits. */
export function organizations(db: Connection, changes: Changes) {
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
    return { stores: row?.keeps_responses === 1, days: row?.retention_days ?? 0 }
  }
  const enforce = db.prepare(enforcing)
  const wasCredited = db.prepare('SELECT 1 FROM credits WHERE organization = ? AND nano > 0 LIMIT 1')
  const find = (id: string) => organization(byId.get(id))
  const page = db.prepare<[string, number], Row>(`${select} WHERE id > ? ORDER BY id LIMIT ?`).safeIntegers()
  const count = db.prepare<[], number>('SELECT count(*) FROM (SELECT 1 FROM organizations LIMIT 2)').pluck()
  return {
    ...settings(db, changes),
    /** A new organization without credit. Throws NameTaken. */
    create(name: string): Organization {
      const id = randomUUIDv7()
      unlessTaken(`There is already an organization named '${name}'.`, () => insert.run(id, name, Date.now()))
      return find(id) as Organization
    },
    find,
    findByName: (name: string) => organization(byName.get(name)),
    /** Checks whether there are several organizations. */
    areSeveral: (): boolean => (count.get() ?? 0) > 1,
    /** All organizations, the oldest first. */
    list: (): Organization[] => all.all().map((row) => organization(row) as Organization),
    /** Organizations by id, the oldest first. */
    page: ({ after = '', limit }: Pick<PageOf, 'after' | 'limit'>): Organization[] =>
      page.all(after, limit).map((row) => organization(row) as Organization),
    /**
     * Adds credit, or takes it back when negative. The first credit makes the balance a limit. The organization must
     * exist.
     */
    credit: (id: string, nano: bigint, note = ''): Organization =>
      changes.atomically(() => {
        if (nano > 0n && wasCredited.get(id) === undefined) enforce.run(1, id)
        insertCredit.run(randomUUIDv7(), id, nano, note, Date.now())
        changes.organizations.notify(id)
        return find(id) as Organization
      }),
    /** The rules of an organization; undefined for an unknown id. */
    rules: rulesReader(db),
    /** Calls the listener with the id of each organization that this process changes. */
    onChange: changes.organizations.listen,
    /** The retention of an organization; an unknown one stores nothing. */
    retention: retentionOf,
    /** Changes the given properties. A new number of days applies to stored responses as well. */
    setRetention: (id: string, changed: Partial<Retention>): Retention =>
      changes.atomically(() => {
        const before = retentionOf(id)
        const { stores, days } = { ...before, ...changed }
        setRetention.run(stores ? 1 : 0, days, id)
        if (days !== before.days) moveExpiry.run(days * dayMs, id)
        changes.organizations.notify(id)
        return { stores, days }
      }),
  }
}

const enforcing = 'UPDATE organizations SET enforces_balance = ? WHERE id = ?'

/** The settings of an organization's calls. */
function settings(db: Connection, changes: Changes) {
  const enforce = db.prepare(enforcing)
  const setLimits = db.prepare(`
    UPDATE organizations SET requests_per_minute = @requestsPerMinute, tokens_per_minute = @tokensPerMinute,
      concurrent_calls = @concurrentCalls WHERE id = @id`)
  const setModels = db.prepare('UPDATE organizations SET approved_models = ? WHERE id = ?')
  const setRules = db.prepare('UPDATE organizations SET data_rules = ? WHERE id = ?')
  const setPlugins = db.prepare('UPDATE organizations SET plugins = ? WHERE id = ?')
  const notify = (id: string): void => changes.organizations.notify(id)
  return {
    /** Sets whether calls are rejected once the balance is used up. */
    enforceBalance(id: string, enforces: boolean): void {
      enforce.run(enforces ? 1 : 0, id)
      notify(id)
    },
    /** Sets the rate limits of all keys together. */
    setLimits(id: string, limits: RateLimits): void {
      setLimits.run({ ...limits, id })
      notify(id)
    },
    /** Sets the models that may be called, by id or as `<provider>/*`; null means all. */
    approveModels(id: string, models: readonly string[] | null): void {
      setModels.run(models === null ? null : JSON.stringify(models), id)
      notify(id)
    },
    /** Sets the guarantees that providers must give for the data they receive. */
    setDataRules(id: string, rules: DataRules): void {
      setRules.run(JSON.stringify(rules), id)
      notify(id)
    },
    /** Sets which plugins are switched on or off. */
    setPlugins(id: string, plugins: Readonly<Record<string, boolean>>): void {
      setPlugins.run(JSON.stringify(plugins), id)
      notify(id)
    },
  }
}

function organization(row: Row | undefined): Organization | undefined {
  if (!row) return undefined
  const { id, name, created_at, credit_nano, spend_nano } = row
  return { id, name, createdAt: Number(created_at), creditNano: credit_nano, spendNano: spend_nano }
}
