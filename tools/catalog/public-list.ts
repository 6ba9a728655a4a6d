import { isObject, type Json, type JsonObject } from '../../src/core/json.ts'

/** The public lists of models and prices that can be read. */
export const publicLists = ['litellm', 'models_dev', 'model_list'] as const
export type PublicListName = (typeof publicLists)[number]

/** A model as a public list has it: prices in US dollars per token; missing fields are not in the list. */
export type PublicModel = { provider: string; model: string } & { [field in ComparedField]?: number }

/** Fields that are compared with the catalog. */
export const comparedFields = [
  'input_price',
  'output_price',
  'cached_price',
  'context_window',
  'max_output_tokens',
] as const
export type ComparedField = (typeof comparedFields)[number]

export type PublicList = { name: PublicListName; models: PublicModel[] }

/**
 * Reads a list: LiteLLM's model_prices_and_context_window.json, the api.json of models.dev, or OpenRouter's /api/v1/models. Throws an error
 * that names the expected formats.
 */
export function readPublicList(json: Json): PublicList {
  if (isObject(json) && Array.isArray(json.data) && json.data.some((one) => isObject(one) && isObject(one.pricing))) {
    return { name: 'model_list', models: json.data.flatMap(fromModelList) }
  }
  if (isObject(json) && Object.values(json).some((one) => isObject(one) && isObject(one.models))) {
    return { name: 'models_dev', models: Object.entries(json).flatMap(fromModelsDev) }
  }
  if (isObject(json) && Object.values(json).some((one) => isObject(one) && 'litellm_provider' in one)) {
    return { name: 'litellm', models: Object.entries(json).flatMap(fromLitellm) }
  }
  const lists =
    "LiteLLM's model_prices_and_context_window.json, the api.json of models.dev, or OpenRouter's /api/v1/models"
  throw new Error(`This is not a list of models that can be read: use ${lists}.`)
}

function fromLitellm([name, said]: [string, Json | undefined]): PublicModel[] {
  if (!isObject(said) || typeof said.litellm_provider !== 'string') return []
  const { litellm_provider: provider } = said
  return [
    {
      provider,
      model: withoutProvider(name, provider),
      ...numbers({
        input_price: said.input_cost_per_token,
        output_price: said.output_cost_per_token,
        cached_price: said.cache_read_input_token_cost,
        context_window: said.max_input_tokens,
        max_output_tokens: said.max_output_tokens,
      }),
    },
  ]
}

/**
 * Removes the provider from a name. Names begin with the provider's, but without its suffix for a kind of models: `vertex_ai/…` of
 * `vertex_ai-zai_models`.
 */
function withoutProvider(name: string, provider: string): string {
  const head = name.slice(0, name.indexOf('/'))
  const isProvider = head !== '' && (head === provider || provider.startsWith(`${head}-`))
  return isProvider ? name.slice(head.length + 1) : name
}

function fromModelsDev([provider, said]: [string, Json | undefined]): PublicModel[] {
  const models = isObject(said) && isObject(said.models) ? Object.entries(said.models) : []
  return models.map(([model, entry]) => {
    const [cost, limit] = [membersOf(entry, 'cost'), membersOf(entry, 'limit')]
    return {
      provider,
      model,
      ...numbers({
        input_price: perToken(cost.input),
        output_price: perToken(cost.output),
        cached_price: perToken(cost.cache_read),
        context_window: limit.context,
        max_output_tokens: limit.output,
      }),
    }
  })
}

function fromModelList(said: Json): PublicModel[] {
  if (!isObject(said) || typeof said.id !== 'string') return []
  const [pricing, top] = [membersOf(said, 'pricing'), membersOf(said, 'top_provider')]
  return [
    {
      provider: onlyProvider,
      model: said.id,
      ...numbers({
        input_price: pricing.prompt,
        output_price: pricing.completion,
        cached_price: pricing.input_cache_read,
        context_window: said.context_length,
        max_output_tokens: top.max_completion_tokens,
      }),
    },
  ]
}

/** Name in `listed_as` of the provider whose own list it is. */
const onlyProvider = '*'

/** Returns an object inside a list; an empty one where the list has another value. */
function membersOf(said: Json | undefined, name: string): JsonObject {
  const value = isObject(said) ? said[name] : undefined
  return isObject(value) ? value : {}
}

/** Converts a price from dollars per million. */
function perToken(price: Json | undefined): Json | undefined {
  return typeof price === 'number' ? price / 1e6 : undefined
}

/**
 * Returns the numbers that can be prices and limits. Some lists write them as text, -1 for prices that vary, and 0 for limits that they do
 * not know.
 */
function numbers(said: { [field in ComparedField]: Json | undefined }): Partial<Record<ComparedField, number>> {
  const read = Object.entries(said).map(([name, value]) => [name, numberOf(value)] as const)
  return Object.fromEntries(
    read.filter(([name, value]) =>
      isPrice(name) ? value >= 0 && value < maxTokenPrice : Number.isInteger(value) && value > 0,
    ),
  )
}

/** Returns a number, or one that is written in decimals; NaN for anything else. */
function numberOf(value: Json | undefined): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value.trim()) ? Number(value) : Number.NaN
}

/** Checks whether a field that is compared is a price. */
export function isPrice(field: string): boolean {
  return field.endsWith('_price')
}

/** Price that no token costs, in dollars: one that is as high is in another unit. */
const maxTokenPrice = 1
