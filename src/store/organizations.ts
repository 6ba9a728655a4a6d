import { randomUUIDv7 } from 'node:crypto'
import type { DataRules } from '../core/names.ts'
import { dayMs } from '../core/time.ts'
import type { Changes } from './changes.ts'
import type { Database, Parameters } from './database.ts'
import type { PageOf } from './groups.ts'
import type { RateLimits } from './keys.ts'
import { type OrganizationRules, type Retention, readRules } from './rules.ts'
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
export function organizations(db: Database, changes: Changes) {
  // The order in which those of one moment were made.
  const place = { sqlite: 'rowid', postgres: 'id' }[db.dialect]
  const all = async (rest: string, parameters: Parameters = {}): Promise<Organization[]> =>
    (await db.all<Row>(`${select} ${rest}`, parameters)).map((row) => organization(row) as Organization)
  return {
    ...settings(db, changes),
    /** A new organization without credit. Rejects with NameTaken. */
    async create(name: string): Promise<Organization> {
      const row = { id: randomUUIDv7(), name, now: Date.now() }
      const inserting = db.run('INSERT INTO organizations (id, name, created_at) VALUES (@id, @name, @now)', row)
      await unlessTaken(`There is already an organization named '${name}'.`, inserting)
      return { id: row.id, name, createdAt: row.now, creditNano: 0n, spendNano: 0n }
    },
    find: (id: string): Promise<Organization | undefined> => organizationById(db, id),
    findByName: async (name: string): Promise<Organization | undefined> =>
      organization(await db.get<Row>(`${select} WHERE name = @name`, { name })),
    /** Checks whether there are several organizations. */
    areSeveral: async (): Promise<boolean> => (await db.all('SELECT 1 FROM organizations LIMIT 2')).length > 1,
    /** All organizations, the oldest first. */
    list: (): Promise<Organization[]> => all(`ORDER BY created_at, ${place}`),
    /** Organizations by id, the oldest first. */
    page: ({ after = '', limit }: Pick<PageOf, 'after' | 'limit'>): Promise<Organization[]> =>
      all('WHERE id > @after ORDER BY id LIMIT @limit', { after, limit }),
    /**
     * Adds credit, or takes it back when negative. The first credit makes the balance a limit. The organization must
     * exist.
     */
    async credit(id: string, nano: bigint, note = ''): Promise<Organization> {
      const credited = await db.transaction(async (tx) => {
        const wasCredited = await tx.get('SELECT 1 FROM credits WHERE organization = @id AND nano > 0 LIMIT 1', { id })
        if (nano > 0n && !wasCredited) await tx.run(enforce, { id, enforces: 1 })
        await tx.run(insertCredit, { id: randomUUIDv7(), organization: id, nano, note, now: Date.now() })
        return (await organizationById(tx, id)) as Organization
      })
      changes.organizations.notify(id)
      return credited
    },
    /** The rules of an organization; undefined for an unknown id. */
    rules: (id: string): Promise<OrganizationRules | undefined> => readRules(db, id),
    /** Calls the listener with the id of each organization that this process changes. */
    onChange: changes.organizations.listen,
    /** The retention of an organization; an unknown one stores nothing. */
    retention: (id: string): Promise<Retention> => retentionOf(db, id),
    /** Changes the given properties. A new number of days applies to stored responses as well. */
    async setRetention(id: string, changed: Partial<Retention>): Promise<Retention> {
      const after = await db.transaction(async (tx) => {
        const before = await retentionOf(tx, id)
        const { stores, days } = { ...before, ...changed }
        await tx.run(setRetention, { id, stores: stores ? 1 : 0, days })
        if (days !== before.days) await tx.run(moveExpiry, { id, storedMs: days * dayMs })
        return { stores, days }
      })
      changes.organizations.notify(id)
      return after
    },
  }
}

const sumOf = (table: 'credits' | 'organization_spend') =>
  `(SELECT CAST(coalesce(sum(nano), 0) AS BIGINT) FROM ${table} WHERE organization = organizations.id)`

const select = `
  SELECT id, name, created_at, ${sumOf('credits')} AS credit_nano, ${sumOf('organization_spend')} AS spend_nano
  FROM organizations`

const insertCredit = `
  INSERT INTO credits (id, organization, nano, note, created_at) VALUES (@id, @organization, @nano, @note, @now)`

const setRetention = 'UPDATE organizations SET keeps_responses = @stores, retention_days = @days WHERE id = @id'
const moveExpiry = 'UPDATE responses SET expires_at = created_at + @storedMs WHERE organization = @id'

async function organizationById(db: Database, id: string): Promise<Organization | undefined> {
  return organization(await db.get<Row>(`${select} WHERE id = @id`, { id }))
}

async function retentionOf(db: Database, id: string): Promise<Retention> {
  const sql = 'SELECT keeps_responses, retention_days FROM organizations WHERE id = @id'
  const row = await db.get<{ keeps_responses: bigint; retention_days: bigint }>(sql, { id })
  return { stores: row?.keeps_responses === 1n, days: Number(row?.retention_days ?? 0) }
}

const enforce = 'UPDATE organizations SET enforces_balance = @enforces WHERE id = @id'

const setLimits = `
  UPDATE organizations SET requests_per_minute = @requestsPerMinute, tokens_per_minute = @tokensPerMinute,
    concurrent_calls = @concurrentCalls WHERE id = @id`

/** The settings of an organization's calls. */
function settings(db: Database, changes: Changes) {
  const set = async (id: string, sql: string, parameters: Parameters): Promise<void> => {
    await db.run(sql, { ...parameters, id })
    changes.organizations.notify(id)
  }
  const setColumn = (id: string, column: 'approved_models' | 'data_rules' | 'plugins', value: string | null) =>
    set(id, `UPDATE organizations SET ${column} = @value WHERE id = @id`, { value })
  return {
    /** Sets whether calls are rejected once the balance is used up. */
    enforceBalance: (id: string, enforces: boolean): Promise<void> => set(id, enforce, { enforces: enforces ? 1 : 0 }),
    /** Sets the rate limits of all keys together. */
    setLimits: (id: string, limits: RateLimits): Promise<void> => set(id, setLimits, limits),
    /** Sets the models that may be called, by id or as `<provider>/*`; null means all. */
    approveModels: (id: string, models: readonly string[] | null): Promise<void> =>
      setColumn(id, 'approved_models', models === null ? null : JSON.stringify(models)),
    /** Sets the guarantees that providers must give for the data they receive. */
    setDataRules: (id: string, rules: DataRules): Promise<void> => setColumn(id, 'data_rules', JSON.stringify(rules)),
    /** Sets which plugins are switched on or off. */
    setPlugins: (id: string, plugins: Readonly<Record<string, boolean>>): Promise<void> =>
      setColumn(id, 'plugins', JSON.stringify(plugins)),
  }
}

function organization(row: Row | undefined): Organization | undefined {
  if (!row) return undefined
  const { id, name, created_at, credit_nano, spend_nano } = row
  return { id, name, createdAt: Number(created_at), creditNano: credit_nano, spendNano: spend_nano }
}
