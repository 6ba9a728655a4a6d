import { isObject, type JsonObject } from '../../core/json.ts'
import { maxWeight } from '../../core/routing/rules.ts'
import { type ForeignFile, type MemberPath, textsIn } from './foreign-file.ts'
import type { PlacedDeployment } from './litellm-models.ts'
import { type ImportPlan, remarker } from './plan.ts'

/** Names that clients call, by their name in LiteLLM: also those of `model_group_alias`. */
export type KnownNames = ReadonlySet<string>

/** The sorts that correspond to routing strategies; null for those without an equivalent. */
const strategies: { readonly [strategy: string]: string | null } = {
  'simple-shuffle': 'weighted',
  'latency-based-routing': 'latency',
  'cost-based-routing': 'price',
  'least-busy': null,
  'usage-based-routing': null,
  'usage-based-routing-v2': null,
}

/** Plans the names of model groups, their fallbacks and their aliases. */
export function planNames(file: ForeignFile, deployments: readonly PlacedDeployment[], plan: ImportPlan): KnownNames {
  const remark = remarker(plan)
  const groups = Map.groupBy(deployments, ({ name }) => name)
  const sort = sortOf(file, plan)
  const fallbacks = readFallbacks(file)
  const names = new Set(groups.keys())
  for (const [name, own] of groups) {
    const later = fallbackTargets(name, fallbacks, groups)
    for (const { path, missing } of later.unknown) remark('manual', path, `names '${missing}', which was not imported`)
    if (later.hasSpecial)
      remark('near', later.path ?? own[0]?.path ?? [], 'these models also serve after other failures')
    const first = ownTargets(own)
    const targets = [
      ...first.targets,
      ...later.targets
        .filter((target) => !first.targets.some((one) => one.target === target))
        .map((target) => ({ target, weight: 0 })),
    ]
    const rules: JsonObject = {
      ...(first.targets.length > 1 && {
        sort: first.isOrdered ? 'order' : later.targets.length > 0 ? 'weighted' : sort,
      }),
      ...(later.onBlocked && { on_blocked: 'next' }),
    }
    if (first.targets.length > 1 && later.targets.length > 0 && !first.isOrdered && sort !== 'weighted')
      remark('near', own[0]?.path ?? [], `'${name}' has fallbacks: its own models are chosen by weight, not by ${sort}`)
    const isOrder = rules.sort === undefined || rules.sort === 'order'
    plan.names.push({
      name,
      rules,
      path: `model_list (${name})`,
      targets: isOrder ? targets.map(({ target }) => ({ target })) : targets,
    })
  }
  for (const alias of planAliases(file, plan, groups)) names.add(alias)
  return names
}

function sortOf(file: ForeignFile, plan: ImportPlan): string {
  const path = ['router_settings', 'routing_strategy']
  const strategy = file.text(path)
  const sort = strategies[strategy ?? 'simple-shuffle']
  if (sort === null || sort === undefined)
    remarker(plan)(
      'near',
      path,
      `'${strategy}' has no equivalent: calls are shared by weight, and busy targets are passed over`,
    )
  return sort ?? 'weighted'
}

type OwnTargets = { targets: { target: string; weight: number }[]; isOrdered: boolean }

/** Returns the targets of a group, each once, with shares of at most the largest weight. */
function ownTargets(group: readonly PlacedDeployment[]): OwnTargets {
  const isOrdered = group.some(({ order }) => order !== undefined)
  const sorted = isOrdered ? group.toSorted((one, other) => (one.order ?? Infinity) - (other.order ?? Infinity)) : group
  const shares = new Map<string, number>()
  for (const { target, weight = 1 } of sorted) shares.set(target, (shares.get(target) ?? 0) + weight)
  const most = Math.max(...shares.values())
  const scale = most > maxWeight ? maxWeight / most : 1
  const hasShare = most > 0
  return {
    isOrdered,
    targets: [...shares].map(([target, weight]) => ({ target, weight: hasShare ? weight * scale : 1 })),
  }
}

type FallbackKind = 'general' | 'context' | 'content' | 'default'
type Fallback = { kind: FallbackKind; of: string | undefined; to: string[]; path: MemberPath }

/** Reads all lists of fallbacks: `[{ gpt-4: [claude] }]`, and those that hold for every name. */
function readFallbacks(file: ForeignFile): Fallback[] {
  const kinds = [
    ['fallbacks', 'general'],
    ['context_window_fallbacks', 'context'],
    ['content_policy_fallbacks', 'content'],
  ] as const
  return ['router_settings', 'litellm_settings'].flatMap((section) => [
    ...kinds.flatMap(([member, kind]) => {
      const value = file.take([section, member])
      const entries = Array.isArray(value) ? value : [value]
      return entries.flatMap((entry, index): Fallback[] =>
        isObject(entry)
          ? Object.entries(entry).map(([of, to]) => ({ kind, of, to: textsIn(to), path: [section, member, index, of] }))
          : [],
      )
    }),
    {
      kind: 'default' as const,
      of: undefined,
      to: textsIn(file.take([section, 'default_fallbacks'])),
      path: [section, 'default_fallbacks'],
    },
  ])
}

function fallbackTargets(
  name: string,
  fallbacks: readonly Fallback[],
  groups: ReadonlyMap<string, readonly PlacedDeployment[]>,
) {
  const own = fallbacks.filter(
    ({ of, kind }) => of === name || (kind === 'default' && !fallbacks.some((one) => one.of === name)),
  )
  const all = own.flatMap(({ to, path, kind }) => to.map((one) => ({ one, path, kind })))
  const isKnown = ({ one }: { one: string }) => groups.has(one)
  const special = own.filter(({ kind }) => kind === 'context' || kind === 'content')
  return {
    targets: [
      ...new Set(all.filter(isKnown).flatMap(({ one }) => (groups.get(one) ?? []).map(({ target }) => target))),
    ],
    unknown: all.filter((one) => !isKnown(one)).map(({ one, path }) => ({ missing: one, path })),
    hasSpecial: special.length > 0,
    path: special[0]?.path,
    onBlocked: own.some(({ kind }) => kind === 'content'),
  }
}

/** Plans `model_group_alias`: names for groups. Returns those that were planned. */
function planAliases(
  file: ForeignFile,
  plan: ImportPlan,
  groups: ReadonlyMap<string, readonly PlacedDeployment[]>,
): string[] {
  const path = ['router_settings', 'model_group_alias']
  return file.names(path).flatMap((alias) => {
    const value = file.take([...path, alias])
    const group = isObject(value) ? value.model : value
    const planned = plan.names.find(({ name }) => name === group)
    if (!planned || typeof group !== 'string' || !groups.has(group)) {
      remarker(plan)('manual', [...path, alias], `names '${String(group)}', which was not imported`)
      return []
    }
    if (isObject(value) && value.hidden === true)
      remarker(plan)('near', [...path, alias, 'hidden'], 'aliases are always listed')
    plan.names.push({ ...planned, name: alias, path: `router_settings.model_group_alias.${alias}` })
    return [alias]
  })
}
