import { hash } from 'node:crypto'
import type { JsonObject } from '../../core/json.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import { monthlyLimit } from './budgets.ts'
import { type ForeignFile, type MemberPath, textsIn } from './foreign-file.ts'
import { type ImportPlan, remarker } from './plan.ts'

/** Slugs here by the names of providers in Bifrost, and the targets of the models that the file names: `openai/gpt-5`. */
export type BifrostNames = { slugs: ReadonlyMap<string, string>; targets: ReadonlyMap<string, string> }

type Context = {
  plan: ImportPlan
  names: BifrostNames
  env: Environment
  /** Checks whether a provider offers a model. */
  offers: (slug: string, model: string) => boolean
}

/** Plans groups for teams, keys for virtual keys, and policies for routing rules that ask for one model. */
export function planGovernance(file: ForeignFile, context: Context): void {
  const remark = remarker(context.plan)
  const budgets = readBudgets(file)
  const teams = planTeams(file, budgets, context.plan)
  const rates = new Map(
    file.items(['governance', 'rate_limits']).map((path) => [String(file.take([...path, 'id'])), path]),
  )
  for (const path of file.items(['governance', 'virtual_keys']))
    planKey(file, path, { ...context, budgets, teams, rates })
  for (const path of file.items(['governance', 'customers']))
    remark(
      'manual',
      path,
      `customers have no equivalent: create an organization for each (org create), and import with --org`,
    )
  file.take(['governance', 'customers'])
  for (const path of file.items(['governance', 'routing_rules'])) planRule(file, path, context)
}

type Budget = { limit: number; duration: string | undefined; path: MemberPath }
/** Budgets by their own ids, and by those of their owners. */
type Budgets = ReadonlyMap<string, Budget>

function readBudgets(file: ForeignFile): Budgets {
  const found = new Map<string, Budget>()
  for (const path of file.items(['governance', 'budgets'])) {
    const limit = file.number([...path, 'max_limit'])
    const duration = file.text([...path, 'reset_duration'])
    for (const ignored of ['current_usage', 'last_reset', 'calendar_aligned']) file.take([...path, ignored])
    for (const owner of ['id', 'team_id', 'virtual_key_id']) {
      const id = file.text([...path, owner])
      if (id !== undefined && limit !== undefined) found.set(`${owner} ${id}`, { limit, duration, path })
    }
  }
  return found
}

function limitFrom(budget: Budget | undefined, plan: ImportPlan): number | undefined {
  if (!budget) return undefined
  const { limit, note } = monthlyLimit(budget.limit, budget.duration)
  if (note !== undefined) remarker(plan)('near', budget.path, note)
  return limit
}

function planTeams(file: ForeignFile, budgets: Budgets, plan: ImportPlan): Map<string, string> {
  const teams = new Map<string, string>()
  for (const path of file.items(['governance', 'teams'])) {
    const id = file.text([...path, 'id']) ?? ''
    const name = file.text([...path, 'name']) ?? id
    const shared = file.text([...path, 'budget_id'])
    const limit = limitFrom(budgets.get(`team_id ${id}`) ?? budgets.get(`id ${shared}`), plan)
    teams.set(id, name)
    plan.groups.push({ name, monthlyLimit: limit ?? 0, path: `governance.teams (${name})` })
  }
  return teams
}

type KeyContext = Context & {
  budgets: Budgets
  teams: ReadonlyMap<string, string>
  rates: ReadonlyMap<string, MemberPath>
}

function planKey(file: ForeignFile, path: MemberPath, context: KeyContext): void {
  const { plan, env, budgets, teams, rates } = context
  const remark = remarker(plan)
  const text = (name: string) => file.text([...path, name])
  const id = text('id') ?? ''
  const name = text('name') ?? id
  for (const ignored of ['description', 'calendar_aligned']) file.take([...path, ignored])
  if (file.take([...path, 'is_active']) === false) {
    file.take(path)
    remark('near', path, `the key '${name}' is not active and was left out`)
    return
  }
  const written = text('value')
  const [, variable] = /^env\.(\w+)$/.exec(written ?? '') ?? []
  const secret = variable === undefined ? written : env[variable]
  const team = text('team_id')
  if (secret === undefined || (team !== undefined && !teams.has(team))) {
    const reason =
      secret === undefined
        ? `${variable ?? 'its value'} is not set: set it and import again`
        : 'its team is not in the file'
    file.take(path)
    remark('manual', path, `the key '${name}' was left out: ${reason}`)
    return
  }
  const monthly = limitFrom(budgets.get(`virtual_key_id ${id}`) ?? budgets.get(`id ${text('budget_id')}`), plan)
  const models = modelsOf(file, path, context)
  const rate = rates.get(text('rate_limit_id') ?? '')
  const body: JsonObject = {
    name,
    permissions: { completions: 'write' },
    ...(monthly !== undefined && { monthly_limit: monthly }),
    ...(models !== undefined && { models }),
    ...(rate && { limits: rateLimits(file, rate, plan) }),
  }
  const group = team === undefined ? undefined : teams.get(team)
  plan.keys.push({
    ...{
      hash: hash('sha256', secret, 'hex'),
      prefix: secret.slice(0, Math.min(8, Math.floor(secret.length / 4))),
      body,
    },
    ...(group !== undefined && { group }),
    path: `governance.virtual_keys (${name})`,
  })
}

/** Returns the models of a virtual key; undefined for all. In files of version 2, an empty list is none. */
function modelsOf(file: ForeignFile, path: MemberPath, { names, plan }: KeyContext): string[] | undefined {
  const isOpen = file.peek(['version']) === 1
  const configs = file.items([...path, 'provider_configs'])
  if (configs.length === 0) return isOpen ? undefined : []
  return configs.flatMap((config) => {
    const provider = file.text([...config, 'provider']) ?? ''
    const slug = names.slugs.get(provider)
    const allowed = textsIn(file.take([...config, 'allowed_models']))
    if ((file.number([...config, 'weight']) ?? 1) !== 1)
      remarker(plan)(
        'near',
        [...config, 'weight'],
        'clients name the provider of a model; shares of calls are those of a policy',
      )
    const ids = textsIn(file.take([...config, 'key_ids']))
    if (ids.length > 0 && !ids.includes('*'))
      remarker(plan)(
        'none',
        [...config, 'key_ids'],
        'no equivalent: a key is not bound to one credential of a provider',
      )
    if (slug === undefined) {
      remarker(plan)('manual', config, `'${provider}' was not imported: the key cannot call it`)
      return []
    }
    if (allowed.includes('*') || (allowed.length === 0 && isOpen)) return [`${slug}/*`, ...namesOf(provider, names)]
    return allowed.flatMap((model) => {
      const name = `${provider}/${model}`
      const target = names.targets.get(name)
      return target === undefined ? [`${slug}/${model}`] : [...new Set([name, target])]
    })
  })
}

/** Returns the names of a provider that the file has: a key needs them where several accounts serve one. */
function namesOf(provider: string, { targets }: BifrostNames): string[] {
  return [...targets.keys()].filter((name) => name.startsWith(`${provider}/`))
}

const units: { readonly [unit: string]: number } = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
  M: 2_592_000,
  Y: 31_536_000,
}

/** Returns rate limits for a minute. */
function rateLimits(file: ForeignFile, path: MemberPath, plan: ImportPlan): JsonObject {
  const perMinute = (kind: string): number | null => {
    const most = file.number([...path, `${kind}_max_limit`])
    const duration = file.text([...path, `${kind}_reset_duration`]) ?? '1m'
    const [, count = '1', unit = 'm'] = /^(\d+)([smhdwMY])$/.exec(duration) ?? []
    const minutes = (Number(count) * (units[unit] ?? 60)) / 60
    if (most === undefined || most <= 0) return null
    const limit = Math.max(1, Math.ceil(most / minutes))
    if (minutes !== 1)
      remarker(plan)('near', [...path, `${kind}_max_limit`], `${most} in ${duration} became ${limit} a minute`)
    return limit
  }
  file.take([...path, 'metric'])
  return { requests_per_minute: perMinute('request'), tokens_per_minute: perMinute('token') }
}

/** Plans a policy for a rule that holds for all callers of one model; others have no equivalent. */
function planRule(file: ForeignFile, path: MemberPath, { plan, names, offers }: Context): void {
  const [, model] =
    /^\s*(?:request\.)?model\s*==\s*(?:'([^']+)'|"([^"]+)")\s*$/
      .exec(String(file.peek([...path, 'cel_expression']) ?? ''))
      ?.filter((one) => one !== undefined) ?? []
  const scope = file.peek([...path, 'scope']) ?? 'global'
  if (model === undefined || scope !== 'global' || file.peek([...path, 'enabled']) === false) return
  const written = [
    ...file.items([...path, 'targets']).map((at) => ({
      provider: file.text([...at, 'provider']),
      model: file.text([...at, 'model']) ?? model,
      weight: file.number([...at, 'weight']) ?? 1,
    })),
    ...textsIn(file.take([...path, 'fallbacks'])).map((fallback) => {
      const [provider, ...rest] = fallback.split('/')
      return { provider, model: rest.join('/') || model, weight: 0 }
    }),
  ]
  for (const used of ['id', 'name', 'cel_expression', 'enabled', 'priority', 'scope', 'targets', 'description'])
    file.take([...path, used])
  const targets = written.flatMap(({ provider, model: named, weight }) => {
    const slug = names.slugs.get(provider ?? '')
    const target =
      names.targets.get(`${provider}/${named}`) ??
      (slug !== undefined && offers(slug, named) ? `${slug}/${named}` : undefined)
    if (target === undefined) remarker(plan)('manual', path, `'${provider}/${named}' was not imported`)
    return target === undefined ? [] : [{ target, weight }]
  })
  if (targets.length > 0)
    plan.names.push({
      name: model,
      targets,
      rules: targets.length > 1 ? { sort: 'weighted' } : {},
      path: `governance.routing_rules (${model})`,
    })
}
