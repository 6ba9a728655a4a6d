import { isObject, type Json, type JsonObject } from '../../../src/core/json.ts'
import { type ListedModel, scaled, stated } from '../listed.ts'

/** Reads the api.json of models.dev. */
export function readModelsDev(json: Json): ListedModel[] {
  return entriesOf(json).flatMap(([provider, { models }]) =>
    entriesOf(models).map(([model, entry]): ListedModel => {
      const [cost, limit, modalities] = [membersOf(entry.cost), membersOf(entry.limit), membersOf(entry.modalities)]
      const facts = stated({
        input_price: scaled(cost.input, 1e-6),
        output_price: scaled(cost.output, 1e-6),
        cached_price: scaled(cost.cache_read, 1e-6),
        caching_price: scaled(cost.cache_write, 1e-6),
        input_audio_token: scaled(cost.input_audio, 1e-6),
        output_audio_token: scaled(cost.output_audio, 1e-6),
        context_window: limit.context,
        max_output_tokens: limit.output,
        supports_vision: Array.isArray(modalities.input) ? modalities.input.includes('image') : undefined,
        supports_reasoning: entry.reasoning,
        supports_tool_calling: entry.tool_call,
      })
      return { provider, ids: [model], facts }
    }),
  )
}

/** Reads one of the files dist/providers/data/*.json of @earendil-works/pi-ai: models by API, then by kind and id. */
export function readPiAi(json: Json): ListedModel[] {
  return entriesOf(json).flatMap(([, models]) =>
    entriesOf(models).flatMap(([, { id, type, provider, cost: said, ...entry }]): ListedModel[] => {
      if (typeof id !== 'string' || typeof provider !== 'string' || type !== 'chat') return []
      const cost = membersOf(said)
      const facts = stated({
        input_price: scaled(cost.input, 1e-6),
        output_price: scaled(cost.output, 1e-6),
        cached_price: scaled(cost.cacheRead, 1e-6),
        caching_price: scaled(cost.cacheWrite, 1e-6),
        context_window: entry.contextWindow,
        max_output_tokens: entry.maxTokens,
        supports_vision: Array.isArray(entry.input) ? entry.input.includes('image') : undefined,
        supports_reasoning: entry.reasoning,
      })
      return [{ provider, ids: [id], api: 'chat', facts }]
    }),
  )
}

/** Reads snapshot.json of the Python package model-prices: dated prices, of which the last one that has begun holds. */
export function readModelPrices(json: Json, day: string): ListedModel[] {
  return entriesOf(membersOf(json).prices).flatMap(([provider, models]) =>
    entriesOf(models).map(([model, { standard }]): ListedModel => {
      const steps = Array.isArray(standard) ? standard.map(membersOf) : []
      const inForce = steps.filter(({ start }) => typeof start !== 'string' || start.slice(0, 10) <= day)
      const rates = membersOf(inForce.at(-1)?.rates)
      const facts = stated({
        input_price: scaled(rates.input, 1e-6),
        output_price: scaled(rates.output, 1e-6),
        cached_price: scaled(rates.cache_read, 1e-6),
        caching_price: scaled(rates.cache_write, 1e-6),
      })
      const { source } = rates
      const isPage = typeof source === 'string' && !source.includes('github.com')
      return { provider, ids: [model], facts, ...(isPage && { page: source }) }
    }),
  )
}

function entriesOf(json: Json | undefined): [string, JsonObject][] {
  const entries = Object.entries(membersOf(json))
  return entries.flatMap(([name, value]): [string, JsonObject][] => (isObject(value) ? [[name, value]] : []))
}

function membersOf(json: Json | undefined): JsonObject {
  return isObject(json) ? json : {}
}
