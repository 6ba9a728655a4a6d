import { join } from 'node:path'
import type { Catalog, ModelList } from '../catalog/catalog.ts'
import { type CatalogFile, readList } from '../catalog/read-list.ts'
import { isObject } from '../core/json.ts'
import { didYouMean } from '../manifest/check/did-you-mean.ts'
import type { Problem } from '../manifest/check/problem.ts'
import { checkSchema, type FileKind } from '../manifest/check/schema.ts'
import { type Extensions, isBare } from '../manifest/provider.ts'
import { seenOf } from '../manifest/read/base-layers.ts'
import { type Dialect, loadDialect } from '../manifest/read/dialect.ts'
import { type Environment, referencesIn } from '../manifest/read/environment.ts'
import { type FileCache, noCache } from '../manifest/read/file-cache.ts'
import { type Earlier, type KnownSources, keepSound, type Texts } from '../manifest/read/folder.ts'
import type { KeptProvider } from '../manifest/read/manifest.ts'
import type { Source } from '../manifest/read/source.ts'
import { extensionsOf, type PluginInstance } from '../plugin/instances.ts'
import { neverYield, type YieldToOthers } from '../runtime/event-loop.ts'
import type { Config } from './config.ts'
import { type Folders, isShippedIn, nameOf, pathsOf, readFolders, shippedDialects } from './folders.ts'
import { joinCatalog, sharedLists } from './join-catalog.ts'
import { type PluginServices, type PluginsAround, pluginsOf } from './load-plugins.ts'
import { explained, loadProviders } from './load-providers.ts'
import { policyProblems } from './managed-policies.ts'
import { addedProblems, type SwitchedOff, statesOf } from './provider-state.ts'

/** All dialects, manifests and catalog files of a configuration, as far as they can be used. */
export type Files = {
  dialects: Dialect[]
  providers: KeptProvider[]
  /** Providers that serve no calls, by slug. */
  off: ReadonlyMap<string, SwitchedOff>
  catalog: Catalog
  /** Every file that was read, by path. */
  sources: KnownSources
  problems: Problem[]
}

/**
 * The input of `readFiles`; `everything` includes the manifests of switched-off providers, `services` are those provided to plugins;
 * `yieldToOthers` lets calls run between the steps.
 */
export type Reading = {
  config: Config
  source: Source
  env: Environment
  known?: KnownSources
  cache?: FileCache
  texts?: Texts | undefined
  everything?: boolean
  services?: PluginServices | undefined
  yieldToOthers?: YieldToOthers
}

/** The kinds of files that are loaded one by one. */
export type SourceKind = 'dialect' | 'provider' | 'catalog'

/** The files of each kind; `shadowed` are manifests that another one of the same name replaces. */
export type SourcesByKind = Readonly<Record<SourceKind | 'shadowed', readonly Source[]>>

/** The files that a configuration leads to, and the problems of their folders and of files that are not read. */
export type Sources = { files: SourcesByKind; problems: (Problem & { kind: SourceKind })[] }

/** Reads all files that a configuration leads to, and collects all their problems. */
export async function readFiles(reading: Reading): Promise<Files & { plugins: readonly PluginInstance[] }> {
  const read = await readSources(reading)
  const { instances, problems } = await pluginsFor(reading, read.files)
  const { extensions, problems: clashes } = extensionsOf(instances, reading.config.plugins, reading.source)
  const files = await loadFiles(reading, read.files, { extensions })
  return { ...files, plugins: instances, problems: [...read.problems, ...problems, ...clashes, ...files.problems] }
}

/** Reads and parses all files that a configuration leads to. */
export async function readSources({
  config: { folders },
  known = new Map(),
  cache = noCache,
  texts,
}: Reading): Promise<Sources> {
  const read = async (paths: readonly string[], kind: SourceKind) => {
    const { problems, ...files } = await readFolders(paths, { known, cache, texts, kind })
    return { ...files, problems: problems.map((problem) => ({ ...problem, kind })) }
  }
  const [dialects, manifests, catalogs] = await Promise.all([
    read(dialectFolders(folders), 'dialect'),
    read(pathsOf(folders.providers), 'provider'),
    read(pathsOf(folders.catalog), 'catalog'),
  ])
  const isShipped = isShippedIn(folders.catalog)
  const slugs = new Set(manifests.sources.map(nameOf))
  return {
    files: {
      dialect: dialects.sources,
      provider: manifests.sources,
      shadowed: manifests.shadowed,
      // A shipped file is there for whoever has its provider.
      catalog: catalogs.sources.filter((one) => !isShipped(one) || slugs.has(nameOf(one))),
    },
    problems: [dialects, manifests, catalogs].flatMap((one) => one.problems),
  }
}

/** Sets up the plugins of a configuration, without the credentials that its files name. */
export function pluginsFor(
  { config, source, env, texts, services }: Reading,
  { provider }: Pick<SourcesByKind, 'provider'>,
  more: Partial<Pick<PluginsAround, 'previous' | 'except'>> = {},
): ReturnType<typeof pluginsOf> {
  // A copy: that of the process loses its credentials when plugins are set up.
  const around = { source, env: { ...env }, texts, services, ...more }
  return pluginsOf(config, { ...around, credentials: credentialNames(provider, config.providers) })
}

/** Names that are not loaded, because files of theirs were left out: dialects, and providers by slug. */
export type LeftOutNames = { dialects: ReadonlySet<string>; providers: ReadonlySet<string> }

const nothingLeftOut: LeftOutNames = { dialects: new Set(), providers: new Set() }

/** Makes of files what serves, and collects all their problems. */
export async function loadFiles(
  reading: Reading,
  sources: SourcesByKind,
  { extensions, leftOut = nothingLeftOut }: { extensions: Extensions; leftOut?: LeftOutNames },
): Promise<Files> {
  const { config, source, known = new Map(), cache = noCache, everything = false, yieldToOthers = neverYield } = reading
  const env = { ...reading.env }
  const ofKind = (kind: FileKind): Earlier => ({ known, cache, kind })
  const problems: Problem[] = []
  const dialects = readDialects(sources.dialect, { ...ofKind('dialect'), extensions }, problems)
  for (const name of leftOut.dialects) dialects.set(name, 'unusable')
  const manifests = byName(sources.provider)
  const slugs = new Set([...manifests.keys(), ...leftOut.providers])
  problems.push(...settingsProblems(config, source, slugs))
  const { settingsOf, off, problems: ofStates } = statesIn(reading, sources)
  problems.push(...ofStates)
  const isUsed = (slug: string) => !leftOut.providers.has(slug) && (everything || !off.has(slug))
  const { providers, problems: ofManifests } = await loadProviders(
    sources.provider.filter((one) => isUsed(nameOf(one))),
    {
      giveTurn: yieldToOthers,
      around: (one) => ({
        ...{ dialects, env, unknownModels: config.unknownModels, manifests, extensions },
        ...settingsOf(nameOf(one)),
      }),
      onSound(one) {
        // With the extensions of plugins a file may be valid that is not without them.
        if (isBare(extensions)) keepSound(one, ofKind('provider'), seenOf(one, { dialects }))
      },
    },
  )
  problems.push(...ofManifests, ...addedProblems(providers, { config, source }))
  const lists = sources.catalog.flatMap((one) => readCatalogFile(one, slugs, ofKind('catalog'), problems))
  const catalog = await joinCatalog(
    sharedLists(lists, providers, manifests, config),
    providers,
    config,
    source,
    { cache, yieldToOthers },
    problems,
  )
  const served = new Map(
    providers.flatMap(({ provider }) => (off.has(provider.slug) ? [] : [[provider.slug, provider] as const])),
  )
  problems.push(...policyProblems(config, source, { providers: served, slugs, off, catalog }))
  return {
    dialects: [...dialects.values()].filter((one) => one !== 'unusable'),
    providers,
    off,
    catalog,
    sources: byPath(sources),
    problems,
  }
}

/** Returns the settings of the providers that there are manifests of, and those that are switched off. */
export function statesIn(
  { config, source, env }: Pick<Reading, 'config' | 'source' | 'env'>,
  { provider, shadowed }: Pick<SourcesByKind, 'provider' | 'shadowed'>,
): ReturnType<typeof statesOf> {
  return statesOf({ config, source, manifests: byName(provider), shadowed: byName(shadowed), env })
}

function byName(sources: readonly Source[]): Map<string, Source> {
  return new Map(sources.map((one) => [nameOf(one), one]))
}

/** Returns all files by path. */
export function byPath({ dialect, provider, shadowed, catalog }: SourcesByKind): Map<string, Source> {
  return new Map([...dialect, ...provider, ...shadowed, ...catalog].map((one) => [one.file, one]))
}

/** Returns the folders of dialects: those of the program can be built on from any folder; one of the same name in that folder replaces them. */
export function dialectFolders({ providers }: Folders): string[] {
  return [...new Set([...pathsOf(providers).map((path) => join(path, 'dialects')), shippedDialects])]
}

/** Dialects by source: an unchanged source is not loaded a second time. */
const dialectsRead = new WeakMap<Source, ReturnType<typeof loadDialect>>()

function readDialects(
  sources: readonly Source[],
  { extensions, ...earlier }: Earlier & { extensions: Extensions },
  problems: Problem[],
): Map<string, Dialect | 'unusable'> {
  const dialects = new Map<string, Dialect | 'unusable'>()
  const { functions } = extensions
  for (const source of sources) {
    const read = (functions ? undefined : dialectsRead.get(source)) ?? readDialect(source, functions)
    if (!functions) dialectsRead.set(source, read)
    if (read.problems.length === 0 && !functions) keepSound(source, earlier)
    problems.push(...read.problems)
    dialects.set(nameOf(source), read.dialect ?? 'unusable')
  }
  return dialects
}

function readDialect(source: Source, functions: Extensions['functions']): ReturnType<typeof loadDialect> {
  return explained(
    source,
    () => loadDialect(source, functions),
    (problem) => ({ problems: [problem] }),
  )
}

function settingsProblems(config: Config, source: Source, slugs: ReadonlySet<string>): Problem[] {
  return Object.keys(config.providers)
    .filter((slug) => !slugs.has(slug))
    .map((slug) => {
      const message = `there is no provider \`${slug}\` in the folder of providers${didYouMean(slug, slugs)}`
      return source.problem(['providers', slug], message, 'name')
    })
}

type CatalogRead = { list?: ModelList; problems: Problem[] }
const catalogsRead = new WeakMap<Source, CatalogRead>()

function readCatalogFile(
  source: Source,
  slugs: ReadonlySet<string>,
  earlier: Earlier,
  problems: Problem[],
): ModelList[] {
  const read = catalogsRead.get(source) ?? explained(source, () => loadCatalog(source), noList)
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

function noList(problem: Problem): CatalogRead {
  return { problems: [problem] }
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
