import type { Catalog } from './catalog/catalog.ts'
import type { Config } from './config.ts'
import { isEuropean, type Policy, policyIdProblem, splitModel } from './core/names.ts'
import { didYouMean } from './manifest/nearest.ts'
import type { Problem } from './manifest/problem.ts'
import type { Provider } from './manifest/provider.ts'
import type { Source } from './manifest/source.ts'

/** What the targets of policies are held against: the providers that are on, the slugs of all, the models. */
export type Known = { providers: ReadonlyMap<string, Provider>; slugs: ReadonlySet<string>; catalog: Catalog }

/** What is wrong with the managed policies of a configuration, at its place in the file. */
export function policyProblems({ policies }: Config, source: Source, known: Known): Problem[] {
  return [...policies.values()].flatMap((policy) => [
    ...idProblems(policy, source),
    ...policy.targets.flatMap((target, index) => targetProblems(policy, index, target, source, known)),
    ...regionProblems(policy, source, known),
  ])
}

function idProblems({ id }: Policy, source: Source): Problem[] {
  const problem = policyIdProblem(id)
  return problem === undefined ? [] : [source.problem(['policies', id], `the id of a policy ${problem}`, 'name')]
}

function targetProblems(
  { id, targets }: Policy,
  index: number,
  target: string,
  source: Source,
  known: Known,
): Problem[] {
  const at = ['policies', id, 'targets', index]
  const { provider: slug = '', model = '' } = splitModel(target) ?? {}
  if (targets.indexOf(target) < index) return [source.problem(at, `\`${target}\` stands here twice`)]
  if (!known.slugs.has(slug)) {
    const meant = didYouMean(slug, known.slugs)
    return [source.problem(at, `\`${target}\`: there is no provider \`${slug}\`${meant}`)]
  }
  const provider = known.providers.get(slug)
  if (!provider) {
    const message = `\`${target}\` is left out: the provider \`${slug}\` is switched off`
    return [{ ...source.problem(at, message), severity: 'warning' }]
  }
  if (provider.unknownModels === 'pass' || known.catalog.find(slug, model)) return []
  const models = known.catalog.list().filter((one) => one.provider === slug)
  const names = models.flatMap(({ model: name, entry }) => [name, ...(entry.aliases ?? [])])
  return [
    source.problem(at, `\`${target}\`: the provider \`${slug}\` has no model \`${model}\`${didYouMean(model, names)}`),
  ]
}

/** Its name is a promise: without a target in the EU the policy could never answer. */
function regionProblems({ id, targets }: Policy, source: Source, { catalog }: Known): Problem[] {
  if (!isEuropean(id)) return []
  const hosts = targets.map((target) => {
    const { provider = '', model = '' } = splitModel(target) ?? {}
    return catalog.find(provider, model)?.geolocation
  })
  if (!hosts.includes('eu')) {
    const message = `\`${id}\` promises the EU by its end \`@eu\`, and no target has geolocation eu`
    return [source.problem(['policies', id], message, 'name')]
  }
  return hosts.flatMap((host, index): Problem[] => {
    if (host === 'eu') return []
    const message = `\`${targets[index]}\` is left out of \`${id}\`: its geolocation is ${host ?? 'not known'}, not eu`
    return [{ ...source.problem(['policies', id, 'targets', index], message), severity: 'warning' }]
  })
}
