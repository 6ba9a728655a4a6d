import type { ModelEntry } from '../core/model.ts'
import {
  bareName,
  isEuropean,
  longestName,
  outsideEurope,
  type Policy,
  policyPrefix,
  splitModel,
} from '../core/names.ts'
import { didYouMean } from '../manifest/did-you-mean.ts'
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
  /** Where models are hosted: the places that a rule may name. */
  places(): ReadonlySet<string>
}

/** Throws RouterError 400, with the nearest name, for a name that leads nowhere; `path` is the field it stands in. */
export type NameCheck = (name: string, path: string) => void

/** Takes the ids of models. */
export function modelCheck(directory: Directory): NameCheck {
  return check(directory, 'model')
}

/** Takes the ids of models and the names of policies. */
export function targetCheck(directory: Directory, rules: OrganizationRules): NameCheck {
  return check(directory, 'model or policy', policiesOf(directory, rules))
}

/** Takes the ids of models and `<provider>/*`. */
export function patternCheck(directory: Directory): NameCheck {
  return check(directory, 'model or provider', patternsOf(directory))
}

/** Takes the ids of models, `<provider>/*`, and the names of aliases and policies. */
export function grantCheck(directory: Directory, rules: OrganizationRules): NameCheck {
  const others = [...bothWays(rules.aliases.keys()), ...policiesOf(directory, rules), ...patternsOf(directory)]
  return check(directory, 'model, provider, alias or policy', others)
}

/**
 * Refuses a name that promises the EU by its end `@eu` and has no target there: it could never answer. `path` is the
 * field of the targets. Throws RouterError 400.
 */
export function refuseOutsideEurope(
  name: string,
  targets: readonly string[],
  { path, directory }: { path: string; directory: Directory },
): void {
  if (!isEuropean(name)) return
  const elsewhere = outsideEurope(targets, directory.findModel)
  if (elsewhere.length < targets.length) return
  const told = elsewhere.slice(0, 5).map(({ target, where }) => `'${target}': ${where}`)
  const message = `'${path}' has no model that is hosted in the EU, which the end '@eu' of '${name}' promises`
  throw invalid(`${message} (${told.join(', ')}).`, path)
}

/** The models that the target of an alias stands for: itself, or the targets of the policy that it names. */
export function modelsBehind(
  target: string,
  { managed }: Directory,
  { policies }: OrganizationRules,
): readonly string[] {
  const name = bareName(target)
  return (policies.get(name) ?? managed.get(name))?.targets ?? [target]
}

/** Takes the places that models are hosted in: by any other nothing could be called. */
export function placeCheck(directory: Directory): NameCheck {
  const places = directory.places()
  return (name, path) => {
    if (places.has(name)) return
    const known = [...places].sort().join(', ')
    throw invalid(
      `'${path}' names no place that models are hosted in: '${name.slice(0, 60)}'; there is: ${known}.`,
      path,
    )
  }
}

function policiesOf({ managed }: Directory, { policies }: OrganizationRules): string[] {
  return bothWays([...policies.keys(), ...managed.keys()])
}

function bothWays(names: Iterable<string>): string[] {
  return [...names].flatMap((name) => [name, `${policyPrefix}${name}`])
}

function patternsOf({ providers }: Directory): string[] {
  return [...providers.keys()].map((slug) => `${slug}/*`)
}

function check(directory: Directory, kinds: string, others: readonly string[] = []): NameCheck {
  const known = new Set(others)
  return (name, path) => {
    if (known.has(name) || isModel(name, directory)) return
    // Comparing takes as long as the name: none that long is meant.
    const hint = name.length > longestName ? '' : didYouMean(name, [...known, ...directory.modelIds()])
    throw invalid(`'${path}' names no ${kinds} that is here: '${name.slice(0, 100)}'${hint || '.'}`, path)
  }
}

function isModel(name: string, { providers, findModel }: Directory): boolean {
  const { provider: slug = '', model = '' } = splitModel(name) ?? {}
  const provider = providers.get(slug)
  if (!provider || model === '*' || name.length > longestName || !name.isWellFormed()) return false
  return provider.unknownModels === 'pass' || findModel(slug, model) !== undefined
}
