import { isObject, type Json, type JsonObject } from '../core/json.ts'

/** The public lists of models and prices that can be read. */
export const publicLists = ['litellm', 'models_dev', 'model_list'] as const
export type PublicListName = (typeof publicLists)[number]

/** A model as a public list has it: prices in US dollars per token; what is missing the list does not say. */
export type PublicModel = { provider: string; model: string } & { [field in ComparedField]?: number }

/** What is compared with the catalog. */
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
 * Reads a list: LiteLLM's model_prices_and_context_window.json, the api.json of models.dev, or OpenRouter's /api/v1/models. Throws an
 * error that says what was expected.
 */
export function readPublicList(json: Json): PublicList {
  if (isObject(json) && Array.isArray(json.data))
    return { name: 'model_list', models: json.data.flatMap(fromModelList) }
  if (isObject(json) && Object.values(json).some((one) => isObject(one) && isObject(one.models))) {
    return { name: 'models_dev', models: Object.entries(json).flatMap(fromModelsDev) }
  }
  if (isObject(json) && Object.values(json).some((one) => isObject(one) && 'litellm_provider' in one)) {
    return { name: 'litellm', models: Object.entries(json).flatMap(fromLitellm) }
  }
  const lists =
    "LiteLLM's model_prices_and_context_window.json, the api.json of models.dev, or OpenRouter's /api/v1/models"
  throw new Error(`This is no list of models that can be read: give ${lists}.`)
}

function fromLitellm([name, said]: [string, Json | undefined]): PublicModel[] {
  if (!isObject(said) || typeof said.litellm_provider !== 'string') return []
  const { litellm_provider: provider } = said
  const own = name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : name
  return [
    {
      provider,
      model: own,
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

function fromModelsDev([provider, said]: [string, Json | undefined]): PublicModel[] {
  const models = isObject(said) && isObject(said.models) ? Object.entries(said.models) : []
  return models.map(([model, entry]) => {
    const { cost = {}, limit = {} } = (isObject(entry) ? entry : {}) as { cost?: JsonObject; limit?: JsonObject }
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
  const { pricing = {}, top_provider: top = {} } = said as { pricing?: JsonObject; top_provider?: JsonObject }
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

/** What `listed_as` calls the provider whose own list it is. */
const onlyProvider = '*'

/** From dollars per million. */
function perToken(price: Json | undefined): Json | undefined {
  return typeof price === 'number' ? price / 1e6 : undefined
}

/** Numbers that can be prices and limits; some lists write them as text, and -1 for what they do not know. */
function numbers(said: { [field in ComparedField]: Json | undefined }): Partial<Record<ComparedField, number>> {
  const read = Object.entries(said).map(([name, value]) => [
    name,
    value === '' || value === null ? Number.NaN : Number(value),
  ])
  return Object.fromEntries(read.filter(([, value]) => (value as number) >= 0))
}
