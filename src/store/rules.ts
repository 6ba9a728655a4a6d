import type { DataRules, Policy } from '../core/names.ts'
import { policyOf } from '../core/routing/policy-file.ts'
import type { Database } from './database.ts'
import { type LimitColumns, type RateLimits, rateLimits } from './keys.ts'
import { namedPolicy, type PolicyRow, policyColumns } from './names.ts'
import { storedJson } from './store-error.ts'

/** The settings of an organization that calls depend on. Money in nano-USD. */
export type OrganizationRules = {
  id: string
  name: string
  limits: RateLimits
  /** All credit it was given. */
  creditNano: bigint
  /** True if calls are refused when the balance, credit less spend, is used up. */
  enforcesBalance: boolean
  /** Ids of models, or `<provider>/*`; null means all. */
  approvedModels: readonly string[] | null
  dataRules: DataRules
  /** Plugins that are switched on or off for its calls, by name; its keys may override that. */
  plugins: Readonly<Record<string, boolean>>
  retention: Retention
  /** Targets by name. */
  aliases: ReadonlyMap<string, string>
  /** Policies by id. */
  policies: ReadonlyMap<string, Policy>
  /** Groups that have a monthly limit, by id. */
  groupLimits: ReadonlyMap<string, GroupLimit>
  /** The names of all groups, by id. */
  groupNames?: ReadonlyMap<string, string>
}

/** Setting of an organization: whether it stores its responses, and for how many days. */
export type Retention = { stores: boolean; days: number }

/** The name of a group and its monthly limit, in nano-USD. */
export type GroupLimit = { name: string; limitNano: bigint }

type Row = LimitColumns & {
  id: string
  name: string
  enforces_balance: bigint
  approved_models: string | null
  data_rules: string
  plugins: string
  keeps_responses: bigint
  retention_days: bigint
  credit_nano: bigint
}

/** Reads the rules of an organization; undefined for an unknown id. */
export async function readRules(db: Database, id: string): Promise<OrganizationRules | undefined> {
  // Together: a change that is made between two of them would be seen by halves.
  const [row, aliases, policies, groups] = await Promise.all([
    db.get<Row>(byId, { id }),
    db.all<{ name: string; target: string }>('SELECT name, target FROM aliases WHERE organization = @id', { id }),
    db.all<PolicyRow>(`SELECT ${policyColumns} FROM policies WHERE organization = @id`, { id }),
    db.all<GroupRow>('SELECT id, name, monthly_limit_nano FROM groups WHERE organization = @id', { id }),
  ])
  if (!row) return undefined
  return {
    id: row.id,
    name: row.name,
    limits: rateLimits(row),
    creditNano: row.credit_nano,
    enforcesBalance: row.enforces_balance === 1n,
    approvedModels: row.approved_models === null ? null : storedJson(row.approved_models),
    dataRules: storedJson(row.data_rules),
    plugins: storedJson(row.plugins),
    retention: { stores: row.keeps_responses === 1n, days: Number(row.retention_days) },
    aliases: new Map(aliases.map(({ name, target }) => [name, target])),
    policies: new Map(policies.map((policy) => [policy.id, ruledPolicy(policy)])),
    groupNames: new Map(groups.map((group) => [group.id, group.name])),
    groupLimits: new Map(groups.flatMap(limitOf)),
  }
}

const byId = `
  SELECT id, name, enforces_balance, approved_models, data_rules, plugins, keeps_responses, retention_days, requests_per_minute,
    tokens_per_minute, concurrent_calls,
    (SELECT CAST(coalesce(sum(nano), 0) AS BIGINT) FROM credits WHERE organization = organizations.id) AS credit_nano
  FROM organizations WHERE id = @id`

type GroupRow = { id: string; name: string; monthly_limit_nano: bigint | null }

function limitOf({ id, name, monthly_limit_nano: limitNano }: GroupRow): [id: string, limit: GroupLimit][] {
  return limitNano === null ? [] : [[id, { name, limitNano }]]
}

function ruledPolicy(row: PolicyRow): Policy {
  const { id, ...written } = namedPolicy(row)
  return policyOf(id, written)
}
