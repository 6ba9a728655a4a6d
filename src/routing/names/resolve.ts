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
import { type Exclusion, exclusionByApi, exclusionByList, exclusionForEu, exclusionOf, type Scope } from './scope.ts'

/** The providers, models and managed policies of one snapshot, against which names are resolved. */
export type Directory = {
  providers: ReadonlyMap<string, Provider>
  /** Switched-off providers, and why. */
  off?: ReadonlyMap<string, string | undefined>
  identify(provider: string, model: string): KnownModel | undefined
  managed: ReadonlyMap<string, Policy>
  /** The files without which a provider cannot be used, with the places of their errors, by slug. */
  unavailable?: ReadonlyMap<string, string>
  /** True if retired models are refused, for providers whose settings do not decide it. */
  refuseRetired?: boolean
  /** The rules of names that have none of their own. */
  routing: RoutingRules
}

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
export function resolve(
  model: string,
  directory: Directory,
  scope?: Scope,
  { apis, serves, name, euOnly: isWanted = false, explanation, request }: Purpose = forAnything,
): Route {
  refuseInvalid(model)
  const named = lookUp(model, directory, scope)
  const inEurope = isWanted || isEuropeanName(model, named)
  const targets: Target[] = []
  const weights = named.policy?.weights && new Map<Target, number>()
  const exclusions: (Exclusion & { id: string })[] = []
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
  }
  const [first, ...others] = targets
  if (!first) throw noTargets(model, named, { exclusions, notAllowed })
  if (exclusions.length > 0) explanation?.exclude(model, exclusions)
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

/** The target ids of a name, the names of the alias and the policy that led to them, and that policy. */
type LookedUp = { ids: readonly string[]; through: readonly string[]; policy?: Policy }

function lookUp(model: string, directory: Directory, scope: Scope | undefined): LookedUp {
  const name = bareName(model)
  const target = scope?.rules.aliases.get(name)
  const policyOrModel = target === undefined ? name : bareName(target)
  const through = target === undefined ? [] : [name]
  const policy = scope?.rules.policies.get(policyOrModel) ?? directory.managed.get(policyOrModel)
  if (policy) return { ids: policy.targets, through: [...through, policyOrModel], policy }
  const isPolicy = (target ?? model).startsWith(policyPrefix)
  if (!isPolicy && splitModel(policyOrModel)) return { ids: [policyOrModel], through }
  if (target !== undefined) throw notFound(`The alias '${name}' stands for '${target}', which does not exist.`)
  if (isPolicy) throw notFound(`There is no policy or alias '${name}'. GET /v1/models lists them.`)
  throw notFound(`The model '${model}' does not exist. Write a model as <provider>/<model>; GET /v1/models lists them.`)
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
): Target | Exclusion {
  const { provider: slug = '', model = '' } = splitModel(id) ?? {}
  const serving = providers.get(slug)
  if (!serving) return exclusion(off?.get(slug) ?? `The provider '${slug}' of the model '${id}' does not exist.`)
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
    return exclusion(`${message} An operator lets callers use others with the setting unknown_models: pass.`)
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
  { exclusions, notAllowed }: { exclusions: readonly Exclusion[]; notAllowed: Exclusion | undefined },
): RouterError {
  const has = (code: Exclusion['code']) => exclusions.some((one) => one.code === code)
  const refused = notAllowed?.code ?? (has('forbidden') ? 'forbidden' : undefined)
  const otherwise = has('invalid_request') ? 'invalid_request' : 'model_not_found'
  const code = has('model_unavailable') ? 'model_unavailable' : (refused ?? otherwise)
  const reasons = exclusions.slice(0, maxReasons).map(({ message }) => message)
  const more = ids.length > maxReasons ? [`${ids.length - maxReasons} more cannot be used either.`] : []
  const reason = [...reasons, ...more].join(' ')
  const message = through.length === 0 ? reason : `'${model}' has no target that can be used. ${reason}`
  return new RouterError(code, message.trimEnd(), { param: 'model' })
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
