import { RouterError } from '../core/errors.ts'
import type { ModelEntry } from '../core/model.ts'
import { bareName, isEuropean, longestName, type Policy, policyPrefix, splitModel } from '../core/names.ts'
import type { Provider } from '../manifest/provider.ts'
import { servedBy, type Target } from '../manifest/target.ts'
import { type Refusal, refusalInEurope, refusalOf, type Scope } from './scope.ts'

/** What names are resolved against: the providers, models and managed policies of one snapshot. */
export type Directory = {
  providers: ReadonlyMap<string, Provider>
  findModel(provider: string, model: string): ModelEntry | undefined
  managed: ReadonlyMap<string, Policy>
}

/** At least one target, in the order in which they are to be tried. */
export type Targets = readonly [Target, ...Target[]]

/**
 * The targets of a model string, in the order in which they are to be asked. A name is an alias, else a policy of the
 * organization, else a managed policy, else `<provider>/<model>`; without a scope there are only the last two. Targets
 * that are not configured, not known or not allowed are left out. Throws RouterError 404, or 403 for the access list of
 * the key, when none is left.
 */
export function resolve(model: string, directory: Directory, scope?: Scope): Targets {
  refuseOdd(model)
  const named = namedBy(model, directory, scope)
  const inEurope = named.through.some(isEuropean) || isEuropean(model)
  const targets: Target[] = []
  const refusals: Refusal[] = []
  for (const id of named.ids) {
    const found = targetOf(id, directory)
    if ('message' in found) {
      refusals.push(found)
      continue
    }
    const asked = { id, entry: found.entry, find: directory.findModel }
    const refusal = (inEurope ? refusalInEurope(asked) : undefined) ?? refusalOf(asked, scope, named.through)
    if (refusal) refusals.push(refusal)
    else targets.push(found)
  }
  const [first, ...others] = targets
  if (!first) throw noneLeft(model, named, refusals)
  return [first, ...others]
}

/** The ids of the targets that a name stands for, and the names of the alias and the policy that led to them. */
type Named = { ids: readonly string[]; through: readonly string[] }

function namedBy(model: string, directory: Directory, scope: Scope | undefined): Named {
  const name = bareName(model)
  const target = scope?.rules.aliases.get(name)
  const wanted = target === undefined ? name : bareName(target)
  const through = target === undefined ? [] : [name]
  const policy = scope?.rules.policies.get(wanted) ?? directory.managed.get(wanted)
  if (policy) return { ids: policy.targets, through: [...through, wanted] }
  const isPolicy = (target ?? model).startsWith(policyPrefix)
  if (!isPolicy && splitModel(wanted)) return { ids: [wanted], through }
  if (target !== undefined) throw notFound(`The alias '${name}' stands for '${target}', which does not exist.`)
  if (isPolicy) throw notFound(`There is no policy and no alias '${name}'. GET /v1/models lists those that there are.`)
  throw notFound(`The model '${model}' does not exist. Write a model as <provider>/<model>; GET /v1/models lists them.`)
}

function targetOf(id: string, { providers, findModel }: Directory): Target | Refusal {
  const { provider: slug = '', model = '' } = splitModel(id) ?? {}
  const named = providers.get(slug)
  if (!named) return refusal(`The provider '${slug}' of the model '${id}' does not exist.`)
  const provider = servedBy(named, model)
  if (provider.missing.length > 0) {
    const variables = provider.missing.join(', ')
    return refusal(`The provider '${slug}' is not configured: set ${variables} in the environment of the router.`)
  }
  if (!provider.chat) return refusal(`The provider '${slug}' has no chat models.`)
  const entry = findModel(slug, model)
  if (!entry && provider.unknownModels === 'refuse') {
    return refusal(`The provider '${slug}' has no model '${model}' in the catalog. GET /v1/models lists the models.`)
  }
  return { provider, model, ...(entry && { entry }) }
}

/** One refusal is said as it is, those of several targets together. */
function noneLeft(model: string, { ids, through }: Named, refusals: readonly Refusal[]): RouterError {
  const code = refusals.some((one) => one.code === 'forbidden') ? 'forbidden' : 'model_not_found'
  const reasons = refusals.slice(0, mostReasons).map(({ message }) => message)
  const more = ids.length > mostReasons ? [`${ids.length - mostReasons} more cannot be used either.`] : []
  const said = [...reasons, ...more].join(' ')
  const message = through.length === 0 ? said : `'${model}' has no target that can be used. ${said}`
  return new RouterError(code, message.trimEnd(), { param: 'model' })
}

/** More would not help the one who reads them. */
const mostReasons = 5

function refuseOdd(model: string): void {
  if (model.length > longestName) throw notFound(`No model has a name of more than ${longestName} characters.`)
  if (!model.isWellFormed()) throw notFound('No model has a name that is cut in the middle of a character.')
}

function refusal(message: string): Refusal {
  return { code: 'model_not_found', message }
}

function notFound(message: string): RouterError {
  return new RouterError('model_not_found', message, { param: 'model' })
}
