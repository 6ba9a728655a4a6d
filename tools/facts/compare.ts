import { isRetired, type ModelEntry } from '../../src/core/models/model.ts'
import { entryAt } from '../../src/core/models/price-times.ts'
import {
  type FactKind,
  type FactName,
  type FactValue,
  factNames,
  isMultiplier,
  kindOf,
  type ListedModel,
} from './listed.ts'
import type { List } from './lists.ts'
import { decide, isCurrent, isSame, type Statement, type Verdict } from './vote.ts'

/** The models of one provider, and its names in public lists. */
export type ComparedCatalog = {
  provider: string
  models: { readonly [model: string]: ModelEntry }
  listed_as?: { readonly [list: string]: string | readonly string[] }
}

/** A fact in which the catalog and the lists differ; `ours` is undefined where the catalog does not state it. */
export type Disagreement = Omit<Verdict, 'kind'> & {
  provider: string
  model: string
  fact: FactName
  verdict: Exclude<Verdict['kind'], 'agree'>
  ours: FactValue | undefined
  /** The page against which our entry was checked. */
  verified?: ModelEntry['verified']
}

/** A model that lists have and the catalog has not: its id, what it does, and the origins that list it. */
export type NewModel = { provider: string; model: string; api?: string; origins: string[]; pages: string[] }

/** The result of a comparison; `agreed` counts facts by kind. */
export type Comparison = {
  agreed: { [kind in FactKind]?: number }
  disagreements: Disagreement[]
  newModels: NewModel[]
}

/** Value of `shutdown` for a model that a list which drops retired ones still has. */
export const notRetired = 'none'

/** Compares the catalog with public lists on a day, such as `2026-11-28`. */
export function compare(catalogs: readonly ComparedCatalog[], lists: readonly List[], day: string): Comparison {
  const result: Comparison = { agreed: {}, disagreements: [], newModels: [] }
  const newest = lists.reduce((latest, { as_of: asOf }) => (asOf > latest ? asOf : latest), '')
  for (const catalog of catalogs) {
    const byList = lists.map((list) => ({ list, models: modelsOf(list, catalog) }))
    for (const [model, entry] of Object.entries(catalog.models)) {
      if (entry.is !== undefined || model === '*') continue
      for (const found of disagreementsOf(model, entry, { byList, newest, day })) {
        const { kind, fact, ...rest } = found
        if (kind === 'agree') result.agreed[kindOf(fact)] = (result.agreed[kindOf(fact)] ?? 0) + 1
        else result.disagreements.push({ provider: catalog.provider, model, fact, verdict: kind, ...rest })
      }
    }
    const current = byList.filter(({ list }) => isCurrent(list.as_of, newest))
    result.newModels.push(...newModelsOf(catalog, current, day))
  }
  return result
}

type ListModels = { list: List; models: ReadonlyMap<string, ListedModel> }
type Compared = { byList: readonly ListModels[]; newest: string; day: string }
type Found = Verdict & Pick<Disagreement, 'fact' | 'ours' | 'verified'>

/** Decides about every fact of an entry that a list states. Of a retired model only its retirement counts: lists no longer maintain it. */
function disagreementsOf(model: string, entry: ModelEntry, { byList, newest, day }: Compared): Found[] {
  const at = Date.parse(`${day}T12:00:00Z`)
  const isPast = isRetired(entry, at)
  const current = entryAt(entry, at)
  const listed = byList.flatMap(({ list, models }) => {
    const found = [model, ...(entry.aliases ?? [])].map((id) => models.get(id)).find((one) => one !== undefined)
    return found ? [{ list, model: found }] : []
  })
  return factNames.flatMap((fact): Found[] => {
    const ours = ourFact(current, fact)
    if (!isCompared(fact, entry, ours) || (isPast && fact !== 'shutdown')) return []
    const statements = listed.flatMap(({ list, model: theirs }) => statement(list, theirs, fact, isPast))
    const verdict = decide(fact, ours, statements, newest)
    if (!verdict) return []
    const kind = isExplained(fact, current, verdict) ? 'agree' : verdict.kind
    return [{ ...verdict, kind, fact, ours, ...(entry.verified && { verified: entry.verified }) }]
  })
}

/** The models of a provider in a list, by id. The first one of several with an id counts. */
function modelsOf(list: List, { provider, listed_as: listedAs }: ComparedCatalog): Map<string, ListedModel> {
  const own = list.names?.[provider] ?? (list.listed_as && listedAs?.[list.listed_as]) ?? provider
  const names = new Set([own].flat())
  const models = new Map<string, ListedModel>()
  for (const model of list.models) {
    if (!names.has(model.provider)) continue
    for (const id of model.ids) if (!models.has(id)) models.set(id, model)
  }
  return models
}

function statement(list: List, listed: ListedModel, fact: FactName, isPast: boolean): Statement[] {
  const value = listed.facts[fact] ?? (fact === 'shutdown' && isPast && list.prunes ? notRetired : undefined)
  if (value === undefined) return []
  const page = fact === 'shutdown' ? listed.retirementPage : listed.page
  return [{ list: list.name, origin: list.origin, asOf: list.as_of, value, ...(page !== undefined && { page }) }]
}

/** Returns what an entry states, in the terms of lists; undefined for what is free or not stated. */
export function ourFact(entry: ModelEntry, fact: FactName): FactValue | undefined {
  if (isMultiplier(fact)) return entry.multipliers?.[fact]
  if (kindOf(fact) !== 'price') return entry[fact as 'context_window' | 'supports_vision' | 'shutdown']
  const tier = entry.pricing?.[0]
  const own = tier?.[fact as 'input_price'] ?? entry.other_prices?.[fact]
  // A write without a time has the price of one for five minutes.
  const price = own ?? (fact === 'caching_price' ? tier?.caching_5m_price : undefined)
  return price || undefined
}

/** Facts that are compared: limits and abilities only where models of this API have them, and abilities only where we state them. */
function isCompared(fact: FactName, { api }: ModelEntry, ours: FactValue | undefined): boolean {
  if (fact === 'context_window') return api === 'chat' || api === 'embedding' || api === 'completion'
  if (fact === 'max_output_tokens') return api === 'chat' || api === 'completion'
  // Of a model that makes images or speech some lists give the price of its text, some that of its product.
  if (fact === 'output_price') return api === 'chat' || api === 'completion'
  return kindOf(fact) !== 'ability' || (api === 'chat' && ours !== undefined)
}

/** Differences in form: prices that are those of input anyway, factors of batches that are not called, contexts without the output. */
function isExplained(fact: FactName, entry: ModelEntry, { value }: Verdict): boolean {
  if (typeof value !== 'number') return false
  const { pricing: [tier] = [], context_window: context = 0, max_output_tokens: output = 0 } = entry
  if (fact === 'batch') return entry.multipliers?.batch === undefined
  if (fact === 'context_window') return isSame(fact, context, value + output)
  const isAsInput = ['caching_price', 'cached_price', 'input_audio_token', 'input_image_token'].includes(fact)
  return isAsInput && ourFact(entry, fact) === undefined && isSame(fact, tier?.input_price ?? 0, value)
}

function newModelsOf({ provider, models }: ComparedCatalog, current: readonly ListModels[], day: string): NewModel[] {
  const ours = new Set(Object.entries(models).flatMap(([model, { aliases = [] }]) => [model, ...aliases]))
  const unknown = current.flatMap(({ list, models: theirs }) =>
    [...new Set(theirs.values())].flatMap((model) =>
      model.ids.some((id) => ours.has(id)) ? [] : [{ list, origin: list.origin, model }],
    ),
  )
  const byId = Map.groupBy(unknown, ({ model }) => model.ids[0])
  return [...byId].flatMap(([model, found]) => {
    const { facts, api } = merged(found.map((one) => one.model))
    const isPast = typeof facts.shutdown === 'string' && facts.shutdown <= day
    if (isPast || found.every(({ list }) => list.history)) return []
    const origins = [...new Set(found.map(({ origin }) => origin))]
    const pages = [...new Set(found.flatMap((one) => one.model.page ?? []))]
    return [{ provider, model, origins, pages, ...(api !== undefined && { api }) }]
  })
}

/** Joins what lists state about a model: the first one counts. */
function merged(models: readonly ListedModel[]): Pick<ListedModel, 'facts' | 'api'> {
  const api = models.find((one) => one.api !== undefined)?.api
  return {
    facts: Object.assign({}, ...models.toReversed().map(({ facts }) => facts)),
    ...(api !== undefined && { api }),
  }
}
