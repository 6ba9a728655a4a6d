import { basename, join } from 'node:path'
import type { Catalog, CatalogedModel } from '../catalog/catalog.ts'
import type { JsonObject } from '../core/json.ts'
import { type Operation, operations } from '../core/operation.ts'
import { withoutKeys } from '../core/secrets.ts'
import type { Problem } from '../manifest/check/problem.ts'
import { endpointFor } from '../manifest/operation.ts'
import type { Provider } from '../manifest/provider.ts'
import { servedBy } from '../manifest/target.ts'
import type { Trouble } from '../routing/health/health.ts'
import { shortPath } from '../snapshot/short-path.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { troubleEntry } from './health.ts'

/** A provider of the files: the one in use, where there is one, and what is known of it besides. */
export type KnownProvider = {
  slug: string
  enabled: boolean
  provider?: Provider
  /** Its manifest. */
  file: string
  models: readonly CatalogedModel[]
  health: readonly Trouble[]
  /** Of its manifest and of its catalog file. */
  problems: readonly Problem[]
}

/** The providers that there are manifests of, by slug, and the problems of all other files. */
export function knownProviders(
  snapshot: Snapshot,
  problems: readonly Problem[],
  troubled: readonly Trouble[],
): { providers: KnownProvider[]; others: Problem[] } {
  const { config, providers, sources, catalog } = snapshot
  const { folders } = config
  const slugOf = (file: string) =>
    [folders.providers, folders.catalog].some((folder) => file === join(folder, basename(file)))
      ? basename(file, '.yaml')
      : undefined
  const manifests = [...sources.keys(), ...problems.map(({ file }) => file)].filter(
    (file) => file === join(folders.providers, basename(file)) && file.endsWith('.yaml'),
  )
  const slugs = new Set(manifests.map((file) => basename(file, '.yaml')))
  const modelsOf = Map.groupBy(catalog.list(), ({ provider }) => provider)
  const problemsOf = Map.groupBy(problems, ({ file }) => slugOf(file))
  const known = [...slugs].sort().map((slug): KnownProvider => {
    const provider = providers.get(slug)
    return {
      slug,
      enabled: config.providers[slug]?.enabled !== false,
      ...(provider && { provider }),
      file: join(folders.providers, `${slug}.yaml`),
      models: modelsOf.get(slug) ?? [],
      health: troubled.filter(({ name }) => name === slug || name.startsWith(`${slug}/`)),
      problems: problemsOf.get(slug) ?? [],
    }
  })
  return { providers: known, others: problems.filter(({ file }) => !slugs.has(slugOf(file) ?? '')) }
}

/** A provider in the API. One that is switched off, or was never without problems, has only what its files tell. */
export function providerEntry(
  known: KnownProvider,
  { config, catalog }: Pick<Snapshot, 'config' | 'catalog'>,
): JsonObject {
  const { slug, enabled, provider, file, models, health, problems } = known
  const missing = provider?.missing ?? []
  return {
    slug,
    name: provider?.name ?? slug,
    enabled,
    loaded: provider !== undefined,
    configured: provider !== undefined && missing.length === 0,
    missing,
    models: models.length,
    operations: provider ? operationsOf(provider, models, catalog) : [],
    ...(provider?.dialect !== undefined && { dialect: provider.dialect }),
    health: health.map(troubleEntry),
    problems: problems.map((problem) => problemEntry(problem, config.path)),
    origin: shortPath(file, config.path),
  }
}

/** A problem in the API: `file:line:column`, and what is wrong. */
export function problemEntry({ file, line, column, message, severity }: Problem, config: string): JsonObject {
  return { place: `${shortPath(file, config)}:${line}:${column}`, line, message: withoutKeys(message), severity }
}

/** What providers can be asked for: with their models, or with any name where they take all. Found once for each generation. */
const askedFor = new WeakMap<Catalog, Map<Provider, string[]>>()

function operationsOf(provider: Provider, models: readonly CatalogedModel[], catalog: Catalog): string[] {
  const ofAll = askedFor.get(catalog) ?? new Map<Provider, string[]>()
  const known = ofAll.get(provider) ?? findOperations(provider, models)
  askedFor.set(catalog, ofAll.set(provider, known))
  return known
}

function findOperations(provider: Provider, models: readonly CatalogedModel[]): string[] {
  const names = Object.keys(operations) as Operation[]
  const found = models.flatMap(({ model, entry }) => {
    const served = servedBy(provider, entry.is ?? model)
    const isChat = served.chat !== undefined && [entry.api, ...(entry.also ?? [])].includes('chat')
    return [...(isChat ? ['chat'] : []), ...names.filter((name) => endpointFor(served, name, entry))]
  })
  const any = [...(provider.chat ? ['chat'] : []), ...Object.keys(provider.operations ?? {})]
  return [...new Set(provider.unknownModels === 'pass' ? any : found)].sort()
}
