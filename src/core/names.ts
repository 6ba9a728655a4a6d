import type { ModelEntry } from './models/model.ts'
import type { RoutingRules } from './routing/rules.ts'

/**
 * A named list of targets; a target is `<provider>/<model>`. `weights` are by target, 1 where there is none; `routing` replaces
 * the rules of the router.
 */
export type Policy = {
  id: string
  description: string
  targets: readonly string[]
  weights?: Readonly<Record<string, number>>
  routing?: Partial<RoutingRules>
}

/** An organization's requirements on the models that process its data; a missing one does not apply. */
export type DataRules = {
  /** The regions where models may be hosted: `eu`, `us`, `global` … */
  geolocation?: string[]
  /** false: only models whose provider retains no data. */
  data_retention?: false
  /** false: only models whose provider does not train on data. */
  data_used_for_training?: false
}

/** The optional prefix of aliases and policies. */
export const policyPrefix = 'policy/'

/** Maximum length of a name: where unknown models are allowed, their names go into headers, rows and URLs. Characters. */
export const maxNameLength = 256

/** The name of an alias or a policy, without the prefix. */
export function bareName(name: string): string {
  return name.startsWith(policyPrefix) ? name.slice(policyPrefix.length) : name
}

/**
 * Returns why a text cannot be the name of an alias, to follow that name in a message; undefined when it can. A slash is allowed: an
 * alias may replace a model.
 */
export function aliasNameProblem(name: string): string | undefined {
  if (name.startsWith(policyPrefix))
    return `must not begin with \`${policyPrefix}\`: every alias is known with it as well`
  // A name that ends in `/*` means all models of a provider.
  if (name.length <= maxNameLength && /^[A-Za-z0-9][\w.:@+~/-]*$/.test(name) && !name.endsWith('/')) return undefined
  return `must have at most ${maxNameLength} letters, digits and . _ : @ + - ~ /, and begin with a letter or digit`
}

/** Returns why a text cannot be the id of a policy, to follow that id in a message; undefined when it can. */
export function policyIdProblem(id: string): string | undefined {
  if (id.length <= maxNameLength && /^[A-Za-z0-9][\w.:@+-]*$/.test(id)) return undefined
  return `must have at most ${maxNameLength} letters, digits and . _ : @ + -, begin with a letter or digit, and be without \`${policyPrefix}\``
}

/** Checks whether a name guarantees that only targets in the EU serve it. */
export function isEuropean(name: string): boolean {
  return name.endsWith('@eu')
}

/** The models of a list that are hosted outside the EU, or in an unknown place. */
export function outsideEu(
  targets: readonly string[],
  findModel: (provider: string, model: string) => ModelEntry | undefined,
): { index: number; target: string; where: string }[] {
  return targets.flatMap((target, index) => {
    const { provider = '', model = '' } = splitModel(target) ?? {}
    const where = findModel(provider, model)?.geolocation ?? 'not known'
    return where === 'eu' ? [] : [{ index, target, where }]
  })
}

/**
 * Finds two models of a list that no endpoint calls both: a policy over them could never fail over from one to the other. Models that are
 * not known may be of any API.
 */
export function withoutCommonApi(
  targets: readonly string[],
  findModel: (provider: string, model: string) => ModelEntry | undefined,
): [one: ApiOfModel, other: ApiOfModel] | undefined {
  const known = targets.flatMap((target, index) => {
    const { provider = '', model = '' } = splitModel(target) ?? {}
    const entry = findModel(provider, model)
    return entry ? [{ index, target, api: entry.api, apis: [entry.api, ...(entry.also ?? [])] }] : []
  })
  for (const [place, one] of known.entries()) {
    const other = known.slice(place + 1).find(({ apis }) => !apis.some((api) => one.apis.includes(api)))
    if (other) return [one, other]
  }
  return undefined
}

type ApiOfModel = { index: number; target: string; api: string }

/** The provider and the provider's own name of a model; undefined for a text that is not `<provider>/<model>`. */
export function splitModel(id: string): { provider: string; model: string } | undefined {
  // At the first slash only: some providers' model names contain slashes.
  const slash = id.indexOf('/')
  if (slash <= 0 || slash === id.length - 1) return undefined
  return { provider: id.slice(0, slash), model: id.slice(slash + 1) }
}

/** Checks whether a list of ids and patterns `<provider>/*` includes a model. */
export function hasModel(list: readonly string[], id: string): boolean {
  const { names, providers } = patternsOf(list)
  return names.has(id) || providers.has(splitModel(id)?.provider ?? '')
}

/** Checks whether a list includes exactly this name, regardless of patterns. */
export function hasName(list: readonly string[], name: string): boolean {
  return patternsOf(list).names.has(name)
}

type Patterns = { names: ReadonlySet<string>; providers: ReadonlySet<string> }

/** Lists never change and are used for every call: each is analyzed once. */
const known = new WeakMap<readonly string[], Patterns>()

function patternsOf(list: readonly string[]): Patterns {
  const cached = known.get(list)
  if (cached) return cached
  const wide = list.filter((name) => name.length > 2 && name.endsWith('/*'))
  const patterns = { names: new Set(list), providers: new Set(wide.map((name) => name.slice(0, -2))) }
  known.set(list, patterns)
  return patterns
}
