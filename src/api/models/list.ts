import { RouterError } from '../../core/errors.ts'
import type { Json, JsonObject } from '../../core/json.ts'
import { abilities, ascending, billedTier, chatFacts, modalFacts, type Tier } from '../../core/models/model.ts'

/** The catalog fields of a model that a list shows. */
type ModelFacts = { api: string; created?: number; updated?: number; pricing?: readonly Tier[] } & {
  [name in (typeof listedFacts)[number] | (typeof factsOfOthers)[number]]?: Json
}

/** A model by the id that clients send; `isName` when that is an alias or a policy. */
type NamedModel = { id: string; entry: ModelFacts; isName?: boolean }

/**
 * Form of a list: the models it contains (all modalities when `api` is missing), whether it includes aliases and policies (it does by
 * default), and whether each entry also has flat prices, or each that is billed by the token (`billed`).
 */
export type ListForm = { api?: string; names?: boolean; flatPrices?: boolean | 'billed' }

/** Returns the models that a list contains, sorted by id. */
export function listedIn<Model extends NamedModel>(
  models: Iterable<Model>,
  { api, names = true }: Pick<ListForm, 'api' | 'names'> = {},
): Model[] {
  return [...models]
    .filter(({ entry, isName }) => (api === undefined || entry.api === api) && (names || !isName))
    .sort((one, other) => (one.id < other.id ? -1 : 1))
}

/**
 * Writes one model as clients see it. Prices are in USD per token, with the gaps of the catalog filled as they are billed; flat prices
 * are those of the lowest tier, and 0 where nothing is billed by the token. Models of other APIs than chat have the prices of other units
 * by their names, and what they take and give. Unknown times are 0.
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

/** Facts listed where nobody states them: the ones a careful reader has to assume. */
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

/** The query parameters of a page. */
type PageQuery = { readonly [name: string]: unknown }

const defaultLimit = 20
const maxLimit = 1_000

/**
 * Chat models in the form of the Messages API, newest first: `{data, has_more, first_id, last_id}`. `limit` is 1 to
 * 1,000 (20 by default); `after_id` and `before_id` name the model where the page begins or ends. Throws RouterError 400.
 */
export function modelPage(models: Iterable<NamedModel>, query: PageQuery): JsonObject {
  const all = [...models].filter(({ entry }) => entry.api === 'chat').sort(newestFirst)
  const limit = limitOf(query.limit)
  const after = positionOf(all, 'after_id', query)
  const before = positionOf(all, 'before_id', query)
  const begin = before === undefined ? (after ?? -1) + 1 : Math.max(0, before - limit, (after ?? -1) + 1)
  const end = Math.min(begin + limit, before ?? all.length)
  const data = all.slice(begin, end).map(({ id, entry }) => pagedModel(id, entry))
  return {
    data,
    has_more: before === undefined ? end < all.length : begin > (after ?? -1) + 1,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

/** Writes one model in the form of the Messages API. */
export function pagedModel(id: string, { created = 0, description, ...fields }: NamedModel['entry']): JsonObject {
  return {
    id,
    type: 'model',
    display_name: typeof description === 'string' ? description : id,
    created_at: new Date(created * 1_000).toISOString().replace('.000Z', 'Z'),
    max_input_tokens: fields.context_window ?? null,
    max_tokens: fields.max_output_tokens ?? null,
  }
}

function newestFirst(one: NamedModel, other: NamedModel): number {
  return (other.entry.created ?? 0) - (one.entry.created ?? 0) || (one.id < other.id ? -1 : 1)
}

function limitOf(value: unknown): number {
  if (value === undefined) return defaultLimit
  const limit = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : 0
  if (limit >= 1 && limit <= maxLimit) return limit
  throw new RouterError('invalid_request', `'limit' must be a whole number from 1 to ${maxLimit}.`, {
    param: 'limit',
  })
}

function positionOf(models: readonly NamedModel[], name: string, query: PageQuery): number | undefined {
  const id = query[name]
  if (id === undefined) return undefined
  const position = models.findIndex((model) => model.id === id)
  if (position >= 0) return position
  throw new RouterError('invalid_request', `'${name}' must be the id of a listed model.`, { param: name })
}
