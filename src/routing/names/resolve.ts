import type { KnownModel } from '../../catalog/catalog.ts'
import { RouterError } from '../../core/errors.ts'
import { isRetired, retiredMessage } from '../../core/models/model.ts'
import { bareName, isEuropean, maxNameLength, type Policy, policyPrefix, splitModel } from '../../core/names.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { RoutingRules } from '../../core/routing/rules.ts'
import type { Provider } from '../../manifest/provider.ts'
import { servedBy, type Target, targetId } from '../../manifest/target.ts'
import type { Explanation } from '../explanation.ts'
import type { Weights } from '../weights.ts'
import type { ModelNames } from './model-names.ts'
import { type Exclusion, exclusionByApi, exclusionByList, exclusionForEu, exclusionOf, type Scope } from './scope.ts'
import { suggestion } from './suggest.ts'

/** The providers, models and managed policies of one snapshot, against which names are resolved. */
export type Directory = {
  providers: ReadonlyMap<string, Provider>
  /** Switched-off providers, and why. */
  off?: ReadonlyMap<string, string | undefined>
  identify(provider: string, model: string): KnownModel | undefined
  managed: ReadonlyMap<string, Policy>
  /** The models by the names that they have without a provider. */
  names?: ModelNames
  /** Handling of names of models without a provider: `first` is the first provider that the caller may use. */
  unprefixed?: UnprefixedModels
  /** The files without which a provider cannot be used, with the places of their errors, by slug. */
  unavailable?: ReadonlyMap<string, string>
  /** True if retired models are refused, for providers whose settings do not decide it. */
  refuseRetired?: boolean
  /** The rules of names that have none of their own. */
  routing: RoutingRules
}

/** Handling of names of models without a provider. */
export type UnprefixedModels = 'refuse' | 'first'

/** Purpose that targets are wanted for: models of these APIs, of providers that can do it. `name` is its name in messages. */
export type Purpose = {
  apis?: readonly string[]
  serves(target: Pick<Target, 'provider' | 'entry'>): boolean
  name: string
  /** True for only the models that are hosted in the EU. */
  euOnly?: boolean
  /** Receives the targets of a name that are left out. */
  explanation?: Explanation | undefined
  /** The conversation that they are wanted for: providers may have another endpoint for it. */
  request?: NeutralRequest
}

/** Returns the purpose of a conversation: chat models. */
export function forChat(request: NeutralRequest, explanation?: Explanation): Purpose {
  return { ...conversations, request, explanation }
}

const conversations: Purpose = {
  apis: ['chat'],
  serves: ({ provider }) => provider.chat !== undefined,
  name: 'chat models',
}

/** Purpose of any request: any model of a provider serves it. */
const forAnything: Purpose = {
  serves: ({ provider: { chat, operations } }) => chat !== undefined || operations !== undefined,
  name: 'endpoints',
}

/** At least one target, in the order in which they are to be tried. */
export type Targets = readonly [Target, ...Target[]]

/** Targets that a name leads to, and the rules for asking them. */
export type Route = {
  targets: Targets
  rules: RoutingRules
  weights?: Weights | undefined
  /** Place of the name that led to each target, where there are several: targets of an earlier name come first. */
  rank?: ReadonlyMap<Target, number>
  /** Set where only the target that stands first is asked. */
  onlyFirst?: true
  /** A target that would lose a field of the request is passed over. */
  strict?: true
  sessionId?: string
  /** Preferences of the request that are ignored. */
  ignored?: readonly string[]
}

/**
 * Resolves a model string to its targets. A name is an alias, else a policy of the organization, else a managed policy, else
 * `<provider>/<model>`; without a scope it is one of the last two. Targets that are not configured, not known, not
 * allowed or not for this purpose are left out. Throws RouterError 404, 403 for the access list of the key, or 400 for
 * models of another API, when none is left.
 */
export function resolve(model: string, directory: Directory, scope?: Scope, purpose: Purpose = forAnything): Route {
  refuseInvalid(model)
  const found = find(model, directory, scope, purpose)
  if ('targets' in found) return found
  throw found.isUnknown
    ? notFound(`${found.error.message}${suggestedFor(model, directory, scope, purpose)}`)
    : found.error
}

/** Returns a sentence that proposes what a caller may have meant by an unknown name, as `suggestion` does. */
export function suggestedFor(
  model: string,
  directory: Directory,
  scope: Scope | undefined,
  purpose: Purpose = forAnything,
): string {
  const { names, managed, providers } = directory
  if (!names || model.length > maxNameLength) return ''
  const mayCall = (name: string) => isOffered(name, directory, scope, purpose)
  return suggestion(model, { names, managed, providers, rules: scope?.rules, mayCall })
}

/** Returns the models that a name without a provider may lead to, in the order in which callers get them. */
export function unprefixedIds(name: string, { names, unprefixed }: Directory): readonly string[] {
  return unprefixed === 'first' && !name.includes('/') ? (names?.called(name) ?? []) : []
}

/** A name without targets; `isUnknown` when nothing has this name, which may then be mistyped. */
type Unresolved = { error: RouterError; isUnknown: boolean }

/** Checks whether a caller may call a name now, and whether the lists offer it: they leave out retired models. */
function isOffered(name: string, directory: Directory, scope: Scope | undefined, purpose: Purpose): boolean {
  const found = find(name, directory, scope, { ...purpose, explanation: undefined })
  return 'targets' in found && !found.targets.every(({ entry }) => entry && isRetired(entry, Date.now()))
}

function find(model: string, directory: Directory, scope: Scope | undefined, purpose: Purpose): Route | Unresolved {
  const { apis, serves, name, euOnly: isWanted = false, explanation, request } = purpose
  const named = lookUp(model, directory, scope)
  if ('error' in named) return named
  const inEurope = isWanted || isEuropeanName(model, named)
  const targets: Target[] = []
  const weights = named.policy?.weights && new Map<Target, number>()
  const exclusions: FoundExclusion[] = []
  let notAllowed: Exclusion | undefined
  for (const id of named.ids) {
    const found =
      unavailableTarget(id, directory, { scope, through: named.through }) ?? targetOf(id, directory, { request, apis })
    if ('message' in found) {
      exclusions.push({ ...found, id })
      continue
    }
    const candidate = { id: targetId(found), entry: found.entry, identify: directory.identify }
    const ruledOut = (inEurope ? exclusionForEu(candidate) : undefined) ?? exclusionOf(candidate, scope, named.through)
    notAllowed ??= ruledOut
    const exclusion =
      ruledOut ?? exclusionByApi(candidate, apis) ?? (serves(found) ? undefined : unable(found.provider, name))
    if (exclusion) {
      exclusions.push({ ...exclusion, id })
      continue
    }
    targets.push(found)
    weights?.set(found, named.policy?.weights?.[id] ?? 1)
    if (named.isUnprefixed) break
  }
  const [first, ...others] = targets
  if (!first && named.isUnprefixed) return noneOffered(model, exclusions, { directory, scope })
  if (!first) return noTargets(model, named, { exclusions, notAllowed })
  if (exclusions.length > 0 && !named.isUnprefixed) explanation?.exclude(model, exclusions)
  const { policy } = named
  const rules = policy ? { totalMs: policyTotalMs, ...directory.routing, ...policy.routing } : directory.routing
  return { targets: [first, ...others], rules, weights }
}

/** Checks whether a name promises that only targets in the EU serve it, by itself or by what an alias stands for. */
export function isEuOnly(model: string, { aliases }: Scope['rules']): boolean {
  return isEuropean(model) || isEuropean(aliases.get(bareName(model)) ?? '')
}

function isEuropeanName(model: string, { through }: LookedUp): boolean {
  return through.some(isEuropean) || isEuropean(model)
}

/** The target ids of a name, the names of the alias and the policy that led to them, and that policy; or one target of several. */
type LookedUp = { ids: readonly string[]; through: readonly string[]; policy?: Policy; isUnprefixed?: true }

function lookUp(model: string, directory: Directory, scope: Scope | undefined): LookedUp | Unresolved {
  const name = bareName(model)
  const target = scope?.rules.aliases.get(name)
  const policyOrModel = target === undefined ? name : bareName(target)
  const through = target === undefined ? [] : [name]
  const policy = scope?.rules.policies.get(policyOrModel) ?? directory.managed.get(policyOrModel)
  if (policy) return { ids: policy.targets, through: [...through, policyOrModel], policy }
  const isPolicy = (target ?? model).startsWith(policyPrefix)
  if (!isPolicy && splitModel(policyOrModel)) return { ids: [policyOrModel], through }
  if (target !== undefined) {
    return { error: notFound(`The alias '${name}' stands for '${target}', which does not exist.`), isUnknown: false }
  }
  if (isPolicy) return unknown(`There is no policy or alias '${name}'. GET /v1/models lists them.`)
  const ids = unprefixedIds(model, directory)
  return ids.length > 0 ? { ids, through, isUnprefixed: true } : unknownModel(model)
}

function unknownModel(model: string): Unresolved {
  return unknown(`The model '${model}' does not exist. Write a model as <provider>/<model>; GET /v1/models lists them.`)
}

function unknown(message: string): Unresolved {
  return { error: notFound(message), isUnknown: true }
}

/** Returns why a target cannot be used now; undefined where its files are in use. */
function unavailableTarget(
  id: string,
  { unavailable }: Directory,
  { scope, through }: { scope: Scope | undefined; through: readonly string[] },
): Exclusion | undefined {
  const place = unavailable?.get(splitModel(id)?.provider ?? '')
  if (place === undefined) return undefined
  const message = `The model '${id}' is unavailable: the router has left out ${place}.`
  return exclusionByList(id, scope, through) ?? { code: 'model_unavailable', message }
}

function targetOf(
  id: string,
  { providers, off, identify, refuseRetired }: Directory,
  { request, apis }: { request: NeutralRequest | undefined; apis: readonly string[] | undefined },
): Target | (Exclusion & { isUnknown?: true }) {
  const { provider: slug = '', model = '' } = splitModel(id) ?? {}
  const serving = providers.get(slug)
  if (!serving) {
    const reason = off?.get(slug)
    if (reason !== undefined) return exclusion(reason)
    return { ...exclusion(`The provider '${slug}' of the model '${id}' does not exist.`), isUnknown: true }
  }
  const known = identify(slug, model)
  const asked = request && { request, entry: known?.entry }
  const provider = servedBy(serving, known?.is ?? model, asked)
  if (provider.missing.length > 0) {
    const variables = provider.missing.join(', ')
    return exclusion(`The provider '${slug}' is not configured: set ${variables} in the environment of the router.`)
  }
  if (!provider.chat && !provider.operations) return unable(provider, 'endpoints')
  if (!known && provider.unknownModels === 'refuse') {
    const message = `The provider '${slug}' has no model '${model}' in the catalog. GET /v1/models lists the models.`
    const advice = 'An operator lets callers use others with the setting unknown_models: pass.'
    return { ...exclusion(`${message} ${advice}`), isUnknown: true }
  }
  if (!known) return { provider, model, isUnknown: true, ...unknownEntryOf(provider, apis) }
  const { entry, is } = known
  if ((provider.refuseRetired ?? refuseRetired) && isRetired(entry, Date.now()))
    return exclusion(retiredMessage(id, entry))
  return { provider, model: known.model, entry, ...(is !== known.model && { is }) }
}

/** Returns the operator's price of models that no catalog lists, for endpoints whose usage is tokens. */
function unknownEntryOf({ unknownEntry }: Provider, apis: readonly string[] = []): Pick<Target, 'entry'> {
  if (!unknownEntry || exclusionByApi({ id: '', entry: unknownEntry }, apis)) return {}
  return { entry: unknownEntry }
}

/**
 * Returns the error for a name without targets: that of one which is unavailable only now, else of the first one which is not allowed; its
 * message combines the reasons.
 */
function noTargets(
  model: string,
  { ids, through }: LookedUp,
  { exclusions, notAllowed }: { exclusions: readonly FoundExclusion[]; notAllowed: Exclusion | undefined },
): Unresolved {
  const has = (code: Exclusion['code']) => exclusions.some((one) => one.code === code)
  const refused = notAllowed?.code ?? (has('forbidden') ? 'forbidden' : undefined)
  const otherwise = has('invalid_request') ? 'invalid_request' : 'model_not_found'
  const code = has('model_unavailable') ? 'model_unavailable' : (refused ?? otherwise)
  const reasons = exclusions.slice(0, maxReasons).map(({ message }) => message)
  const more = ids.length > maxReasons ? [`${ids.length - maxReasons} more cannot be used either.`] : []
  const reason = [...reasons, ...more].join(' ')
  const message = through.length === 0 ? reason : `'${model}' has no target that can be used. ${reason}`
  const error = new RouterError(code, message.trimEnd(), { param: 'model' })
  return { error, isUnknown: through.length === 0 && exclusions.every(({ isUnknown }) => isUnknown === true) }
}

type FoundExclusion = Exclusion & { id: string; isUnknown?: true }

/**
 * Returns the error for a name without a provider which none offers to the caller: the reason of the first model that the rules of the caller
 * allow. A model that they hide is not mentioned.
 */
function noneOffered(
  model: string,
  exclusions: readonly FoundExclusion[],
  { directory: { identify }, scope }: { directory: Directory; scope: Scope | undefined },
): Unresolved {
  const visible = exclusions.find(({ id }) => {
    const { provider = '', model: name = '' } = splitModel(id) ?? {}
    return !exclusionOf({ id, entry: identify(provider, name)?.entry, identify }, scope)
  })
  if (!visible) return unknownModel(model)
  return { error: new RouterError(visible.code, visible.message, { param: 'model' }), isUnknown: false }
}

/** Maximum time of a call to a policy that sets no other. Milliseconds. */
const policyTotalMs = 300_000

/** Maximum number of reasons: more would make the message unreadable. */
const maxReasons = 5

function refuseInvalid(model: string): void {
  if (model.length > maxNameLength) throw notFound(`No model has a name of more than ${maxNameLength} characters.`)
  if (!model.isWellFormed()) throw notFound('No model has a name that is cut in the middle of a character.')
}

function unable({ slug }: Provider, name: string): Exclusion {
  return exclusion(`The provider '${slug}' has no ${name}.`)
}

function exclusion(message: string): Exclusion {
  return { code: 'model_not_found', message }
}

function notFound(message: string): RouterError {
  return new RouterError('model_not_found', message, { param: 'model' })
}
