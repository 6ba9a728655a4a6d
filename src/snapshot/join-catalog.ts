import { type Catalog, createCatalog, type ModelList, mergeEntries } from '../catalog/catalog.ts'
import { type Finding, findingsIn } from '../catalog/findings.ts'
import { readEntries, type WrittenEntries } from '../catalog/read-list.ts'
import type { ModelEntry } from '../core/models/model.ts'
import { didYouMean } from '../manifest/check/did-you-mean.ts'
import type { Problem } from '../manifest/check/problem.ts'
import { type Refusals, refusals } from '../manifest/check/refused-flags.ts'
import type { FileCache } from '../manifest/read/file-cache.ts'
import type { KeptProvider } from '../manifest/read/manifest.ts'
import type { Source } from '../manifest/read/source.ts'
import type { YieldToOthers } from '../runtime/event-loop.ts'
import type { Config } from './config.ts'

/** Lists for providers that offer another one's models: from its catalog, its manifest and the settings for it. */
export function sharedLists(
  lists: readonly ModelList[],
  providers: readonly KeptProvider[],
  manifests: ReadonlyMap<string, Source>,
  config: Config,
): ModelList[] {
  const shared = providers.flatMap(({ provider: { slug, modelsOf } }) => {
    if (modelsOf === undefined) return []
    const written = manifests.get(modelsOf)?.value as { models?: WrittenEntries } | undefined
    const listed = lists.filter(({ provider }) => provider === modelsOf).map(({ models }) => models)
    const all = [...listed, readEntries(written?.models ?? {}), readEntries(config.providers[modelsOf]?.models ?? {})]
    return all.map((models) => ({ provider: slug, models }))
  })
  return [...shared, ...lists]
}

type Build = { cache: FileCache; yieldToOthers: YieldToOthers }

/**
 * Joins catalog files, then manifests, then the operator's settings: the later ones win. No flag promises an ability that is not served.
 */
export async function joinCatalog(
  lists: readonly ModelList[],
  providers: readonly KeptProvider[],
  config: Config,
  source: Source,
  build: Build,
  problems: Problem[],
): Promise<Catalog> {
  const served = new Set(providers.map(({ provider }) => provider.slug))
  const settled = (slug: string) => readEntries(config.providers[slug]?.models ?? {})
  const changing = providers.filter(({ provider: { slug, models } }) => !isEmpty(models) || !isEmpty(settled(slug)))
  const changed = new Set(changing.map(({ provider }) => provider.slug))
  const ofCatalog = createCatalog(lists.filter(({ provider }) => changed.has(provider)))
  const added: ModelList[] = []
  for (const { provider, source: manifest } of changing) {
    const { slug, models } = provider
    const fromSettings = settled(slug)
    const below = (model: string) => ofCatalog.find(slug, model)
    const merged = merge(models, below)
    problems.push(...findingsIn(merged).map(({ path, message }) => manifest.problem(['models', ...path], message)))
    const ofSettings = merge(fromSettings, (model) => merged[model] ?? below(model))
    const at = ['providers', slug, 'models']
    problems.push(...findingsIn(ofSettings).map(({ path, message }) => source.problem([...at, ...path], message)))
    added.push({ provider: slug, models: { ...merged, ...ofSettings } })
  }
  const all = [...lists.filter(({ provider }) => served.has(provider)), ...added]
  const modelIds = new Map(
    providers.flatMap(({ provider: { slug, modelIds } }) => (modelIds ? [[slug, modelIds] as const] : [])),
  )
  const catalog = createCatalog(all, modelIds)
  for (const { provider, source: manifest } of providers) {
    const { slug, models } = provider
    problems.push(
      ...deploymentProblems(catalog, slug, models).map(({ path, message }) => manifest.problem(path, message)),
      ...deploymentProblems(catalog, slug, settled(slug)).map(({ path, message }) =>
        source.problem(['providers', slug, ...path], message),
      ),
    )
  }
  const refused = await refusedLists(catalog, providers, build)
  return refused.length === 0 ? catalog : createCatalog([...all, ...refused], modelIds)
}

function isEmpty(models: ModelList['models']): boolean {
  return Object.keys(models).length === 0
}

/** Lists in which the flags that no call can rely on are false. */
async function refusedLists(
  catalog: Catalog,
  providers: readonly KeptProvider[],
  { cache, yieldToOthers }: Build,
): Promise<ModelList[]> {
  const bySlug = new Map<string, Refusals>()
  for (const loaded of providers) {
    await yieldToOthers()
    bySlug.set(loaded.provider.slug, refusals(loaded, cache))
  }
  const lists: ModelList[] = []
  for (const { provider: slug, model, entry } of catalog.list()) {
    await yieldToOthers()
    const refused = entry.api === 'chat' ? await bySlug.get(slug)?.of(entry.is ?? model, entry) : undefined
    if (!refused || refused.length === 0) continue
    lists.push({
      provider: slug,
      models: { [model]: { api: 'chat', ...Object.fromEntries(refused.map((flag) => [flag, false])) } },
    })
  }
  for (const known of bySlug.values()) {
    await yieldToOthers()
    known.keep()
  }
  return lists
}

/** Finds deployments of models that are not listed, or are deployments themselves. */
function deploymentProblems(catalog: Catalog, slug: string, models: ModelList['models']): Finding[] {
  return Object.entries(models).flatMap(([model, { is }]) => {
    if (is === undefined) return []
    const base = catalog.identify(slug, is)
    if (base && base.entry.is === undefined) return []
    const path = ['models', model, 'is']
    if (base) return [{ path, message: `\`${is}\` is itself a deployment of \`${base.entry.is}\`: name that one` }]
    const listed = catalog.list().flatMap((one) => (one.provider === slug ? [one.model] : []))
    return [{ path, message: `\`${slug}\` has no model \`${is}\`${didYouMean(is, listed)}` }]
  })
}

function merge(models: ModelList['models'], below: (model: string) => ModelEntry | undefined) {
  const entries = Object.entries(models).map(([model, entry]) => [model, mergeEntries(below(model), entry)] as const)
  return Object.fromEntries(entries)
}
