import { join } from 'node:path'
import type { Catalog, ModelList } from '../catalog/catalog.ts'
import { type CatalogFile, readList } from '../catalog/read-list.ts'
import { isObject } from '../core/json.ts'
import { didYouMean } from '../manifest/check/did-you-mean.ts'
import type { Problem } from '../manifest/check/problem.ts'
import { checkSchema, type FileKind } from '../manifest/check/schema.ts'
import { type Extensions, isBare } from '../manifest/provider.ts'
import { seenOf } from '../manifest/read/base-layers.ts'
import { type Dialect, type Dialects, loadDialect } from '../manifest/read/dialect.ts'
import { type Environment, referencesIn } from '../manifest/read/environment.ts'
import { type FileCache, noCache } from '../manifest/read/file-cache.ts'
import { type Earlier, type KnownSources, keepSound, readFolder, type Texts } from '../manifest/read/folder.ts'
import type { KeptProvider } from '../manifest/read/manifest.ts'
import type { Path } from '../manifest/read/position.ts'
import type { Surroundings } from '../manifest/read/references.ts'
import type { Source } from '../manifest/read/source.ts'
import { extensionsOf, type PluginInstance } from '../plugin/instances.ts'
import { neverYield, type YieldToOthers } from '../runtime/event-loop.ts'
import type { Config } from './config.ts'
import { joinCatalog, sharedLists } from './join-catalog.ts'
import { type PluginServices, pluginsOf } from './load-plugins.ts'
import { loadProviders } from './load-providers.ts'
import { policyProblems } from './managed-policies.ts'

/** All dialects, manifests and catalog files of a configuration, as far as they can be used. */
export type Files = {
  dialects: Dialect[]
  providers: KeptProvider[]
  catalog: Catalog
  /** Plugins that are set up: whoever does not use them ends them. */
  plugins: readonly PluginInstance[]
  /** Every file that was read, by path. */
  sources: KnownSources
  problems: Problem[]
}

/**
 * The input of `readFiles`; `everything` includes the manifests of switched-off providers, `running` are the plugins of the last
 * generation, `services` are those provided to them; `giveTurn` lets calls run between the steps.
 */
type Reading = {
  config: Config
  source: Source
  env: Environment
  known?: KnownSources
  cache?: FileCache
  texts?: Texts | undefined
  everything?: boolean
  running?: readonly PluginInstance[]
  services?: PluginServices | undefined
  yieldToOthers?: YieldToOthers
}

/** The files that a configuration leads to, by their kind. */
type Sources = { dialects: Source[]; manifests: Source[]; catalogs: Source[]; problems: Problem[] }

/** Reads all files that a configuration leads to, and collects all their problems. */
export async function readFiles(reading: Reading): Promise<Files> {
  return await loadFiles(reading, await readSources(reading))
}

/** Reads and parses all files that a configuration leads to. */
export async function readSources({
  config: { folders },
  known = new Map(),
  cache = noCache,
  texts,
}: Reading): Promise<Sources> {
  const ofKind = (kind: FileKind): Earlier => ({ known, cache, texts, kind })
  const ownDialects = join(folders.providers, 'dialects')
  const [shippedFiles, dialectFiles, manifestFiles, catalogFiles] = await Promise.all([
    ownDialects === shippedDialects ? noFiles : readFolder(shippedDialects, ofKind('dialect')),
    readFolder(ownDialects, ofKind('dialect')),
    readFolder(folders.providers, ofKind('provider')),
    readFolder(folders.catalog, ofKind('catalog')),
  ])
  return {
    dialects: [...shippedFiles.sources, ...dialectFiles.sources],
    manifests: manifestFiles.sources,
    catalogs: catalogFiles.sources,
    problems: [shippedFiles, dialectFiles, manifestFiles, catalogFiles].flatMap((folder) => folder.problems),
  }
}

/** Makes of files what serves, and collects all their problems. */
export async function loadFiles(reading: Reading, sources: Sources): Promise<Files> {
  const { config, source, known = new Map(), cache = noCache, everything = false, yieldToOthers = neverYield } = reading
  // A copy: that of the process loses its credentials when plugins are set up.
  const env = { ...reading.env }
  const ofKind = (kind: FileKind): Earlier => ({ known, cache, kind })
  const problems = [...sources.problems]
  const plugins = await pluginsOf(config, {
    source,
    env,
    credentials: credentialNames(sources.manifests, config.providers),
    previous: reading.running ?? [],
    texts: reading.texts,
    services: reading.services,
  })
  const { extensions, problems: clashes } = extensionsOf(plugins.instances, config.plugins, source)
  problems.push(...plugins.problems, ...clashes)
  const dialects = readDialects(sources.dialects, { ...ofKind('dialect'), extensions }, problems)
  const manifests = new Map(sources.manifests.map((one) => [nameOf(one), one]))
  const slugs = new Set(manifests.keys())
  problems.push(...settingsProblems(config, source, slugs))
  const used = sources.manifests.filter((one) => everything || config.providers[nameOf(one)]?.enabled !== false)
  const { providers, problems: ofManifests } = await loadProviders(used, {
    giveTurn: yieldToOthers,
    around: (one) => ({ ...surroundings(one, config, source, dialects, env), manifests, extensions }),
    onSound(one) {
      // With the extensions of plugins a file may be valid that is not without them.
      if (isBare(extensions)) keepSound(one, ofKind('provider'), seenOf(one, { dialects }))
    },
  })
  problems.push(...ofManifests)
  const lists = sources.catalogs.flatMap((one) => readCatalogFile(one, slugs, ofKind('catalog'), problems))
  const catalog = await joinCatalog(
    sharedLists(lists, providers, manifests, config),
    providers,
    config,
    source,
    { cache, yieldToOthers },
    problems,
  )
  const served = new Map(
    providers.flatMap(({ provider }) =>
      config.providers[provider.slug]?.enabled === false ? [] : [[provider.slug, provider] as const],
    ),
  )
  problems.push(...policyProblems(config, source, { providers: served, slugs, catalog }))
  return {
    dialects: [...dialects.values()].filter((one) => one !== 'unusable'),
    providers,
    catalog,
    plugins: plugins.instances,
    sources: byPath(sources),
    problems,
  }
}

/** Returns all files by path. */
export function byPath({ dialects, manifests, catalogs }: Sources): Map<string, Source> {
  return new Map([...dialects, ...manifests, ...catalogs].map((one) => [one.file, one]))
}

/** The dialects of the project can be built on from any folder; one of the same name in that folder replaces them. */
export const shippedDialects = join(import.meta.dirname, '../../providers/dialects')
const noFiles: Awaited<ReturnType<typeof readFolder>> = { sources: [], problems: [] }

/** Returns a file's name without its ending: the slug or dialect it is about. */
function nameOf({ file }: Source): string {
  return file.replace(/^.*[\\/]/, '').replace(/\.yaml$/, '')
}

/** Dialects by source: an unchanged source is not loaded a second time. */
const dialectsRead = new WeakMap<Source, ReturnType<typeof loadDialect>>()

function readDialects(
  sources: readonly Source[],
  { extensions, ...earlier }: Earlier & { extensions: Extensions },
  problems: Problem[],
): Dialects {
  const dialects = new Map<string, Dialect | 'unusable'>()
  const { functions } = extensions
  for (const source of sources) {
    const read = (functions ? undefined : dialectsRead.get(source)) ?? loadDialect(source, functions)
    if (!functions) dialectsRead.set(source, read)
    if (read.problems.length === 0 && !functions) keepSound(source, earlier)
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
  const { unknownModels } = config
  if (!value) return { dialects, env, unknownModels }
  const problemAt = (path: Path, message: string) => source.problem(['providers', slug, ...path], message)
  return { dialects, env, unknownModels, settings: { value, problemAt } }
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
  const file = source.value as CatalogFile
  const { provider } = file
  const name = nameOf(source)
  if (provider !== name) {
    problems.push(
      source.problem(['provider'], `the models of \`${provider}\` must be in ${provider}.yaml, not ${name}.yaml`),
    )
  }
  const { models, findings } = readList(file)
  problems.push(...findings.map(({ path, message }) => source.problem(path, message)))
  return problems.length > 0 ? { problems } : { list: { provider, models }, problems }
}

/** Returns the variables that hold credentials of providers, or the first key of this router: those that manifests and settings name. */
export function credentialNames(manifests: readonly Source[], settings: unknown): Set<string> {
  const found = new Set(['INFERENCE_ROUTER_ADMIN_KEY'])
  for (const { value } of manifests) collect(value, false, found)
  collect(settings, false, found)
  return found
}

/** Members under which credentials stand. */
const secretMembers: ReadonlySet<string> = new Set(['auth', 'headers', 'secret'])

function collect(value: unknown, isSecret: boolean, found: Set<string>): void {
  if (typeof value === 'string') {
    if (isSecret) for (const name of referencesIn(value)) found.add(name)
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, isSecret, found)
  } else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) collect(member, isSecret || secretMembers.has(name), found)
  }
}
