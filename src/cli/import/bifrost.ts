import { isObject, type JsonObject } from '../../core/json.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import type { ProviderSettings } from '../../manifest/read/references.ts'
import { Accounts } from './accounts.ts'
import { type BifrostNames, planGovernance } from './bifrost-keys.ts'
import { type ForeignFile, type MemberPath, pathText, textsIn } from './foreign-file.ts'
import { emptyPlan, type Hints, type ImportPlan, remarker, remarkUnused } from './plan.ts'
import { secretReference } from './secrets.ts'
import type { ShippedProviders } from './shipped.ts'

/** Plans the import of Bifrost's config.json: providers, keys, teams, budgets, limits and simple routing rules. */
export function planBifrost(
  file: ForeignFile,
  { shipped, env }: { shipped: ShippedProviders; env: Environment },
): ImportPlan {
  const plan = emptyPlan('bifrost')
  const accounts = new Accounts(shipped, env)
  const names = planProviders(file, { plan, accounts })
  accounts.addTo(plan)
  for (const [provider, slug] of names.slugs) addSettings(file, ['providers', provider], slug, plan)
  planClient(file, plan)
  const offers = (slug: string, model: string) => shipped.offers(slug, model)
  planGovernance(file, { plan, names, env, offers })
  file.take(['$schema'])
  file.take(['version'])
  remarkUnused(plan, file, hints)
  return plan
}

/** The way in which Bifrost names a variable. */
const variable = /^env\.(\w+)$/

/** Returns a text that may be written as an object with the name of a variable. */
export function textOrVariable(file: ForeignFile, path: MemberPath): string | undefined {
  const value = file.take(path)
  if (typeof value === 'string') return value === '' ? undefined : value
  if (!isObject(value)) return undefined
  const { env_var: named, value: text } = value
  if (typeof named === 'string' && named !== '') return `env.${named.replace(/^env\./, '')}`
  return typeof text === 'string' && text !== '' ? text : undefined
}

type Context = { plan: ImportPlan; accounts: Accounts }

function planProviders(file: ForeignFile, context: Context): BifrostNames {
  const slugs = new Map<string, string>()
  const targets = new Map<string, string>()
  for (const provider of file.names(['providers'])) {
    const slug = planProvider(file, provider, { ...context, targets })
    if (slug === undefined) continue
    slugs.set(provider, slug)
    if (slug !== provider)
      remarker(context.plan)(
        'near',
        ['providers', provider],
        `is called ${slug} here: models that the file does not name are called as ${slug}/<model>`,
      )
  }
  return { slugs, targets }
}

type Key = {
  path: MemberPath
  secret: string | undefined
  baseUrl: string | undefined
  models: string[]
  aliases: JsonObject
  weight: number
}

function planProvider(
  file: ForeignFile,
  provider: string,
  { plan, accounts, targets }: Context & { targets: Map<string, string> },
): string | undefined {
  const remark = remarker(plan)
  const path: MemberPath = ['providers', provider]
  const base = file.text([...path, 'custom_provider_config', 'base_provider_type'])
  const address = textOrVariable(file, [...path, 'network_config', 'base_url'])?.replace(variable, reference)
  const keys = readKeys(file, path, { plan, provider, address }).toSorted((one, other) => other.weight - one.weight)
  const [first] = keys
  const known = base ?? provider
  const deployment = (key: Key | undefined, model: string) => ({
    ...{ provider: known, model, api: 'chat', baseUrl: key?.baseUrl ?? address, secret: key?.secret },
    ...(base !== undefined && { isOpenAiFormat: true, named: provider }),
  })
  let slug = base === undefined ? accounts.open(deployment(first, '')) : undefined
  const models = new Set(
    keys.flatMap((key) => [...key.models.filter((model) => model !== '*'), ...Object.keys(key.aliases)]),
  )
  for (const model of models) {
    const shared = keys.filter(
      (key) => key.models.includes(model) || key.models.includes('*') || Object.hasOwn(key.aliases, model),
    )
    const placed = shared.flatMap((key) => {
      const alias = key.aliases[model]
      const real =
        typeof alias === 'string'
          ? alias
          : isObject(alias) && typeof alias.model_name === 'string'
            ? alias.model_name
            : model
      const one = accounts.place({ ...deployment(key, real), ...(real !== model && { is: model }) })
      if ('problem' in one) remark('manual', [...key.path, 'models'], one.problem)
      return 'problem' in one ? [] : [{ target: one.target, weight: key.weight }]
    })
    const [only] = placed
    if (!only) continue
    slug ??= only.target.split('/')[0]
    targets.set(`${provider}/${model}`, only.target)
    plan.names.push({
      ...{ name: `${provider}/${model}`, path: pathText(path) },
      targets: placed.length > 1 ? placed : [{ target: only.target }],
      rules: placed.length > 1 ? { sort: 'weighted' } : {},
    })
  }
  if (keys.length > 1 && keys.some((key) => key.models.includes('*')))
    remark(
      'near',
      [...path, 'keys'],
      'only models that the file names are shared among several keys; all others use the key with the largest weight',
    )
  if (slug === undefined) {
    remark('manual', path, `there is no provider '${known}' here, and the entry names no models`)
    file.take(path)
  }
  return slug
}

function reference(_: string, name: string): string {
  return `\${${name}}`
}

function readKeys(
  file: ForeignFile,
  path: MemberPath,
  { plan, provider, address }: { plan: ImportPlan; provider: string; address: string | undefined },
): Key[] {
  return file.items([...path, 'keys']).map((at) => {
    for (const ignored of ['name', 'id', 'enabled']) file.take([...at, ignored])
    const value = textOrVariable(file, [...at, 'value'])
    const endpoint = textOrVariable(file, [...at, 'azure_key_config', 'endpoint'])?.replace(variable, reference)
    const aliases = file.take([...at, 'aliases']) ?? file.take([...at, 'azure_key_config', 'deployments'])
    const models = file.peek([...at, 'models']) === undefined ? ['*'] : textsIn(file.take([...at, 'models']))
    return {
      path: at,
      secret: value === undefined ? undefined : secretReference(plan, value, { variable, hint: provider }),
      baseUrl: endpoint ?? address,
      models,
      aliases: isObject(aliases) ? aliases : {},
      weight: file.number([...at, 'weight']) ?? 1,
    }
  })
}

/** Adds times and limits of a provider to its settings. */
function addSettings(file: ForeignFile, path: MemberPath, slug: string, plan: ImportPlan): void {
  const network = (name: string) => file.number([...path, 'network_config', name])
  const [total, idle, retries] = [
    network('default_request_timeout_in_seconds'),
    network('stream_idle_timeout_in_seconds'),
    network('max_retries'),
  ]
  const concurrent = file.number([...path, 'concurrency_and_buffer_size', 'concurrency'])
  const queue = file.number([...path, 'concurrency_and_buffer_size', 'buffer_size'])
  const timeouts = {
    ...(total !== undefined && { total: `${total}s` }),
    ...(idle !== undefined && { between_events: `${idle}s` }),
  }
  const settings: ProviderSettings = {
    ...plan.providers[slug],
    ...(Object.keys(timeouts).length > 0 && { timeouts }),
    ...(concurrent !== undefined && { limits: { concurrent, ...(queue !== undefined && { queue }) } }),
  }
  plan.providers[slug] = settings
  if (retries === undefined) return
  const before = plan.settings.routing?.retries
  plan.settings.routing = { retries: Math.min(5, Math.max(typeof before === 'number' ? before : 0, retries)) }
  remarker(plan)(
    'near',
    [...path, 'network_config', 'max_retries'],
    'retries are the same for all providers: the largest number',
  )
}

function planClient(file: ForeignFile, plan: ImportPlan): void {
  const origins = textsIn(file.take(['client', 'allowed_origins'])).filter((origin) =>
    /^(?:\*|https?:\/\/[^\s/?#A-Z]+)$/.test(origin),
  )
  const size = file.number(['client', 'max_request_body_size_mb'])
  const server = {
    ...(origins.length > 0 && { cors: origins }),
    ...(size !== undefined && { body_limit: `${size}mb` }),
  }
  if (Object.keys(server).length > 0) plan.settings.server = server
  for (const name of ['enforce_auth_on_inference', 'enforce_governance_header'])
    if (file.take(['client', name]) === false) remarker(plan)('near', ['client', name], 'every call needs a key here')
}

const hints: Hints = [
  [/^(?:config_store|logs_store|encryption_key)/, 'not needed: one SQLite file, in which keys are hashes'],
  [
    /^(?:vector_store|plugins)/,
    'no equivalent by name: plugins (cache, langfuse-export, mask-pii), metrics and OpenTelemetry',
  ],
  [/^mcp|^client\.mcp/, 'no equivalent: the router calls no MCP servers itself'],
  [
    /^client\.(?:enable_logging|disable_content_logging|log_retention_days|prometheus_labels)/,
    'no equivalent by name: the ledger has every call without its content; metrics.labels',
  ],
  [/auth_config/, 'not needed: the first key manages the router'],
  [
    /(?:vertex|bedrock|bedrock_mantle)_key_config/,
    'no equivalent in the configuration: credentials and regions of clouds come from variables (docs/providers.md)',
  ],
  [/model_configs/, 'no equivalent: limits of single models'],
]
