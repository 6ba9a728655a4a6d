import { join } from 'node:path'
import { type Catalog, createCatalog, type ModelList, mergeEntries } from '../catalog/catalog.ts'
import { type Finding, findingsIn } from '../catalog/findings.ts'
import type { ModelEntry } from '../core/model.ts'
import { type Dialect, type Dialects, loadDialect } from '../manifest/dialect.ts'
import { didYouMean } from '../manifest/did-you-mean.ts'
import type { Environment } from '../manifest/environment.ts'
import { type FileCache, noCache } from '../manifest/file-cache.ts'
import { type Earlier, type KnownSources, keepSound, readFolder } from '../manifest/folder.ts'
import { type LoadedProvider, loadManifest } from '../manifest/manifest.ts'
import type { Path } from '../manifest/position.ts'
import type { Problem } from '../manifest/problem.ts'
import type { Surroundings } from '../manifest/references.ts'
import { refusals } from '../manifest/refused-flags.ts'
import { checkSchema, type FileKind } from '../manifest/schema.ts'
import type { Source } from '../manifest/source.ts'
import type { Config } from './config.ts'
import { policyProblems } from './managed-policies.ts'

/** All dialects, manifests and catalog files of a configuration, as far as they can be used. */
export type Files = {
  dialects: Dialect[]
  providers: LoadedProvider[]
  catalog: Catalog
  /** Every file that was read, by path. */
  sources: KnownSources
  problems: Problem[]
}

/** The input of `readFiles`; `everything` includes the manifests of switched-off providers. */
export type Reading = {
  config: Config
  source: Source
  env: Environment
  known?: KnownSources
  cache?: FileCache
  everything?: boolean
}

/** Reads all files that a configuration leads to, and collects all their problems. */
export async function readFiles(reading: Reading): Promise<Files> {
  const { config, source, env, known = new Map(), cache = noCache, everything = false } = reading
  const { folders } = config
  const ofKind = (kind: FileKind): Earlier => ({ known, cache, kind })
  const ownDialects = join(folders.providers, 'dialects')
  const [shippedFiles, dialectFiles, manifestFiles, catalogFiles] = await Promise.all([
    ownDialects === shippedDialects ? noFiles : readFolder(shippedDialects, ofKind('dialect')),
    readFolder(ownDialects, ofKind('dialect')),
    readFolder(folders.providers, ofKind('provider')),
    readFolder(folders.catalog, ofKind('catalog')),
  ])
  const problems = [shippedFiles, dialectFiles, manifestFiles, catalogFiles].flatMap((folder) => folder.problems)
  const dialects = readDialects([...shippedFiles.sources, ...dialectFiles.sources], ofKind('dialect'), problems)
  const manifests = new Map(manifestFiles.sources.map((one) => [nameOf(one), one]))
  const slugs = new Set(manifests.keys())
  problems.push(...settingsProblems(config, source, slugs))
  const used = manifestFiles.sources.filter((one) => everything || config.providers[nameOf(one)]?.enabled !== false)
  const providers = used.flatMap((one) => {
    const { loaded, problems: found } = loadManifest(one, {
      ...surroundings(one, config, source, dialects, env),
      manifests,
    })
    problems.push(...found)
    if (found.length === 0) keepSound(one, ofKind('provider'))
    return loaded ?? []
  })
  const lists = catalogFiles.sources.flatMap((one) => readCatalogFile(one, slugs, ofKind('catalog'), problems))
  const catalog = await joinCatalog(
    sharedLists(lists, providers, manifests, config),
    providers,
    config,
    source,
    cache,
    problems,
  )
  const served = new Map(
    providers.flatMap(({ provider }) =>
      config.providers[provider.slug]?.enabled === false ? [] : [[provider.slug, provider] as const],
    ),
  )
  problems.push(...policyProblems(config, source, { providers: served, slugs, catalog }))
  const all = [...shippedFiles.sources, ...dialectFiles.sources, ...manifestFiles.sources, ...catalogFiles.sources]
  return {
    dialects: [...dialects.values()].filter((one) => one !== 'unusable'),
    providers,
    catalog,
    sources: new Map(all.map((one) => [one.file, one])),
    problems,
  }
}

/** The dialects of the project can be built on from any folder; one of the same name in that folder replaces them. */
export const shippedDialects = join(import.meta.dirname, '../../providers/dialects')
const noFiles: Awaited<ReturnType<typeof readFolder>> = { sources: [], problems: [] }

/** A file's name without its ending: the slug or dialect it is about. */
function nameOf({ file }: Source): string {
  return file.replace(/^.*[\\/]/, '').replace(/\.yaml$/, '')
}

/** Dialects by source: an unchanged source is not loaded a second time. */
const dialectsRead = new WeakMap<Source, ReturnType<typeof loadDialect>>()

function readDialects(sources: readonly Source[], earlier: Earlier, problems: Problem[]): Dialects {
  const dialects = new Map<string, Dialect | 'unusable'>()
  for (const source of sources) {
    const read = dialectsRead.get(source) ?? loadDialect(source)
    dialectsRead.set(source, read)
    if (read.problems.length === 0) keepSound(source, earlier)
    problems.push(...read.problems)
    dialects.set(nameOf(source), read.dialect ?? 'unusable')
  }
  return dialects
}

function settingsProblems(config: Config, source: Source, slugs: ReadonlySet<string>): Problem[] {
  return Object.keys(config.providers)
    .filter((slug) => !slugs.has(slug))
    .map((slug) => {
      const message = `there is no provider \`${slug}\` in the folder of providers${didYouMean(slug, slugs)}`
      return source.problem(['providers', slug], message, 'name')
    })
}

function surroundings(
  manifest: Source,
  config: Config,
  source: Source,
  dialects: Dialects,
  env: Environment,
): Surroundings {
  const slug = nameOf(manifest)
  const value = config.providers[slug]
  if (!value) return { dialects, env }
  const blame = (path: Path, message: string) => source.problem(['providers', slug, ...path], message)
  return { dialects, env, settings: { value, blame } }
}

type CatalogFile = {
  provider: string
  defaults?: Partial<ModelEntry>
  models: { [model: string]: Partial<ModelEntry> }
}
type CatalogRead = { list?: ModelList; problems: Problem[] }
const catalogsRead = new WeakMap<Source, CatalogRead>()

function readCatalogFile(
  source: Source,
  slugs: ReadonlySet<string>,
  earlier: Earlier,
  problems: Problem[],
): ModelList[] {
  const read = catalogsRead.get(source) ?? loadCatalog(source)
  catalogsRead.set(source, read)
  if (read.problems.length === 0) keepSound(source, earlier)
  problems.push(...read.problems)
  if (!read.list) return []
  const { provider } = read.list
  if (slugs.has(provider)) return [read.list]
  const message = `there is no provider \`${provider}\`: these models are not used${didYouMean(provider, slugs)}`
  problems.push({ ...source.problem(['provider'], message), severity: 'warning' })
  return []
}

/** Reads a catalog file. The list is missing when there are problems. */
export function loadCatalog(source: Source): CatalogRead {
  if (source.problems.length > 0) return { problems: source.problems }
  const problems = checkSchema(source, 'catalog')
  if (problems.length > 0) return { problems }
  const { provider, defaults, models } = source.value as CatalogFile
  const name = nameOf(source)
  if (provider !== name) {
    problems.push(
      source.problem(['provider'], `the models of \`${provider}\` must be in ${provider}.yaml, not ${name}.yaml`),
    )
  }
  const filled = Object.entries(models).map(([model, entry]) => [model, mergeEntries(defaults, entry)] as const)
  const list = { provider, models: Object.fromEntries(filled) }
  problems.push(...findingsIn(list.models).map(({ path, message }) => source.problem(['models', ...path], message)))
  return problems.length > 0 ? { problems } : { list, problems }
}

/** Lists for providers that offer another one's models: from its catalog, its manifest and the settings for it. */
function sharedLists(
  lists: readonly ModelList[],
  providers: readonly LoadedProvider[],
  manifests: ReadonlyMap<string, Source>,
  config: Config,
): ModelList[] {
  const shared = providers.flatMap(({ provider: { slug, modelsOf } }) => {
    if (modelsOf === undefined) return []
    const written = manifests.get(modelsOf)?.value as { models?: ModelList['models'] } | undefined
    const listed = lists.filter(({ provider }) => provider === modelsOf).map(({ models }) => models)
    const all = [...listed, written?.models ?? {}, config.providers[modelsOf]?.models ?? {}]
    return all.map((models) => ({ provider: slug, models }))
  })
  return [...shared, ...lists]
}

/** Catalog files, then manifests, then the operator's settings: the later ones win. No flag promises what is not served. */
async function joinCatalog(
  lists: readonly ModelList[],
  providers: readonly LoadedProvider[],
  config: Config,
  source: Source,
  cache: FileCache,
  problems: Problem[],
): Promise<Catalog> {
  const served = new Set(providers.map(({ provider }) => provider.slug))
  const ofCatalog = createCatalog(lists.filter(({ provider }) => served.has(provider)))
  const added: ModelList[] = []
  for (const { provider, layers } of providers) {
    const { slug, models } = provider
    const fromSettings = config.providers[slug]?.models ?? {}
    const manifest = layers.at(-1)?.source ?? source
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
  for (const { provider, layers } of providers) {
    const { slug, models } = provider
    const manifest = layers.at(-1)?.source ?? source
    problems.push(
      ...deploymentProblems(catalog, slug, models).map(({ path, message }) => manifest.problem(path, message)),
      ...deploymentProblems(catalog, slug, config.providers[slug]?.models ?? {}).map(({ path, message }) =>
        source.problem(['providers', slug, ...path], message),
      ),
    )
  }
  return createCatalog([...all, ...(await refusedLists(catalog, providers, cache))], modelIds)
}

/** Lists in which the flags that no call can rely on are false. */
async function refusedLists(
  catalog: Catalog,
  providers: readonly LoadedProvider[],
  cache: FileCache,
): Promise<ModelList[]> {
  const bySlug = new Map(providers.map((loaded) => [loaded.provider.slug, refusals(loaded, cache)]))
  const lists: ModelList[] = []
  for (const { provider: slug, model, entry } of catalog.list()) {
    const refused = entry.api === 'chat' ? await bySlug.get(slug)?.of(entry.is ?? model, entry) : undefined
    if (!refused || refused.length === 0) continue
    lists.push({
      provider: slug,
      models: { [model]: { api: 'chat', ...Object.fromEntries(refused.map((flag) => [flag, false])) } },
    })
  }
  for (const known of bySlug.values()) known.keep()
  return lists
}

/** Deployments of models that are not listed, or are deployments themselves. */
function deploymentProblems(catalog: Catalog, slug: string, models: ModelList['models']): Finding[] {
  return Object.entries(models).flatMap(([model, { is }]) => {
    if (is === undefined) return []
    const base = catalog.identify(slug, is)
    if (base && base.entry.is === undefined) return []
    const path = ['models', model, 'is']
    if (base) return [{ path, message: `\`${is}\` is itself a deployment of \`${base.entry.is}\`: write that one` }]
    const listed = catalog.list().flatMap((one) => (one.provider === slug ? [one.model] : []))
    return [{ path, message: `\`${slug}\` has no model \`${is}\`${didYouMean(is, listed)}` }]
  })
}

function merge(models: ModelList['models'], below: (model: string) => ModelEntry | undefined) {
  const entries = Object.entries(models).map(([model, entry]) => [model, mergeEntries(below(model), entry)] as const)
  return Object.fromEntries(entries)
}
