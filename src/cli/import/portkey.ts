import { isObject, type JsonObject } from '../../core/json.ts'
import type { Environment } from '../../manifest/read/environment.ts'
import { Accounts } from './accounts.ts'
import { ForeignFile, type MemberPath } from './foreign-file.ts'
import { emptyPlan, type Hints, type ImportPlan, type PlannedName, remarker, remarkUnused } from './plan.ts'
import { secretReference } from './secrets.ts'
import type { ShippedProviders } from './shipped.ts'

/** Facts that a Portkey config does not have: its name, the models that clients send, and the providers of virtual keys. */
export type PortkeyFacts = { name: string; models: readonly string[]; virtualKeys: ReadonlyMap<string, string> }

/** A provider of a config, with the model that it is asked for where the config sets it. */
type Leaf = {
  path: MemberPath
  provider: string
  model: string | undefined
  weight: number
  baseUrl: string | undefined
  secret: string | undefined
}

/** Leaves that share calls by weight. Those of a later tier serve when all earlier ones fail. */
type Tiers = Leaf[][]

type Context = { plan: ImportPlan; shipped: ShippedProviders; facts: PortkeyFacts }

/** Plans the import of a Portkey config: providers, a name with its targets and rules. */
export function planPortkey(
  value: unknown,
  facts: PortkeyFacts,
  { shipped, env }: { shipped: ShippedProviders; env: Environment },
): ImportPlan {
  const plan = emptyPlan('portkey')
  const file = new ForeignFile(configIn(value))
  const accounts = new Accounts(shipped, env)
  const tiers = tiersAt(file, [], { plan, shipped, facts })
  const leaves = tiers.flat()
  const rules = rulesOf(file, plan)
  const isNamed = leaves.length > 0 && leaves.every(({ model }) => model !== undefined)
  if (leaves.length > 0 && !isNamed && facts.models.length === 0)
    remarker(plan)(
      'manual',
      leaves.find(({ model }) => model === undefined)?.path ?? [],
      'sets no override_params.model: name the models that clients send with --model',
    )
  const names = [
    ...(isNamed ? [{ name: facts.name, model: undefined }] : []),
    ...(isNamed ? [] : facts.models.map((model) => ({ name: model, model }))),
  ]
  for (const { name, model } of names) {
    const planned = nameWith(
      name,
      tiers.map((tier) => tier.map((leaf) => ({ ...leaf, model: leaf.model ?? model }))),
      { accounts, plan },
    )
    if (planned.targets.length > 0) plan.names.push({ ...planned, rules: { ...planned.rules, ...rules } })
  }
  accounts.addTo(plan)
  remarkUnused(plan, file, hints)
  return plan
}

/** Returns the config itself of an answer of Portkey's API, which may have it as a text. */
function configIn(value: unknown): unknown {
  const data = isObject(value) && isObject(value.data) ? value.data : value
  const config = isObject(data) && data.config !== undefined ? data.config : data
  if (typeof config !== 'string') return config
  try {
    return JSON.parse(config)
  } catch {
    return {}
  }
}

function tiersAt(file: ForeignFile, path: MemberPath, context: Context): Tiers {
  const remark = remarker(context.plan)
  const mode = file.text([...path, 'strategy', 'mode'])
  const items = file.items([...path, 'targets'])
  for (const statuses of [
    [...path, 'strategy', 'on_status_codes'],
    [...path, 'retry', 'on_status_codes'],
  ])
    if (file.take(statuses)) remark('near', statuses, 'the kind of a failure decides, not a list of status codes')
  if (items.length === 0) return leafAt(file, path, context)
  const children = items.map((item) => tiersAt(file, item, context))
  if (mode === 'loadbalance') {
    const weighted = children.map((tiers, index) => {
      const weight = file.number([...(items[index] as MemberPath), 'weight']) ?? 1
      return tiers.map((tier) => tier.map((leaf) => ({ ...leaf, weight: leaf.weight * weight })))
    })
    const first = weighted.flatMap((tiers) => tiers[0] ?? [])
    return [first, ...weighted.flatMap((tiers) => tiers.slice(1))]
  }
  if (mode === 'conditional') {
    remark(
      'none',
      [...path, 'strategy', 'conditions'],
      'no equivalent: its targets became an order; a plugin can choose targets',
    )
    file.take([...path, 'strategy'])
  }
  return children.flat()
}

function leafAt(file: ForeignFile, path: MemberPath, { plan, shipped, facts }: Context): Tiers {
  const remark = remarker(plan)
  const at = (name: string): MemberPath => [...path, name]
  file.take(at('name'))
  const [, integration, routed] = /^@([^/]+)\/(.+)$/.exec(file.text([...path, 'override_params', 'model']) ?? '') ?? []
  const model = routed ?? file.text([...path, 'override_params', 'model']) ?? file.text(at('azure_model_name'))
  const virtual = file.text(at('virtual_key')) ?? integration
  const named = file.text(at('provider'))?.replace(/^@/, '')
  const provider =
    named !== undefined && shipped.slugOf(named) ? named : providerOf(virtual ?? named, { shipped, facts })
  if (provider === undefined) {
    remark(
      'manual',
      path,
      `its provider is not known: name that of '${virtual ?? named ?? ''}' with --provider ${virtual ?? named ?? 'NAME'}=<slug>`,
    )
    file.take(path)
    return []
  }
  if (virtual !== undefined)
    remark(
      'near',
      at('virtual_key'),
      `is taken for ${shipped.slugOf(provider)}; its credential is at Portkey: set the variable of the provider`,
    )
  const key = file.text(at('api_key'))
  const resource = file.text(at('resource_name')) ?? file.text(at('azure_resource_name'))
  return [
    [
      {
        ...{ path, provider, model: model ?? file.text(at('deployment_id')), weight: 1 },
        baseUrl: file.text(at('custom_host')) ?? (resource && `https://${resource}.openai.azure.com`),
        secret:
          key === undefined ? undefined : secretReference(plan, key, { variable: /^\$\{?(\w+)\}?$/, hint: provider }),
      },
    ],
  ]
}

/** Returns the provider of a virtual key: the one that was named, or the one whose name its first words are. */
function providerOf(
  virtual: string | undefined,
  { shipped, facts }: Pick<Context, 'shipped' | 'facts'>,
): string | undefined {
  if (virtual === undefined) return undefined
  const named = facts.virtualKeys.get(virtual)
  if (named !== undefined) return named
  const words = virtual.split('-')
  return words.map((_, index) => words.slice(0, words.length - index).join('-')).find((name) => shipped.slugOf(name))
}

function nameWith(
  name: string,
  tiers: Tiers,
  { accounts, plan }: { accounts: Accounts; plan: ImportPlan },
): PlannedName {
  const remark = remarker(plan)
  const targets = new Map<string, number>()
  for (const [index, tier] of tiers.entries()) {
    for (const { path, provider, model, weight, baseUrl, secret } of tier) {
      if (model === undefined) continue
      const placed = accounts.place({
        provider,
        model,
        api: 'chat',
        baseUrl,
        secret,
        isOpenAiFormat: provider === 'openai-compatible' || baseUrl !== undefined,
      })
      if ('problem' in placed) remark('manual', path, placed.problem)
      else {
        if (placed.note !== undefined) remark('near', path, placed.note)
        if (!targets.has(placed.target)) targets.set(placed.target, index === 0 ? weight : 0)
      }
    }
  }
  const isShared = (tiers[0]?.length ?? 0) > 1
  if (tiers.slice(1).some((tier) => tier.length > 1))
    remark('near', 'targets', 'targets that share calls after a failure are asked in their order')
  const list = [...targets].map(([target, weight]) => (isShared ? { target, weight } : { target }))
  return { name, targets: list, rules: isShared ? { sort: 'weighted' } : {}, path: `config (${name})` }
}

function rulesOf(file: ForeignFile, plan: ImportPlan): JsonObject {
  const [attempts, timeout] = [file.number(['retry', 'attempts']), file.number(['request_timeout'])]
  if (attempts !== undefined && attempts > 5)
    remarker(plan)('near', ['retry', 'attempts'], 'at most 5 retries of one target')
  return {
    ...(attempts !== undefined && { retries: Math.min(attempts, 5) }),
    ...(timeout !== undefined && timeout > 0 && { total: `${Math.round(timeout)}ms` }),
  }
}

const hints: Hints = [
  [/(?:^|\.)cache/, 'no equivalent by name: the plugin cache'],
  [/guardrails|hooks/, 'no equivalent by name: the plugins mask-pii, guard-prompt and guard-output'],
  [/override_params/, 'no equivalent: values that requests get without having them; a plugin can add them'],
  [/\.retry/, 'retries are those of the whole name'],
  [
    /(?:^|\.)(?:aws_|vertex_|azure_|api_version)/,
    'no equivalent in the configuration: credentials and regions of clouds come from variables (docs/providers.md)',
  ],
]
