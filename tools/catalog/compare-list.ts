import { isRetired, type ModelEntry } from '../../src/core/models/model.ts'
import { entryAt } from '../../src/core/models/price-times.ts'
import { type ComparedField, comparedFields, isPrice, type PublicList, type PublicModel } from './public-list.ts'

/** The models of one provider, and the names that public lists have for it where it is not its slug. */
export type ListedCatalog = {
  provider: string
  models: { readonly [model: string]: ModelEntry }
  names: readonly string[]
}

/** A field of a model in which the catalog and a list differ; `ours` is missing where the catalog does not say it. */
export type Difference = { provider: string; model: string; field: ComparedField; ours?: number; theirs: number }

/** `compared`: models that both have; `unknown`: those that only the list has; `unlisted`: those that only the catalog has. */
export type Comparison = {
  compared: number
  differences: Difference[]
  unknown: { provider: string; model: string }[]
  unlisted: { provider: string; model: string }[]
}

/** Compares the catalog with a list at a moment (Unix milliseconds): prices of the lowest tier, and limits. */
export function compareList(catalogs: readonly ListedCatalog[], list: PublicList, at: number): Comparison {
  const all: Comparison = { compared: 0, differences: [], unknown: [], unlisted: [] }
  const listed = Map.groupBy(list.models, ({ provider }) => provider)
  for (const { provider, models, names } of catalogs) {
    const theirs = new Map(names.flatMap((name) => listed.get(name) ?? []).map((one) => [one.model, one]))
    // The list does not know the provider.
    if (theirs.size === 0) continue
    const seen = new Set<string>()
    for (const [model, entry] of Object.entries(models)) {
      if (entry.is !== undefined || model === '*') continue
      const found = [model, ...(entry.aliases ?? [])].map((name) => theirs.get(name)).find((one) => one !== undefined)
      for (const name of [model, ...(entry.aliases ?? [])]) seen.add(name)
      // Lists keep models that providers have given up; they are not reported here.
      if (isRetired(entry, at)) continue
      if (!found) all.unlisted.push({ provider, model })
      else {
        all.compared++
        all.differences.push(...differencesOf({ provider, model }, entryAt(entry, at), found))
      }
    }
    for (const model of theirs.keys()) if (!seen.has(model)) all.unknown.push({ provider, model })
  }
  return all
}

function differencesOf(
  of: Pick<Difference, 'provider' | 'model'>,
  entry: ModelEntry,
  listed: PublicModel,
): Difference[] {
  return comparedFields.flatMap((field) => {
    const theirs = listed[field]
    const ours = listedValueOf(entry, field)
    if (theirs === undefined || isSame(ours, theirs) || (ours === undefined && theirs === 0)) return []
    return [{ ...of, field, theirs, ...(ours !== undefined && { ours }) }]
  })
}

function listedValueOf(entry: ModelEntry, field: ComparedField): number | undefined {
  if (field === 'context_window' || field === 'max_output_tokens') return entry[field]
  return entry.pricing?.[0]?.[field] ?? undefined
}

/** Lists have prices as floats, some of them divided. */
function isSame(ours: number | undefined, theirs: number): boolean {
  if (ours === undefined) return false
  return Math.abs(ours - theirs) <= Math.max(Math.abs(ours), Math.abs(theirs)) * 1e-6
}

/**
 * Checks whether a price of a list is more likely in another unit, or missing there, than changed: a tenth of ours or less, ten times as
 * much or more, or nothing.
 */
export function isLeap({ field, ours, theirs }: Pick<Difference, 'field' | 'ours' | 'theirs'>): boolean {
  return isPrice(field) && ours !== undefined && ours > 0 && (theirs <= ours / 10 || theirs >= ours * 10)
}
