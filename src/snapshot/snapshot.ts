import type { Catalog } from '../catalog/catalog.ts'
import { proveExamples } from '../manifest/check/examples.ts'
import { hasErrors, type Problem } from '../manifest/check/problem.ts'
import { keepValidatorsIn } from '../manifest/check/schema.ts'
import type { Provider } from '../manifest/provider.ts'
import { bareProvider } from '../manifest/read/dialect.ts'
import type { Environment } from '../manifest/read/environment.ts'
import { type FileCache, noCache } from '../manifest/read/file-cache.ts'
import type { KnownSources, Texts } from '../manifest/read/folder.ts'
import { areUnchanged, closeAll, configured, type PluginInstance } from '../plugin/instances.ts'
import type { LoadedPlugin } from '../plugin/loaded.ts'
import { neverYield, type YieldToOthers, yieldBetween } from '../runtime/event-loop.ts'
import { type Config, findConfig, loadConfig } from './config.ts'
import { byPath, type Files, loadFiles, readSources } from './load-files.ts'
import { type PluginServices, pluginFolders } from './load-plugins.ts'

/** One immutable generation of settings, providers and catalog. A call uses the one it began with to its end. */
export type Snapshot = {
  /** Number of the snapshot: 1 for the first of the process. */
  generation: number
  config: Config
  /** Providers by slug; switched-off ones are absent, unconfigured ones are present, with the settings that they miss. */
  providers: ReadonlyMap<string, Provider>
  /** Switched-off providers by slug, with the message for clients where their own settings do not explain it. */
  off: ReadonlyMap<string, string | undefined>
  catalog: Catalog
  /** Plugins in the order in which they are called. */
  plugins: readonly LoadedPlugin[]
  /** Instances of the plugins, however they are configured. */
  instances: readonly PluginInstance[]
  /** Unix milliseconds. */
  builtAt: number
  /** The files it was built from, so that the next build reads only what has changed. */
  sources: KnownSources
  /** Cached facts about files from earlier starts. */
  cache: FileCache
}

/** A snapshot when no file has an error, and all problems of the files. */
export type Built = { snapshot?: Snapshot; problems: Problem[] }

/** State after which a snapshot is built. */
export type After = {
  previous?: Snapshot | undefined
  known?: KnownSources
  cache?: FileCache
  texts?: Texts
  /** Services that plugins are given. */
  services?: PluginServices | undefined
}

/**
 * Builds a whole snapshot from a configuration file (chosen by `findConfig` when none is named): the `previous` one itself
 * if no file has changed. After a previous one, the examples of changed files must pass too; at the start of the process `check` has run them. Files
 * that are `known` with the same text are not parsed again, nor those that the cache has; with `texts` no file is read.
 */
export async function buildSnapshot(
  configPath: string | undefined,
  env: Environment,
  { previous, known = previous?.sources ?? new Map(), cache = previous?.cache ?? noCache, texts, services }: After = {},
): Promise<Built> {
  keepValidatorsIn(cache)
  const path = findConfig(configPath, env)
  const { config, source, problems } = await loadConfig(path, env, { known, cache, texts })
  if (!config) return { problems }
  const running = previous?.instances ?? []
  // At the start there are no calls, and each turn would go to the writing of the cache.
  const yieldToOthers = previous ? yieldBetween() : neverYield
  const reading = { config, source, env, known, cache, texts, running, services, yieldToOthers }
  const read = await readSources(reading)
  const isSameRead = read.problems.length === 0 && isSame(previous?.sources, byPath(read).set(path, source))
  if (previous && isSameRead && (await areUnchanged(running, { folders: pluginFolders(config.folders), texts })))
    return { snapshot: previous, problems: [] }
  const files = await loadFiles(reading, read)
  const found = [...problems, ...files.problems]
  if (previous && !hasErrors(found)) found.push(...(await proveFiles(files, known, yieldToOthers)))
  if (hasErrors(found)) {
    await closeAll(files.plugins.filter((instance) => !running.includes(instance)))
    return { problems: found }
  }
  const snapshot: Snapshot = Object.freeze({
    generation: (previous?.generation ?? 0) + 1,
    config,
    providers: new Map(files.providers.map(({ provider }) => [provider.slug, provider])),
    off: new Map([...files.off].map(([slug, { message }]) => [slug, message])),
    catalog: files.catalog,
    plugins: configured(files.plugins, config.plugins),
    instances: files.plugins,
    builtAt: Date.now(),
    sources: new Map([...files.sources, [path, source]]),
    cache,
  })
  return { snapshot, problems: found }
}

/** Checks whether these are the same files with the same texts. */
function isSame(before: KnownSources | undefined, after: KnownSources): boolean {
  return before?.size === after.size && [...after].every(([file, source]) => before.get(file) === source)
}

/** Returns the texts that a snapshot was built from, for another thread to build the same. */
export function textsOf({ sources, instances }: Pick<Snapshot, 'sources' | 'instances'>): Map<string, string> {
  const ofPlugins = instances.flatMap(({ files }) => [...files])
  return new Map([...[...sources].map(([file, { text }]): [string, string] => [file, text]), ...ofPlugins])
}

/** Runs the examples of all dialects and manifests but those whose files are among the `known` ones. */
export async function proveFiles(
  { dialects, providers }: Files,
  known: KnownSources = new Map(),
  giveTurn: YieldToOthers = neverYield,
): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const dialect of dialects) {
    await giveTurn()
    const { layer } = dialect
    if (known.get(layer.source.file) !== layer.source) {
      problems.push(...(await proveExamples(bareProvider(dialect), [layer])))
    }
  }
  for (const { provider, files, layers } of providers) {
    await giveTurn()
    const isKnown = files.every(({ file, text }) => known.get(file)?.text === text)
    if (layers && !isKnown) problems.push(...(await proveExamples(provider, layers)))
  }
  return problems
}
