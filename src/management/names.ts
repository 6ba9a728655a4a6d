import type { ModelEntry } from '../core/model.ts'
import { bareName, longestName, type Policy, splitModel } from '../core/names.ts'
import { didYouMean } from '../manifest/nearest.ts'
import type { Provider } from '../manifest/provider.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { invalid } from './read.ts'

/** What names may lead to: the providers, models and managed policies of one snapshot. */
export type Directory = {
  providers: ReadonlyMap<string, Provider>
  findModel(provider: string, model: string): ModelEntry | undefined
  managed: ReadonlyMap<string, Policy>
  /** The ids of all models: `<provider>/<model>`. */
  modelIds(): readonly string[]
}

/** What a name may be besides the id of a model. */
type Also = { policies?: readonly string[]; aliases?: readonly string[]; wildcards?: boolean }

/** Throws RouterError 400, with the nearest name, unless a model has this id now. */
export function checkModel(name: string, path: string, directory: Directory): void {
  check(name, path, directory, {})
}

/** As for models; the name of a policy will do as well. */
export function checkTarget(name: string, path: string, directory: Directory, rules: OrganizationRules): void {
  check(name, path, directory, { policies: policiesOf(directory, rules) })
}

/** As for models; `<provider>/*` will do as well. */
export function checkPattern(name: string, path: string, directory: Directory): void {
  check(name, path, directory, { wildcards: true })
}

/** As for patterns; the names of aliases and policies will do as well. */
export function checkGrant(name: string, path: string, directory: Directory, rules: OrganizationRules): void {
  const aliases = [...rules.aliases.keys()]
  check(name, path, directory, { wildcards: true, aliases, policies: policiesOf(directory, rules) })
}

function policiesOf({ managed }: Directory, { policies }: OrganizationRules): string[] {
  return [...policies.keys(), ...managed.keys()]
}

function check(name: string, path: string, directory: Directory, also: Also): void {
  const { policies = [], aliases = [], wildcards = false } = also
  const named = [...aliases, ...policies]
  if (named.includes(bareName(name))) return
  if (wildcards && name.endsWith('/*') && directory.providers.has(name.slice(0, -2))) return
  if (isModel(name, directory)) return
  const others = [wildcards && 'provider', also.aliases && 'alias', also.policies && 'policy'].filter(Boolean)
  const patterns = wildcards ? [...directory.providers.keys()].map((slug) => `${slug}/*`) : []
  const hint = didYouMean(name, [...named, ...patterns, ...directory.modelIds()]) || '.'
  throw invalid(
    `'${path}' names no ${['model', ...others].join(' or ')} that is here: '${name.slice(0, 100)}'${hint}`,
    path,
  )
}

function isModel(name: string, { providers, findModel }: Directory): boolean {
  const { provider: slug = '', model = '' } = splitModel(name) ?? {}
  const provider = providers.get(slug)
  if (!provider || model === '*' || name.length > longestName || !name.isWellFormed()) return false
  return provider.unknownModels === 'pass' || findModel(slug, model) !== undefined
}
