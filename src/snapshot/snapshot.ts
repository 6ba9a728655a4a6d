import { isDeepStrictEqual } from 'node:util'
import type { Catalog } from '../catalog/catalog.ts'
import { type FileProblem, hasErrors, type Problem } from '../manifest/check/problem.ts'
import { type Proof, prove } from '../manifest/check/proof.ts'
import { keepValidatorsIn } from '../manifest/check/schema.ts'
import type { Provider } from '../manifest/provider.ts'
import { bareProvider } from '../manifest/read/dialect.ts'
import type { Environment } from '../manifest/read/environment.ts'
import { type FileCache, noCache } from '../manifest/read/file-cache.ts'
import type { KnownSources, Texts } from '../manifest/read/folder.ts'
import type { Source } from '../manifest/read/source.ts'
import { areUnchanged, closeAll, configured, type PluginInstance } from '../plugin/instances.ts'
import type { LoadedPlugin } from '../plugin/loaded.ts'
import { neverYield, type YieldToOthers, yieldBetween } from '../runtime/event-loop.ts'
import { type Config, loadConfig, shortPath } from './config.ts'
import { findConfig } from './find-config.ts'
import { byPath, type Files, loadFiles, readSources, type Sources, type SourcesByKind, statesIn } from './load-files.ts'
import { type PluginServices, pluginFolders } from './load-plugins.ts'
import { breaking } from './load-providers.ts'
import { areSameUnavailable, nothingUnavailable, type Unavailable } from './unavailable.ts'
import { type UsableFiles, usableFiles } from './usable-files.ts'
import { usablePlugins } from './usable-plugins.ts'

/** One immutable generation of settings, providers and catalog. A call uses the one it began with to its end. */
export type Snapshot = {
  /** Number of the snapshot: 1 for the first of the process. */
  generation: number
  config: Config
  /** Providers by slug; switched-off ones are absent, unconfigured ones are present, with the settings that they miss. */
  providers: ReadonlyMap<string, Provider>
  /** Switched-off providers by slug, with the message for clients where their own settings do not explain it. */
  off: ReadonlyMap<string, string | undefined>
  /** Providers and plugins that are not in use because of errors in files. */
  unavailable: Unavailable
  catalog: Catalog
  /** Plugins in the order in which they are called. */
  plugins: readonly LoadedPlugin[]
  /** Instances of the plugins, however they are configured. */
  instances: readonly PluginInstance[]
  /** Unix milliseconds. */
  builtAt: number
  /** The files it was built from, so that the next build reads only what has changed. */
  sources: KnownSources
  /** The same by kind, without config.yaml. */
  files: SourcesByKind
  /** Cached facts about files from earlier starts. */
  cache: FileCache
}

/**
 * A snapshot when there is one, warnings, and the problems of files that are not in use in their newest version. Without a snapshot these are
 * the reasons.
 */
export type Built = { snapshot?: Snapshot; problems: (Problem | FileProblem)[] }

/** State after which a snapshot is built. */
export type After = {
  previous?: Snapshot | undefined
  known?: KnownSources
  cache?: FileCache
  /** Files in use that another thread has chosen, and the names that have none: a further error concerns all of them. */
  texts?: Texts
  unavailable?: Unavailable
  /** Set where one file with an error refuses all changes. */
  strict?: boolean | undefined
  /** Services that plugins are given. */
  services?: PluginServices | undefined
}

/**
 * Builds a whole snapshot from a configuration file (chosen by `findConfig` when none is named): the `previous` one itself
 * if nothing that is in use has changed. A file with errors stays as it was in the previous snapshot, or is left out; without a previous one,
 * an error of the configuration itself leaves no snapshot. After a previous one, the examples of changed files must pass too; at the start of
 * the process `check` has run them. Files that are `known` with the same text are not parsed again, nor those that the cache has; with
 * `texts` no file is read.
 */
export async function buildSnapshot(
  configPath: string | undefined,
  env: Environment,
  after: After = {},
): Promise<Built> {
  const { previous, known = previous?.sources ?? new Map(), cache = previous?.cache ?? noCache, texts } = after
  keepValidatorsIn(cache)
  const path = findConfig(configPath, env)
  const loaded = await loadConfig(path, env, { known, cache, texts })
  const building = { ...after, known, cache, env }
  const built: Built & { refused?: Problem[] } = loaded.config
    ? await buildWith(loaded.config, loaded.source, building)
    : { problems: [], refused: loaded.problems }
  const { refused = [], ...rest } = built
  if (refused.length === 0) return { ...rest, problems: [...loaded.problems, ...rest.problems] }
  const before = previous?.sources.get(path)
  const isOwnFault = !loaded.config || before?.text !== loaded.source.text
  if (!previous || !before || !isOwnFault || after.strict || texts)
    return { problems: [...(loaded.config ? loaded.problems : []), ...refused, ...rest.problems] }
  const held = refused.filter((one) => hasErrors([one])).map(ofConfig)
  const withoutChange = await buildWith(previous.config, before, building)
  return withoutChange.snapshot
    ? { snapshot: withoutChange.snapshot, problems: [...held, ...withoutChange.problems] }
    : { problems: [...held, ...(withoutChange.refused ?? []), ...withoutChange.problems] }
}

function ofConfig(problem: Problem): FileProblem {
  return { ...problem, kind: 'config', effect: 'the previous settings stay in use' }
}

type Building = After & Required<Pick<After, 'known' | 'cache'>> & { env: Environment }

/** Builds a snapshot with settings; without one, `refused` are the errors that concern all files. */
async function buildWith(
  config: Config,
  source: Source,
  { previous, known, cache, texts, unavailable: given, strict, services, env }: Building,
): Promise<Built & { refused?: Problem[] }> {
  const { path } = config
  const running = previous?.instances ?? []
  // At the start there are no calls, and each turn would go to the writing of the cache.
  const yieldToOthers = previous ? yieldBetween() : neverYield
  const reading = { config, source, env, known, cache, texts, services, yieldToOthers }
  const read = await readSources(reading)
  const isSameRead = read.problems.length === 0 && isSame(previous?.sources, byPath(read.files).set(path, source))
  const isComplete = previous && areSameUnavailable(previous.unavailable, given ?? nothingUnavailable)
  if (isComplete && isSameRead && (await areUnchanged(running, { folders: pluginFolders(config.folders), texts })))
    return { snapshot: previous, problems: [] }
  const plugins = await usablePlugins(reading, read.files, { previous, given: texts && (given ?? nothingUnavailable) })
  const { instances, extensions } = plugins
  const load: Parameters<typeof usableFiles>[1]['load'] = (files, leftOut) =>
    loadFiles(reading, files, { extensions, leftOut })
  const isOff = (slug: string, among: SourcesByKind) =>
    config.providers[slug]?.enabled === false || statesIn(reading, among).off.has(slug)
  const problemsOf = async (files: Files) =>
    (await proveFiles(files, { known, cache, giveTurn: yieldToOthers })).problems
  const before = previous && hasSameFolders(previous.config, config) ? previous : undefined
  const used =
    texts || strict
      ? await allFiles(read, given, { load, ...(previous && { prove: problemsOf }) })
      : await usableFiles(read, { load, isOff, before, ...(previous && { prove: problemsOf }) })
  const found = [...plugins.problems, ...used.problems]
  // A folder that cannot be read has files whose names nobody knows.
  const lost = previous && !strict ? [] : found.filter(({ kind }) => kind === 'folder')
  const refused = [...plugins.refused, ...used.refused, ...lost, ...(strict ? plugins.problems : [])]
  if (refused.length > 0) {
    await closeAll(instances.filter((instance) => !running.includes(instance)))
    const others = strict ? [] : found.filter((one) => !lost.includes(one))
    return { refused: [...plugins.warnings, ...refused], problems: others }
  }
  const problems = [...plugins.warnings, ...used.files.problems, ...found]
  const unavailable = { providers: used.unavailable, plugins: plugins.unavailable }
  const isUnchanged =
    previous &&
    isSame(previous.sources, byPath(used.byKind).set(path, source)) &&
    areSameUnavailable(previous.unavailable, unavailable) &&
    instances.length === running.length &&
    instances.every((instance) => running.includes(instance))
  if (isUnchanged) return { snapshot: previous, problems }
  const { files } = used
  const snapshot: Snapshot = Object.freeze({
    generation: (previous?.generation ?? 0) + 1,
    config,
    providers: new Map(files.providers.map(({ provider }) => [provider.slug, provider])),
    off: new Map([...files.off].map(([slug, { message }]) => [slug, message])),
    unavailable,
    catalog: files.catalog,
    plugins: configured(instances, config.plugins, placesOf(unavailable, path)),
    instances,
    builtAt: Date.now(),
    sources: new Map([...byPath(used.byKind), [path, source]]),
    files: used.byKind,
    cache,
  })
  return { snapshot, problems }
}

/** Loads files that are to be used all or not at all. */
async function allFiles(
  { files: byKind, problems }: Sources,
  given: Unavailable = nothingUnavailable,
  { load, prove }: Pick<Parameters<typeof usableFiles>[1], 'load' | 'prove'>,
): Promise<UsableFiles> {
  const unavailable = given.providers
  const files = await load(byKind, { dialects: new Set(), providers: new Set(unavailable.keys()) })
  const found = [...problems, ...files.problems]
  const all = [...found, ...(prove && !hasErrors(found) ? await prove(files) : [])]
  return { files, byKind, unavailable, problems: [], refused: hasErrors(all) ? all : [] }
}

function hasSameFolders({ folders }: Config, { folders: others }: Config): boolean {
  return isDeepStrictEqual([folders.providers, folders.catalog], [others.providers, others.catalog])
}

/** Returns the places of the errors because of which plugins are unavailable, where calls are refused without them. */
function placesOf({ plugins }: Unavailable, config: string): Map<string, string | undefined> {
  return new Map(
    [...plugins].map(([name, { problem, onError }]) => [
      name,
      onError === 'open' ? undefined : placeOf(problem, config),
    ]),
  )
}

/** Returns the place of a problem as callers see it: a sentence part, without the message, which may repeat a secret. */
export function placeOf({ file, line, column }: Problem, config: string): string {
  return `${shortPath(file, config)} because of an error in line ${line}, column ${column}`
}

/** Checks whether these are the same files with the same texts. */
function isSame(before: KnownSources | undefined, after: KnownSources): boolean {
  return before?.size === after.size && [...after].every(([file, source]) => before.get(file) === source)
}

/** Returns the files that a snapshot was built from and the names that have none, for another thread to build the same. */
export function chosenFiles({
  sources,
  instances,
  unavailable,
}: Pick<Snapshot, 'sources' | 'instances' | 'unavailable'>): ChosenFiles {
  const ofPlugins = instances.flatMap(({ files }) => [...files])
  const texts = new Map([...[...sources].map(([file, { text }]): [string, string] => [file, text]), ...ofPlugins])
  return { texts, unavailable }
}

/** The files of a snapshot for another thread. */
export type ChosenFiles = { texts: Texts; unavailable: Unavailable }

/**
 * Compiles the mappings and runs the examples of all dialects and manifests but those whose files are among the `known` ones, and those
 * of which the cache has a proof.
 */
export async function proveFiles(
  { dialects, providers }: Files,
  {
    known = new Map(),
    cache = noCache,
    giveTurn = neverYield,
  }: { known?: KnownSources; cache?: FileCache; giveTurn?: YieldToOthers } = {},
): Promise<Proof> {
  const proofs: Proof[] = []
  for (const dialect of dialects) {
    await giveTurn()
    const { layer } = dialect
    const { source } = layer
    if (known.get(source.file) !== source) {
      proofs.push(await provenIn(source, { provider: bareProvider(dialect), layers: [layer], files: [source] }, cache))
    }
  }
  for (const { provider, source, files, layers } of providers) {
    await giveTurn()
    const isKnown = files.every(({ file, text }) => known.get(file)?.text === text)
    if (layers && !isKnown) proofs.push(await provenIn(source, { provider, layers, files }, cache))
  }
  return {
    problems: proofs.flatMap(({ problems }) => problems),
    interpreted: new Set(proofs.flatMap(({ interpreted }) => [...interpreted])),
  }
}

/** Proves a file; what a run throws is a problem of that file. */
async function provenIn(source: Source, ...proving: Parameters<typeof prove>): Promise<Proof> {
  try {
    const { problems, interpreted } = await prove(...proving)
    return { problems: problems.map((problem) => breaking(source, problem)), interpreted }
  } catch (thrown) {
    const problem = source.problem([], `the examples cannot be run: ${(thrown as Error).message}`)
    return { problems: [problem], interpreted: new Set() }
  }
}
