import type { CatalogedModel } from '../catalog/catalog.ts'
import { canServe } from '../manifest/operation.ts'
import { servedBy } from '../manifest/target.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'

/** The models of the catalog that their providers have an endpoint for. */
export function servedModels({ catalog, providers }: Pick<Snapshot, 'catalog' | 'providers'>): CatalogedModel[] {
  return catalog.list().filter(({ provider: slug, model, entry }) => {
    const provider = providers.get(slug)
    return provider !== undefined && canServe(servedBy(provider, entry.is ?? model), entry)
  })
}
