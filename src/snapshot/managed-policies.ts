import type { Catalog } from '../catalog/catalog.ts'
import { isRetired, retiredMessage } from '../core/models/model.ts'
import { isEuropean, outsideEu, type Policy, policyIdProblem, splitModel, withoutCommonApi } from '../core/names.ts'
import { hasNoWeight } from '../core/routing/policy-file.ts'
import type { RoutingRules } from '../core/routing/rules.ts'
import { maxMs } from '../core/time.ts'
import { didYouMean } from '../manifest/check/did-you-mean.ts'
import type { Problem } from '../manifest/check/problem.ts'
import type { Provider } from '../manifest/provider.ts'
import type { Path } from '../manifest/read/position.ts'
import type { Source } from '../manifest/read/source.ts'
import { servedBy, targetFacts } from '../manifest/target.ts'
import type { Config } from './config.ts'

/** The names that targets of policies may have: the usable providers, the slugs of all and of those that are switched off, the models. */
export type Known = {
  providers: ReadonlyMap<string, Provider>
  slugs: ReadonlySet<string>
  off: Pick<ReadonlySet<string>, 'has'>
  catalog: Catalog
}

/** Returns the problems of a configuration's managed policies, with their positions. */
export function policyProblems(config: Config, source: Source, known: Known): Problem[] {
  const { policies } = config
  const ofPolicies = [...policies.values()].flatMap((policy) => {
    const { id, targets } = policy
    const ofTargets = targets.flatMap((target, index): Problem[] => {
      const at = ['policies', id, 'targets', index]
      if (targets.indexOf(target) < index) return [source.problem(at, `\`${target}\` is a duplicate`)]
      const slug = splitModel(target)?.provider ?? ''
      const message = `\`${target}\` is left out: the provider \`${slug}\` is switched off`
      if (known.off.has(slug)) return [{ ...source.problem(at, message), severity: 'warning' }]
      const problem = targetProblem(target, known)
      return problem === undefined ? [] : [source.problem(at, `\`${target}\`: ${problem}`)]
    })
    return [
      ...idProblems(policy, source),
      ...ofTargets,
      ...apiProblems(policy, source, known),
      ...regionProblems(policy, source, known),
      ...retiredProblems(policy, source, known),
      ...timeProblems(policy.routing ?? {}, source, ['policies', id]),
      ...rulesProblems(policy, source, { ...known, routing: config.routing }),
    ]
  })
  return [...ofPolicies, ...timeProblems(config.routing, source, ['routing'])]
}

function idProblems({ id }: Policy, source: Source): Problem[] {
  const problem = policyIdProblem(id)
  return problem === undefined ? [] : [source.problem(['policies', id], `the id of a policy ${problem}`, 'name')]
}

function targetProblem(target: string, { providers, slugs, catalog }: Known): string | undefined {
  const { provider: slug = '', model = '' } = splitModel(target) ?? {}
  if (!slugs.has(slug)) return `there is no provider \`${slug}\`${didYouMean(slug, slugs)}`
  const provider = providers.get(slug)
  // Problems of a manifest are reported in its own file.
  if (!provider || provider.unknownModels === 'pass' || catalog.find(slug, model)) return undefined
  const models = catalog.list().filter((one) => one.provider === slug)
  const names = models.flatMap(({ model: name, entry }) => [name, ...(entry.aliases ?? [])])
  return `the provider \`${slug}\` has no model \`${model}\`${didYouMean(model, names)}`
}

/** Finds the problems of a policy whose targets are not all called by the same endpoints. */
function apiProblems({ id, targets }: Policy, source: Source, { catalog }: Known): Problem[] {
  const [one, other] = withoutCommonApi(targets, catalog.find) ?? []
  if (!one || !other) return []
  const message = `\`${other.target}\` has the API \`${other.api}\`, and \`${one.target}\` has \`${one.api}\`: all targets of a policy must have the same API`
  return [source.problem(['policies', id, 'targets', other.index], message)]
}

/** Finds targets whose announced retirement has come. */
function retiredProblems({ id, targets }: Policy, source: Source, { catalog }: Known): Problem[] {
  return targets.flatMap((target, index) => {
    const { provider = '', model = '' } = splitModel(target) ?? {}
    const entry = catalog.find(provider, model)
    if (!entry || !isRetired(entry, Date.now())) return []
    const message = `\`${target}\`: ${retiredMessage(target, entry)}`
    return [{ ...source.problem(['policies', id, 'targets', index], message), severity: 'warning' as const }]
  })
}

/** Finds the problems of regions: a name with `@eu` is a promise: without a target in the EU the policy could never serve a call. */
function regionProblems({ id, targets }: Policy, source: Source, { providers, catalog }: Known): Problem[] {
  if (!isEuropean(id)) return []
  const isHere = (target: string) => providers.has(splitModel(target)?.provider ?? '')
  const elsewhere = outsideEu(targets, catalog.find).filter(({ target }) => isHere(target))
  if (elsewhere.length === targets.length) {
    const message = `\`${id}\` ends in \`@eu\`, and no target has geolocation eu`
    return [source.problem(['policies', id], message, 'name')]
  }
  return elsewhere.map(({ index, target, where }) => {
    const message = `\`${target}\` is left out of \`${id}\`: its geolocation is ${where}, not eu`
    return { ...source.problem(['policies', id, 'targets', index], message), severity: 'warning' as const }
  })
}

/** Finds times that no call could keep, or no timer. */
function timeProblems(
  { firstEventMs, totalMs, retryAfterMs = 0 }: Partial<RoutingRules>,
  source: Source,
  at: Path,
): Problem[] {
  const wrong = (name: string, bounds: string) => source.problem([...at, name], `\`${name}\` must be ${bounds}`)
  const isWrong = (ms = maxMs) => ms <= 0 || ms > maxMs
  return [
    ...(isWrong(firstEventMs) ? [wrong('first_event', 'more than 0 and at most 24h')] : []),
    ...(isWrong(totalMs) ? [wrong('total', 'more than 0 and at most 24h')] : []),
    ...(retryAfterMs > maxMs ? [wrong('retry_after', 'at most 24h')] : []),
  ]
}

/** Finds weights that give no target a share, or are not asked for; and streams that nobody could continue. */
function rulesProblems(
  policy: Policy,
  source: Source,
  { routing, ...known }: Known & Pick<Config, 'routing'>,
): Problem[] {
  const { id, weights } = policy
  const { sort, onCut } = { ...routing, ...policy.routing }
  const at = ['policies', id]
  const problems: Problem[] = []
  if (hasNoWeight(policy)) problems.push(source.problem([...at, 'targets'], 'all weights are 0; one must be above 0'))
  if (weights && sort !== 'weighted') {
    const message = `\`${id}\` has weights, which have no effect with \`sort: ${sort}\`; they need \`sort: weighted\``
    problems.push({ ...source.problem([...at, 'targets'], message), severity: 'warning' })
  }
  if (onCut === 'continue' && !policy.targets.some((target) => canContinue(target, known))) {
    const message = `no target of \`${id}\` can continue a text of another one (trait \`prefill: true\`): \`on_cut: continue\` ends as \`error\``
    problems.push({
      ...source.problem([...at, ...(policy.routing?.onCut ? ['on_cut'] : [])], message),
      severity: 'warning',
    })
  }
  return problems
}

function canContinue(target: string, { providers, catalog }: Known): boolean {
  const { provider: slug = '', model = '' } = splitModel(target) ?? {}
  const provider = providers.get(slug)
  if (!provider) return false
  const { is = model } = catalog.identify(slug, model) ?? {}
  return targetFacts(servedBy(provider, is), { model, is }).traits.prefill === true
}
