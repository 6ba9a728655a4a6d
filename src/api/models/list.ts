import type { Json, JsonObject } from '../../core/json.ts'
import { abilities, chatFacts, modalFacts } from '../../core/models/model.ts'
import { ascending, billedTier, type Tier } from '../../core/models/tier.ts'

/** The catalog fields of a model that a list shows. */
export type ModelFacts = { api: string; created?: number; updated?: number; pricing?: readonly Tier[] } & {
  [name in (typeof listedFacts)[number] | (typeof factsOfOthers)[number]]?: Json
}

/** A model by the id that clients send; `isName` when that is an alias or a policy. */
export type NamedModel = { id: string; entry: ModelFacts; isName?: boolean }

/**
 * Which models a list contains (all modalities when `api` is missing), whether it includes aliases and policies (it does
 * by default), and whether each entry also has flat prices, or each that is billed by the token (`billed`).
 */
export type ListForm = { api?: string; names?: boolean; flatPrices?: boolean | 'billed' }

/** The body of a model list, sorted by id: `{object: 'list', data: [model entry]}`. */
export function modelList(
  models: Iterable<NamedModel>,
  { api, names = true, flatPrices = false }: ListForm = {},
): JsonObject {
  const data = [...models]
    .filter(({ entry, isName }) => (api === undefined || entry.api === api) && (names || !isName))
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .map(({ id, entry }) => modelEntry(id, entry, flatPrices))
  return { object: 'list', data }
}

/**
 * One model as clients see it. Prices are in USD per token, with the gaps of the catalog filled as they are billed; flat
 * prices are those of the lowest tier, and 0 where nothing is billed by the token. Models of other APIs than chat have the
 * prices of other units by their names, and what they take and give. Unknown times are 0.
 */
export function modelEntry(id: string, facts: ModelFacts, flatPrices: ListForm['flatPrices'] = false): JsonObject {
  const created = facts.created ?? 0
  const tiers = ascending(facts.pricing).map(billedTier)
  const entry: JsonObject = {
    api: facts.api,
    id,
    object: 'model',
    created,
    updated: facts.updated ?? created,
    owned_by: 'system',
    ...((flatPrices === 'billed' ? tiers.length > 0 : flatPrices) && flat(tiers)),
    pricing: facts.api === 'decision' ? decisionPrices(tiers) : tiers,
  }
  const listed = { ...assumed, description: id, ...(facts.api === 'chat' && assumedOfChat(id)), ...facts }
  const names = facts.api === 'chat' ? listedFacts : [...factsOfOthers, ...listedFacts]
  for (const name of names) if (listed[name] !== undefined) entry[name] = listed[name]
  return entry
}

/** What is listed where nobody states it: what a careful reader has to assume. */
const assumed: Omit<ModelFacts, 'api'> = {
  data_retention: true,
  data_retention_days: 0,
  data_used_for_training: true,
  privacy_comments: 'Not stated.',
  geolocation: 'global',
}

function assumedOfChat(id: string) {
  return { open_weights: false, model_lab: 'unknown', model_canonical_name: id.slice(id.indexOf('/') + 1) }
}

const listedFacts = [...chatFacts, 'modalities', ...abilities, 'shutdown', 'successor', 'snapshot'] as const

const factsOfOthers = ['other_prices', 'image_prices', ...modalFacts] as const

function flat([lowest = nothingBilled]: ReturnType<typeof billedTier>[]): JsonObject {
  const { input_price, caching_price, cached_price, output_price } = lowest
  return { input_price, caching_price, cached_price, output_price }
}

function decisionPrices([lowest = nothingBilled]: ReturnType<typeof billedTier>[]): JsonObject {
  return { input: lowest.input_price, output: lowest.output_price }
}

const nothingBilled = billedTier({ prompt_tokens_threshold: 0 })
