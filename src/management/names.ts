import type { ModelEntry } from '../core/models/model.ts'
import {
  bareName,
  isEuropean,
  maxNameLength,
  outsideEu,
  type Policy,
  policyPrefix,
  splitModel,
  withoutCommonApi,
} from '../core/names.ts'
import { didYouMean } from '../manifest/check/did-you-mean.ts'
import type { Provider } from '../manifest/provider.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { invalid } from './read.ts'

/** The providers, models and managed policies of one snapshot, which names are checked against. */
export type ModelDirectory = {
  providers: ReadonlyMap<string, Provider>
  /** Providers that are not in use because of errors in files: any model may be theirs. */
  unavailable?: ReadonlyMap<string, unknown>
  findModel(provider: string, model: string): ModelEntry | undefined
  managed: ReadonlyMap<string, Policy>
  /** The names of the plugins that are loaded. */
  plugins: readonly string[]
  /** Returns the ids of all models: `<provider>/<model>`. */
  modelIds(): readonly string[]
  /** Returns the places where models are hosted, which a rule may name. */
  places(): ReadonlySet<string>
}

/** Throws RouterError 400, with the closest known name, for an unknown name; `path` is its field. */
export type NameCheck = (name: string, path: string) => void

/** Accepts ids of models. */
export function modelCheck(directory: ModelDirectory): NameCheck {
  return check(directory, 'model')
}

/** Accepts ids of models and names of policies. */
export function targetCheck(directory: ModelDirectory, rules: OrganizationRules): NameCheck {
  return check(directory, 'model or policy', policiesOf(directory, rules))
}

/** Accepts ids of models and `<provider>/*`. */
export function patternCheck(directory: ModelDirectory): NameCheck {
  return check(directory, 'model or provider', patternsOf(directory))
}

/** Accepts ids of models, `<provider>/*`, and names of aliases and policies. */
export function grantCheck(directory: ModelDirectory, rules: OrganizationRules): NameCheck {
  const others = [...bothWays(rules.aliases.keys()), ...policiesOf(directory, rules), ...patternsOf(directory)]
  return check(directory, 'model, provider, alias or policy', others)
}

/**
 * Rejects a name whose suffix `@eu` promises the EU when no target is hosted there: it could never be served. `path` is
 * the field of the targets. Throws RouterError 400.
 */
export function refuseOutsideEu(
  name: string,
  targets: readonly string[],
  { path, directory }: { path: string; directory: ModelDirectory },
): void {
  if (!isEuropean(name)) return
  const elsewhere = outsideEu(targets, directory.findModel)
  if (elsewhere.length < targets.length) return
  const locations = elsewhere.slice(0, 5).map(({ target, where }) => `'${target}': ${where}`)
  const message = `'${path}' has no model that is hosted in the EU, which the suffix '@eu' of '${name}' requires`
  throw invalid(`${message} (${locations.join(', ')}).`, path)
}

/** Rejects targets that no endpoint calls all. `path` is their field. Throws RouterError 400. */
export function refuseMixedApis(targets: readonly string[], path: string, { findModel }: ModelDirectory): void {
  const [one, other] = withoutCommonApi(targets, findModel) ?? []
  if (!one || !other) return
  const message = `'${path}' must be models of one API: '${one.target}' has the API \`${one.api}\`, and '${other.target}' has \`${other.api}\`.`
  throw invalid(message, path)
}

/** Returns the models that the target of an alias resolves to: itself, or the targets of the policy that it names. */
export function modelsBehind(
  target: string,
  { managed }: ModelDirectory,
  { policies }: OrganizationRules,
): readonly string[] {
  const name = bareName(target)
  return (policies.get(name) ?? managed.get(name))?.targets ?? [target]
}

/** Accepts places where models are hosted; with any other place nothing could be called. */
export function placeCheck(directory: ModelDirectory): NameCheck {
  const places = directory.places()
  return (name, path) => {
    if (places.has(name)) return
    const known = [...places].sort().join(', ')
    throw invalid(
      `'${path}' names a region where no models are hosted: '${name.slice(0, 60)}'; known regions: ${known}.`,
      path,
    )
  }
}

/** Accepts plugins that are loaded. */
export function pluginCheck({ plugins }: Pick<ModelDirectory, 'plugins'>): NameCheck {
  return (name, path) => {
    if (plugins.includes(name)) return
    const known = plugins.length === 0 ? 'none is loaded' : `loaded are ${plugins.join(', ')}`
    throw invalid(`'${path}' names an unknown plugin: '${name.slice(0, 60)}'; ${known}.`, path)
  }
}

function policiesOf({ managed }: ModelDirectory, { policies }: OrganizationRules): string[] {
  return bothWays([...policies.keys(), ...managed.keys()])
}

function bothWays(names: Iterable<string>): string[] {
  return [...names].flatMap((name) => [name, `${policyPrefix}${name}`])
}

function patternsOf({ providers, unavailable = new Map() }: ModelDirectory): string[] {
  return [...providers.keys(), ...unavailable.keys()].map((slug) => `${slug}/*`)
}

function check(directory: ModelDirectory, kinds: string, others: readonly string[] = []): NameCheck {
  const known = new Set(others)
  return (name, path) => {
    if (known.has(name) || isModel(name, directory)) return
    // Long names take long to compare, and few are misspellings.
    const hint = name.length > maxCompared ? '' : didYouMean(name, [...known, ...directory.modelIds()])
    throw invalid(`'${path}' names an unknown ${kinds}: '${name.slice(0, 100)}'${hint || '.'}`, path)
  }
}

/** Length of the longest name that is compared with others. Characters. */
const maxCompared = 80

function isModel(name: string, { providers, unavailable, findModel }: ModelDirectory): boolean {
  const { provider: slug = '', model = '' } = splitModel(name) ?? {}
  if (model === '*' || name.length > maxNameLength || !name.isWellFormed()) return false
  if (unavailable?.has(slug)) return true
  const provider = providers.get(slug)
  if (!provider) return false
  return provider.unknownModels === 'pass' || findModel(slug, model) !== undefined
}
