import type { ModelEntry } from '../core/models/model.ts'
import { comparableId, exactIds, idInside, type ModelIds } from './model-ids.ts'

/** The known models of all providers. */
export type Catalog = {
  /** A model by the provider's own id, by one of its aliases, or by another id that the provider takes for it. */
  find(provider: string, model: string): ModelEntry | undefined
  /** Returns the same as `find`, together with the purpose of its ids. */
  identify(provider: string, model: string): KnownModel | undefined
  /** Returns every model once, in the order of the files, retired ones included. */
  list(): readonly CatalogedModel[]
}

/** A model and its provider. */
export type CatalogedModel = { provider: string; model: string; entry: ModelEntry }

/** A model that was found by an id. */
export type KnownModel = {
  /** The id that the provider is sent. */
  model: string
  /** The id under which the catalog lists it: the same for all ids of one model. */
  name: string
  /** The id by which facts about its family are found: that of the model which a deployment is. */
  is: string
  entry: ModelEntry
}

/** The models of one provider by id. */
export type ModelList = { provider: string; models: { readonly [model: string]: ModelEntry } }

/** The name of an entry for every model of a provider that has none of its own. */
export const anyModel = '*'

/** Joins the lists of all providers; of two entries of the same model the later one wins, field by field. */
export function createCatalog(
  lists: Iterable<ModelList>,
  modelIds: ReadonlyMap<string, ModelIds> = new Map(),
): Catalog {
  const byProvider = new Map<string, Map<string, ModelEntry>>()
  for (const { provider, models } of lists) {
    const known = byProvider.get(provider) ?? new Map<string, ModelEntry>()
    byProvider.set(provider, known)
    for (const [model, entry] of Object.entries(models)) known.set(model, mergeEntries(known.get(model), entry))
  }
  const readers = new Map<string, (model: string) => KnownModel | undefined>()
  const all: CatalogedModel[] = []
  for (const [provider, models] of byProvider) {
    const ids = modelIds.get(provider) ?? exactIds
    const deployed = withDeployments(models, ids)
    readers.set(provider, identifier(deployed, ids))
    for (const [model, entry] of deployed) {
      if (model !== anyModel) all.push(Object.freeze({ provider, model, entry }))
    }
  }
  const identify: Catalog['identify'] = (provider, model) => readers.get(provider)?.(model)
  return { identify, find: (provider, model) => identify(provider, model)?.entry, list: () => all }
}

/** Merges two entries: fields of the later one win. Price changes of the earlier one belong to its prices, and go with them. */
export function mergeEntries(earlier: Partial<ModelEntry> | undefined, later: Partial<ModelEntry>): ModelEntry {
  if (!earlier) return later as ModelEntry
  const { price_changes, ...fields } = earlier
  const changes = price_changes && !later.pricing ? { price_changes } : {}
  return { ...fields, ...changes, ...later } as ModelEntry
}

/** The models, those with `is` with the facts of the model that they are. */
function withDeployments(models: ReadonlyMap<string, ModelEntry>, ids: ModelIds): ReadonlyMap<string, ModelEntry> {
  const identify = identifier(models, ids)
  return new Map(
    [...models].map(([model, entry]) => {
      const base = entry.is === undefined ? undefined : identify(entry.is)
      if (!base) return [model, entry]
      const { aliases: _aliases, ...facts } = base.entry
      return [model, { ...mergeEntries(facts, entry), is: base.is }]
    }),
  )
}

/** A function that finds the models of one provider. */
function identifier(models: ReadonlyMap<string, ModelEntry>, ids: ModelIds): (model: string) => KnownModel | undefined {
  const exact = new Map<string, KnownModel>()
  const comparable = new Map<string, KnownModel>()
  const add = (id: string, name: string, entry: ModelEntry) => {
    const known: KnownModel = Object.freeze({ model: id, name, is: entry.is ?? id, entry })
    exact.set(id, known)
    const text = comparableId(id, ids)
    if (!comparable.has(text)) comparable.set(text, known)
  }
  for (const [alias, name] of ownersOf(models)) add(alias, name, models.get(name) as ModelEntry)
  for (const [model, entry] of models) if (model !== anyModel) add(model, model, entry)
  const any = models.get(anyModel)
  const listed = (id: string) => exact.get(id) ?? comparable.get(comparableId(id, ids))
  return (id) => {
    const known = listed(id)
    if (known) return known
    const inside = idInside(id, ids)
    const found = inside === undefined ? undefined : listed(inside)
    // Sent as it was written: the form may contain more than the model, such as its region.
    if (found) return { ...found, model: id }
    return any && { model: id, name: id, is: any.is ?? id, entry: any }
  }
}

/** The models by their aliases. */
function ownersOf(models: ReadonlyMap<string, ModelEntry>): Map<string, string> {
  const owners = new Map<string, string>()
  for (const [model, { aliases = [] }] of models) for (const alias of aliases) owners.set(alias, model)
  return owners
}
