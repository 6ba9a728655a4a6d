import { hash } from 'node:crypto'
import { isObject, type JsonObject } from '../../core/json.ts'
import { hasModel } from '../../core/names.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import { monthlyLimit } from './budgets.ts'
import type { ForeignFile } from './foreign-file.ts'
import { type PlacedDeployment, variable } from './litellm-models.ts'
import type { KnownNames } from './litellm-names.ts'
import type { LitellmRows, Row } from './litellm-rows.ts'
import { type ImportPlan, type PlannedKey, type Remark, remarker } from './plan.ts'
import type { ShippedProviders } from './shipped.ts'
import { columnValue, isTrue, numberIn, textIn, textList, timeIn } from './sql-values.ts'

type Context = {
  plan: ImportPlan
  names: KnownNames
  deployments: readonly PlacedDeployment[]
  env: Environment
  shipped: ShippedProviders
}

/** Length below which a key is too easily guessed to manage a router. */
const minMasterLength = 20

/** Plans groups for teams and keys for tokens, and the key of the operator for the master key. */
export function planKeys(file: ForeignFile, rows: LitellmRows, context: Context): void {
  planMasterKey(file, context)
  const budgets = new Map(rows.LiteLLM_BudgetTable.map((row) => [row.budget_id, row]))
  const teams = new Map(rows.LiteLLM_TeamTable.map((row) => [String(row.team_id), row]))
  const remarks = new ColumnRemarks()
  const planning = { budgets, remarks, plan: context.plan }
  const groups = planTeams(rows.LiteLLM_TeamTable, planning)
  const users = new Map(rows.LiteLLM_UserTable.map((row) => [String(row.user_id), row]))
  const ofUsers = planUsers(rows, planning)
  const organizations = new Map(rows.LiteLLM_OrganizationTable.map((row) => [String(row.organization_id), row]))
  const skipped = new Map<string, number>()
  for (const row of rows.LiteLLM_VerificationToken) {
    const reason = reasonToSkip(row, teams)
    if (reason === undefined)
      planKey(row, { ...context, budgets, teams, users, organizations, groups, ofUsers, remarks })
    else skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
  }
  const remark = remarker(context.plan)
  for (const [reason, count] of skipped)
    remark('near', 'LiteLLM_VerificationToken', `${counted(count, 'key')} left out: ${reason}`)
  const spending = rows.LiteLLM_VerificationToken.some(({ spend }) => (numberIn(spend) ?? 0) > 0)
  if (spending)
    remark(
      'near',
      'LiteLLM_VerificationToken.spend',
      'what was spent before is not in the ledger: monthly limits begin at 0',
    )
  const others = [
    [
      'LiteLLM_OrganizationTable',
      rows.LiteLLM_OrganizationTable,
      'organization',
      'inference-router org create makes one, and import takes its name with --org',
    ],
    [
      'LiteLLM_ProxyModelTable',
      rows.LiteLLM_ProxyModelTable,
      'model',
      'models of the database have encrypted credentials: write them into config.yaml of LiteLLM, then import again',
    ],
  ] as const
  for (const [table, found, one, message] of others)
    if (found.length > 0) remark('manual', table, `${counted(found.length, one)}: ${message}`)
  context.plan.remarks.push(...remarks.list())
}

function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`
}

function planMasterKey(file: ForeignFile, { plan, env }: Context): void {
  const path = ['general_settings', 'master_key']
  const written = file.text(path)
  if (written === undefined) return
  const remark = remarker(plan)
  const [, named] = variable.exec(written) ?? []
  const secret = named === undefined ? written : env[named]
  if (secret === undefined)
    remark('manual', path, `${named} is not set: set it and import again, so that clients with the master key keep it`)
  else if (secret.length < minMasterLength)
    remark(
      'manual',
      path,
      `has fewer than ${minMasterLength} characters, which can be guessed: it was not imported; clients that use it need a key`,
    )
  else {
    const permissions = { completions: 'write', manage: 'write', operate: 'write' }
    const body = { name: 'LiteLLM master key', permissions }
    plan.keys.push({
      hash: hash('sha256', secret, 'hex'),
      prefix: secret.slice(0, 5),
      body,
      path: 'general_settings.master_key',
    })
    remark('near', path, 'became a key that may call models, manage keys and operate the organization')
  }
}

/** Routes of keys that may call models. */
const modelRoutes = /^(?:llm_api_routes|openai_routes|\*|\/\*)$/

function reasonToSkip(row: Row, teams: ReadonlyMap<string, Row>): string | undefined {
  const expires = timeIn(row.expires)
  if (hashOf(row) === undefined) return 'their token is not a SHA-256'
  if (expires !== undefined && expires <= Date.now()) return 'they have expired'
  if (isTrue(row.blocked)) return 'they are blocked'
  const routes = textList(row.allowed_routes)
  if (routes.length > 0 && !routes.some((route) => modelRoutes.test(route)))
    return `their allowed_routes have no equivalent (${routes.slice(0, 3).join(', ')})`
  if (row.team_id === 'litellm-dashboard') return 'they are sessions of the dashboard'
  const team = textIn(row.team_id)
  if (team === undefined) return undefined
  // Its models and its budget are not known: the key would be allowed more than before.
  if (!teams.has(team)) return 'their team is not in the export'
  return isTrue(teams.get(team)?.blocked) ? 'their team is blocked' : undefined
}

/** Returns the SHA-256 of a key. Old rows have the key itself. */
function hashOf({ token }: Row): string | undefined {
  if (typeof token !== 'string') return undefined
  if (/^[0-9a-f]{64}$/i.test(token)) return token.toLowerCase()
  return token.startsWith('sk-') ? hash('sha256', token, 'hex') : undefined
}

/** Columns that are imported, or that say nothing which a router needs. */
const usedColumns = new Set(
  `token key_name key_alias expires models user_id team_id max_parallel_requests metadata blocked tpm_limit rpm_limit max_budget budget_duration
  allowed_routes budget_id spend model_spend budget_reset_at soft_budget_cooldown created_at created_by updated_at updated_by last_active team_alias
  admins members members_with_roles team_member_permissions rotation_count last_rotation_at key_rotation_at organization_id total_spend key_type
  settings_updated_at`.split(/\s+/),
)

/** Columns that restrict what a key may do. */
const limiting =
  /^(?:model_max_budget|tpd_limit|permissions|object_permission_id|policies|budget_limits|allowed_cache_controls|access_group_ids)$/

/** Remarks about columns, one for each, with the keys or teams that have them. */
class ColumnRemarks {
  readonly #found = new Map<string, { remark: Remark; names: string[] }>()

  add(effect: Remark['effect'], path: string, { message, name }: { message: string; name: string }): void {
    const id = `${path} ${message}`
    const known = this.#found.get(id) ?? { remark: { effect, path, message }, names: [] }
    known.names.push(name)
    this.#found.set(id, known)
  }

  list(): Remark[] {
    return [...this.#found.values()].map(({ remark, names }) => {
      const more = names.length > 5 ? ` and ${names.length - 5} more` : ''
      return { ...remark, message: `${remark.message} (${names.slice(0, 5).join(', ')}${more})` }
    })
  }

  /** Adds remarks about all columns that have a value and are not imported. */
  unused(table: string, row: Row, name: string): void {
    for (const [column, value] of Object.entries(row)) {
      const read = columnValue(value)
      const isEmpty = read === null || read === undefined || read === '' || read === false || read === 'f' || read === 0
      const hasMembers = typeof read !== 'object' || read === null || Object.keys(read).length > 0
      if (usedColumns.has(column) || isEmpty || !hasMembers) continue
      const isLimit = limiting.test(column)
      const message = isLimit ? 'no equivalent: check whether the key may do more than before' : 'no equivalent'
      this.add(isLimit ? 'manual' : 'none', `${table}.${column}`, { message, name })
    }
  }
}

type Budgets = ReadonlyMap<unknown, Row>

/** Plans a group for each team. Returns their names by the ids of the teams. */
function planTeams(
  teams: readonly Row[],
  { budgets, remarks, plan }: { budgets: Budgets; remarks: ColumnRemarks; plan: ImportPlan },
): Map<string, string> {
  const names = new Map<string, string>()
  for (const row of teams) {
    const id = String(row.team_id)
    const alias = oneLine(textIn(row.team_alias) ?? id)
    const name = [...names.values()].includes(alias) ? `${alias} ${id.slice(0, 8)}` : alias
    names.set(id, name)
    const path = `LiteLLM_TeamTable (${name})`
    plan.groups.push({
      name,
      monthlyLimit: limitOf(row, budgets, { table: 'LiteLLM_TeamTable', name, remarks }) ?? 0,
      path,
    })
    for (const column of ['tpm_limit', 'rpm_limit', 'max_parallel_requests'])
      if ((numberIn(row[column]) ?? 0) > 0)
        remarks.add('manual', `LiteLLM_TeamTable.${column}`, {
          message: 'groups have a monthly limit only: give its keys rate limits',
          name,
        })
    remarks.unused('LiteLLM_TeamTable', { ...row, models: null }, name)
  }
  return names
}

/** Plans a group for each user with a budget who has keys outside of teams. Returns their names by the ids of the users. */
function planUsers(
  { LiteLLM_UserTable: users, LiteLLM_VerificationToken: tokens }: LitellmRows,
  { budgets, remarks, plan }: { budgets: Budgets; remarks: ColumnRemarks; plan: ImportPlan },
): Map<string, string> {
  const personal = new Set(tokens.filter(({ team_id }) => textIn(team_id) === undefined).map(({ user_id }) => user_id))
  const names = new Map<string, string>()
  for (const row of users.filter(({ user_id }) => personal.has(user_id))) {
    const name = oneLine(`user ${textIn(row.user_email) ?? String(row.user_id)}`)
    const limit = limitOf(row, budgets, { table: 'LiteLLM_UserTable', name, remarks })
    if (limit === undefined) continue
    names.set(String(row.user_id), name)
    plan.groups.push({ name, monthlyLimit: limit, path: `LiteLLM_UserTable (${name})` })
  }
  return names
}

function limitOf(
  row: Row,
  budgets: Budgets,
  { table, name, remarks }: { table: string; name: string; remarks: ColumnRemarks },
): number | undefined {
  const shared = budgets.get(row.budget_id) ?? {}
  const budget = numberIn(row.max_budget) ?? numberIn(shared.max_budget)
  if (budget === undefined) return undefined
  const duration = textIn(row.budget_duration) ?? textIn(shared.budget_duration)
  const { limit, note } = monthlyLimit(budget, duration, numberIn(row.spend))
  if (note !== undefined) remarks.add('near', `${table}.max_budget`, { message: note, name })
  return limit
}

type KeyContext = Context & {
  budgets: Budgets
  teams: ReadonlyMap<string, Row>
  groups: ReadonlyMap<string, string>
  users: ReadonlyMap<string, Row>
  organizations: ReadonlyMap<string, Row>
  ofUsers: ReadonlyMap<string, string>
  remarks: ColumnRemarks
}

function planKey(row: Row, context: KeyContext): void {
  const { plan, budgets, teams, users, organizations, groups, ofUsers, remarks } = context
  const secret = hashOf(row) as string
  const name = oneLine(textIn(row.key_alias) ?? textIn(row.key_name) ?? secret.slice(0, 12))
  const team = textIn(row.team_id)
  const expires = timeIn(row.expires)
  const shared = budgets.get(row.budget_id) ?? {}
  const limit = (own: string) => numberIn(row[own]) ?? numberIn(shared[own])
  const monthly = limitOf(row, budgets, { table: 'LiteLLM_VerificationToken', name, remarks })
  const user = String(row.user_id)
  // The models and the budget of a user hold for keys outside of teams.
  const owner = team === undefined ? users.get(user) : teams.get(team)
  const organization = organizations.get(String(row.organization_id ?? teams.get(String(team))?.organization_id))
  const models = modelsOf(row, [owner, organization], { ...context, name })
  remarkLimits({ shared, organization, name }, context)
  const body: JsonObject = {
    name,
    permissions: { completions: 'write' },
    ...(monthly !== undefined && { monthly_limit: monthly }),
    ...(expires !== undefined && { expires_at: new Date(expires).toISOString() }),
    ...(models !== undefined && { models }),
    limits: {
      requests_per_minute: positive(limit('rpm_limit')),
      tokens_per_minute: positive(limit('tpm_limit')),
      concurrent_calls: positive(limit('max_parallel_requests')),
    },
    labels: labelsOf(row),
  }
  const group = team === undefined ? ofUsers.get(user) : groups.get(team)
  remarks.unused('LiteLLM_VerificationToken', row, name)
  const planned: PlannedKey = {
    hash: secret,
    prefix: (textIn(row.key_name) ?? 'sk-').slice(0, 12),
    body,
    path: `LiteLLM_VerificationToken (${name})`,
  }
  plan.keys.push(group === undefined ? planned : { ...planned, group })
}

function positive(limit: number | undefined): number | null {
  return limit === undefined || limit <= 0 ? null : Math.round(limit)
}

/** Remarks on limits that a key shares with others and that are not imported. */
function remarkLimits(
  { shared, organization, name }: { shared: Row; organization: Row | undefined; name: string },
  { budgets, remarks }: KeyContext,
): void {
  if (textList(shared.allowed_models).length > 0) {
    const message = 'no equivalent: check whether the key may do more than before'
    remarks.add('manual', 'LiteLLM_BudgetTable.allowed_models', { message, name })
  }
  const budget = organization && budgets.get(organization.budget_id)
  const limits = ['max_budget', 'tpm_limit', 'rpm_limit', 'max_parallel_requests']
  const limited = limits.filter((limit) => numberIn(budget?.[limit]) !== undefined)
  if (limited.length === 0) return
  const message = `the ${limited.join(', ')} of organization ${textIn(organization?.organization_alias)} no longer limits its keys: set limits of their own`
  remarks.add('manual', 'LiteLLM_OrganizationTable.budget_id', { message: oneLine(message), name })
}

/**
 * Returns the models that a key may call; undefined for all. `owners` are its team or user, and its organization. What is not known here is left
 * out, never replaced by more.
 */
function modelsOf(
  row: Row,
  [team, organization]: readonly [Row | undefined, Row | undefined],
  context: KeyContext & { name: string },
): string[] | undefined {
  const of = (owner: Row | undefined) => owner && expanded(listed(textList(owner.models)), context)
  const ofTeam = of(team)
  const models = textList(row.models)
  const own = models.includes('all-team-models') ? ofTeam : expanded(listed(models), context)
  return inBoth(inBoth(own, ofTeam), of(organization))
}

/** Returns the models of both lists, where undefined is all. */
function inBoth(own: string[] | undefined, others: string[] | undefined): string[] | undefined {
  if (own === undefined || others === undefined) return own ?? others
  const both = [...own.filter((model) => hasModel(others, model)), ...others.filter((model) => hasModel(own, model))]
  return [...new Set(both)]
}

/** Returns the models of a list; undefined for all of them. */
function listed(models: readonly string[]): string[] | undefined {
  if (models.length === 0 || models.includes('all-proxy-models')) return undefined
  return models.filter((model) => model !== 'no-default-models')
}

function expanded(models: readonly string[] | undefined, context: KeyContext & { name: string }): string[] | undefined {
  return models?.flatMap((model) => {
    const names = namesFor(model, context)
    if (names.length === 0) {
      const message = `'${model}' was not imported: it cannot be called`
      context.remarks.add('manual', 'LiteLLM_VerificationToken.models', { message, name: context.name })
    }
    return names
  })
}

/** Returns the names here of a model, a group of models or a pattern. */
function namesFor(model: string, { names, deployments, shipped }: KeyContext): string[] {
  if (names.has(model)) return [model]
  const grouped = deployments.filter(({ accessGroups }) => accessGroups.includes(model)).map(({ name }) => name)
  if (grouped.length > 0) return grouped
  const [, provider] = /^([^/]+)\/\*$/.exec(model) ?? []
  const slug = provider === undefined ? undefined : shipped.slugOf(provider)
  return slug === undefined ? [] : [`${slug}/*`]
}

/** Returns the labels of a key: its user, and what its metadata has of single values. */
function labelsOf(row: Row): JsonObject {
  const metadata = columnValue(row.metadata)
  const members = Object.entries(isObject(metadata) ? metadata : {}).flatMap(([name, value]) => {
    const isSingle = ['string', 'number', 'boolean'].includes(typeof value)
    const text = Array.isArray(value)
      ? value.filter((one) => typeof one === 'string').join(',')
      : isSingle
        ? String(value)
        : ''
    return text === '' ? [] : [[oneLine(name), text.slice(0, 1_000)] as const]
  })
  const user = textIn(row.user_id)
  return Object.fromEntries([
    ...members.slice(0, 60),
    ...(user === undefined ? [] : [['user', user.slice(0, 1_000)] as const]),
  ])
}

function oneLine(text: string): string {
  return (
    text
      .replace(/\p{Cc}+/gu, ' ')
      .trim()
      .slice(0, 200) || 'unnamed'
  )
}
