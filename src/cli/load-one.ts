import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import { readEntries, type WrittenEntries } from '../catalog/read-list.ts'
import { isObject } from '../core/json.ts'
import type { ModelEntry } from '../core/models/model.ts'
import { type Problem, readingFailure } from '../manifest/check/problem.ts'
import type { Extensions, Provider } from '../manifest/provider.ts'
import { dialectsIn } from '../manifest/read/base-layers.ts'
import { bareProvider, type Dialect, loadDialect } from '../manifest/read/dialect.ts'
import type { Environment } from '../manifest/read/environment.ts'
import { readSourceFile } from '../manifest/read/folder.ts'
import type { Layer } from '../manifest/read/layer.ts'
import { type LoadedProvider, loadManifest } from '../manifest/read/manifest.ts'
import { readSource, type Source } from '../manifest/read/source.ts'
import type { OwnFunctions } from '../mapping/library.ts'
import type { Mapping } from '../mapping/mapping.ts'
import { closeAll, extensionsOf } from '../plugin/instances.ts'
import type { Config } from '../snapshot/config.ts'
import { type Folders, nameOf, pathsOf, readFolders } from '../snapshot/folders.ts'
import { credentialNames, dialectFolders, loadCatalog } from '../snapshot/load-files.ts'
import { pluginsOf } from '../snapshot/load-plugins.ts'
import { stateOf } from '../snapshot/provider-state.ts'
import { relativePath } from './command.ts'

/** One loaded manifest or dialect, with the problems of its file and of the files it builds on. */
type LoadedOne = { loaded?: Pick<LoadedProvider, 'provider' | 'layers'>; problems: Problem[] }

/** Finds the file of a manifest: a path, the slug of a provider, or the name of a dialect. */
export function findManifest(name: string, { folders }: Config): string | undefined {
  const places = [...pathsOf(folders.providers), ...dialectFolders(folders)]
  const inFolders = places.map((folder) => join(folder, `${name}.yaml`))
  return [resolve(name), ...(/[\\/]/.test(name) ? [] : inFolders)].find(
    (path) => path.endsWith('.yaml') && existsSync(path),
  )
}

/** Loads a manifest, or a dialect as a provider that consists of nothing else. */
export async function loadOne(source: Source, config: Config, env: Environment): Promise<LoadedOne> {
  const extensions = await extensionsFor(config, env)
  const { functions } = extensions
  if (isDialect(source)) {
    const { dialect, problems } = loadDialect(source, functions)
    return { problems, ...(dialect && { loaded: { provider: bareProvider(dialect), layers: [dialect.layer] } }) }
  }
  const { dialects, problems } = await dialectsFor(source, config, functions)
  const manifests = await manifestsFor(source, config)
  const problemAt: Source['problem'] = (_, message) => source.problem([], `in ${config.path}: ${message}`)
  const { settings, off } = stateOf(source, {
    config,
    source: { problem: problemAt },
    manifests,
    shadowed: new Map(),
    env,
  })
  const read = loadManifest(source, { dialects, env, manifests, extensions, ...(settings && { settings }) })
  return { ...read, problems: [...problems, ...(off?.problem ? [off.problem] : []), ...read.problems] }
}

/** Returns the extensions of the plugins that can be set up; errors of the others are reported where the configuration is checked. */
async function extensionsFor(config: Config, env: Environment): Promise<Extensions> {
  const source = readSource(config.path, '')
  const credentials = credentialNames([], config.providers)
  const { instances } = await pluginsOf(config, { source, env: { ...env }, credentials })
  await closeAll(instances)
  return extensionsOf(instances, config.plugins, source).extensions
}

/** Checks whether a file is a dialect: by its folder, else by its fields. */
export function isDialect({ file, value }: Source): boolean {
  if (basename(dirname(file)) === 'dialects') return true
  return isObject(value) && value.dialect !== undefined && value.slug === undefined && value.base_url === undefined
}

/** Returns the manifests of the configuration and those beside this one, by slug. */
async function manifestsFor({ file }: Source, { folders }: Config): Promise<Map<string, Source>> {
  const { sources } = await readFolders([...new Set([dirname(file), ...pathsOf(folders.providers)])])
  return new Map(sources.map((one) => [nameOf(one), one]))
}

/** Returns the dialects of the project, of the configuration and beside a manifest; only those it names are read. */
async function dialectsFor(manifest: Source, { folders }: Config, functions?: OwnFunctions) {
  const named = dialectsIn(manifest.value)
  const beside = [join(dirname(manifest.file), 'dialects'), ...dialectFolders(folders)]
  const dialects = new Map<string, Dialect | 'unusable'>()
  const problems: Problem[] = []
  const { sources } = await readFolders([...new Set(beside)])
  for (const source of sources) {
    const name = nameOf(source)
    const read = named.has(name) ? loadDialect(source, functions) : undefined
    problems.push(...(read?.problems ?? []))
    dialects.set(name, read?.dialect ?? 'unusable')
  }
  return { dialects, problems }
}

/** Returns the entry of a model, merged from the catalog, the manifest and the settings. */
export async function entryOf(provider: Provider, model: string, config: Config): Promise<ModelEntry | undefined> {
  return (await catalogOf(provider, config)).find(provider.slug, model)
}

/** Returns all models of a provider with their entries, merged likewise. */
export async function entriesOf(provider: Provider, config: Config): Promise<[model: string, entry: ModelEntry][]> {
  return (await catalogOf(provider, config)).list().map(({ model, entry }) => [model, entry])
}

async function catalogOf({ slug, models, modelsOf }: Provider, config: Config): Promise<Catalog> {
  const shared = modelsOf === undefined ? [] : await modelsIn(modelsOf, config)
  const own = await modelsIn(slug, config, models)
  return createCatalog([...shared, ...own].map((known) => ({ provider: slug, models: known })))
}

/** Returns the models that catalog, manifest and settings list for a slug, in this order. */
async function modelsIn(slug: string, { folders, providers }: Config, written?: Models): Promise<Models[]> {
  const source = await fileIn(folders.catalog, slug)
  const { list } = source ? loadCatalog(source) : {}
  const manifest = written ? undefined : await fileIn(folders.providers, slug)
  const inManifest = written ?? readEntries((manifest?.value as { models?: WrittenEntries } | undefined)?.models ?? {})
  return [list?.models ?? {}, inManifest, readEntries(providers[slug]?.models ?? {})]
}

type Models = { readonly [model: string]: ModelEntry }

/** Reads the first file of a name in folders. */
async function fileIn(folders: Folders['catalog'], name: string): Promise<Source | undefined> {
  const read = await Promise.all(pathsOf(folders).map((folder) => readSourceFile(join(folder, `${name}.yaml`))))
  return read.find((source) => source !== undefined)
}

/** Reads one YAML or JSON file. Throws an Error that names the file and the reason. */
export async function readInput(file: string): Promise<Source> {
  const path = resolve(file)
  try {
    return readSource(path, await readFile(path, 'utf8'))
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT'
    throw new Error(isGone ? `There is no file ${file}.` : `${file} cannot be read: ${readingFailure(error)}`)
  }
}

/** A mapping and its position, which is looked up when it is asked for. `name` is its path in the file. */
export type PlacedMapping = { file: string; name: string; mapping: Mapping; place(): { line: number; column: number } }

/** Returns the mappings of these files, including those of variants, each once and in the order of the files. */
export function mappingsIn(layers: readonly Layer[]): PlacedMapping[] {
  const found = new Map<Mapping, PlacedMapping>()
  for (const { source, places, variants } of layers) {
    for (const [mapping, path] of places) {
      found.set(mapping, { file: source.file, name: path.join('.'), mapping, place: () => source.at(path) })
    }
    // The layers of a variant are in other files, or in this one.
    for (const placed of mappingsIn(variants.flatMap((variant) => variant.layers.slice(-1)))) {
      found.set(placed.mapping, placed)
    }
  }
  return [...found.values()]
}

/** Reports whether a mapping was compiled to JavaScript and, when not, the construct that prevented it. */
export function treatmentOf({ compiled, fallback }: Mapping): { compiled: boolean; construct?: string } {
  return { compiled, ...(fallback !== undefined && { construct: fallback }) }
}

/**
 * Prints the JavaScript that a mapping is compiled to, or why there is none, below its place and URL. With these lines in front, line
 * numbers are those of stack traces.
 */
export function printedMapping({ file, name, mapping, place }: PlacedMapping): string {
  const { line, column } = place()
  const head = `// ${relativePath(file)}:${line}:${column}: ${name}`
  if (!mapping.compiled) return `${head}\n${mapping.explain()}\n`
  return `${head}\n// ${mapping.url}\n"use strict"\n${mapping.explain()}\n`
}

/** Returns a warning for each of these mappings, which are not compiled. */
export function interpretedWarnings(interpreted: readonly PlacedMapping[]): Problem[] {
  return interpreted.map(({ file, name, mapping, place }) => {
    const message = `the mapping \`${name}\` is interpreted, which is about a hundred times slower: ${mapping.fallback} is not compiled`
    return { file, ...place(), message, severity: 'warning' }
  })
}
