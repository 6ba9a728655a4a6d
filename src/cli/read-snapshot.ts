import { join } from 'node:path'
import type { CatalogedModel } from '../catalog/catalog.ts'
import { canServe } from '../manifest/operation.ts'
import { type FileCache, noCache, openFileCache } from '../manifest/read/file-cache.ts'
import { servedBy } from '../manifest/target.ts'
import { closeAll } from '../plugin/instances.ts'
import { cacheFolder } from '../runtime/cache-folder.js'
import { type Built, buildSnapshot, type Snapshot } from '../snapshot/snapshot.ts'
import { locateConfig } from './read-config.ts'

/**
 * Returns the snapshot of a configuration for a command that calls no model: its plugins have ended. `defaults` are variables that neither the
 * environment nor the `.env` file beside the configuration sets.
 */
export async function readSnapshot(
  configPath: string | undefined,
  defaults: Readonly<NodeJS.ProcessEnv> = {},
): Promise<Built> {
  const path = locateConfig(configPath)
  const env = { ...defaults, ...process.env }
  const cache = earlierFiles(env)
  const built = await buildSnapshot(path, env, { cache })
  await cache.written()
  await closeAll(built.snapshot?.instances ?? [])
  return built
}

/** Opens the cache of facts that earlier starts and commands found out about files. */
export function earlierFiles(env: NodeJS.ProcessEnv): FileCache {
  const folder = cacheFolder(env)
  return folder === undefined ? noCache : openFileCache(join(folder, 'files'))
}

/** Returns the models of the catalog that their providers have an endpoint for. */
export function servedModels({ catalog, providers }: Pick<Snapshot, 'catalog' | 'providers'>): CatalogedModel[] {
  return catalog.list().filter(({ provider: slug, model, entry }) => {
    const provider = providers.get(slug)
    return provider !== undefined && canServe(servedBy(provider, entry.is ?? model), entry)
  })
}
