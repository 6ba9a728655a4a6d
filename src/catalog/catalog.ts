import type { ModelEntry } from '../core/model.ts'

/** The known models of all providers. */
export type Catalog = {
  /** A model by the provider's own id, or by one of its aliases. */
  find(provider: string, model: string): ModelEntry | undefined
  /** Every model once, in the order of the files. */
  list(): readonly CatalogedModel[]
}

/** A model and its provider. */
export type CatalogedModel = { provider: string; model: string; entry: ModelEntry }

/** The models of one provider by id. */
export type ModelList = { provider: string; models: { readonly [model: string]: ModelEntry } }

/** Joins the lists of all providers; of two entries of the same model the later one wins, field by field. */
export function createCatalog(lists: Iterable<ModelList>): Catalog {
  const byProvider = new Map<string, Map<string, ModelEntry>>()
  for (const { provider, models } of lists) {
    const known = byProvider.get(provider) ?? new Map<string, ModelEntry>()
    byProvider.set(provider, known)
    for (const [model, entry] of Object.entries(models)) known.set(model, mergeEntries(known.get(model), entry))
  }
  const all = [...byProvider].flatMap(([provider, models]) =>
    [...models].map(([model, entry]) => Object.freeze({ provider, model, entry })),
  )
  const aliases = new Map([...byProvider].map(([provider, models]) => [provider, aliasesOf(models)]))
  return {
    find: (provider, model) => byProvider.get(provider)?.get(model) ?? aliases.get(provider)?.get(model),
    list: () => all,
  }
}

/** Merges two entries: fields of the later one win. Price changes of the earlier one belong to its prices, and go with them. */
export function mergeEntries(earlier: Partial<ModelEntry> | undefined, later: Partial<ModelEntry>): ModelEntry {
  if (!earlier) return later as ModelEntry
  const { price_changes, ...fields } = earlier
  const changes = price_changes && !later.pricing ? { price_changes } : {}
  return { ...fields, ...changes, ...later } as ModelEntry
}

function aliasesOf(models: ReadonlyMap<string, ModelEntry>): Map<string, ModelEntry> {
  const aliases = new Map<string, ModelEntry>()
  for (const entry of models.values()) for (const alias of entry.aliases ?? []) aliases.set(alias, entry)
  return aliases
}
