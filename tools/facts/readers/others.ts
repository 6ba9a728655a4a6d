import { isObject, type Json, type JsonObject } from '../../../src/core/json.ts'
import { type ListedModel, ratio, scaled, stated } from '../listed.ts'

/** Reads the models of @llmgateway/models (dist/models.js), each with the providers that serve it. */
export function readLlmGateway(models: Json): ListedModel[] {
  return listOf(models).flatMap((model) =>
    listOf(model.providers).flatMap((at): ListedModel[] => {
      const { providerId: provider, externalId: id } = at
      if (typeof provider !== 'string' || typeof id !== 'string' || at.region !== undefined) return []
      const facts = stated({
        input_price: scaled(at.inputPrice, 1),
        output_price: scaled(at.outputPrice, 1),
        cached_price: scaled(at.cachedInputPrice, 1),
        context_window: at.contextSize,
        max_output_tokens: at.maxOutput,
        supports_vision: at.vision,
        supports_reasoning: at.reasoning,
        supports_tool_calling: at.tools,
      })
      return [{ provider, ids: [id], facts }]
    }),
  )
}

/** Reads one of the files pricing/*.json of Portkey-AI/models, whose prices are in US cents. */
export function readPortkey(json: Json, provider: string): ListedModel[] {
  if (!isObject(json)) return []
  return Object.entries(json).flatMap(([model, entry]): ListedModel[] => {
    if (!isObject(entry) || model === 'default') return []
    const rates = membersOf(membersOf(entry.pricing_config).pay_as_you_go)
    const batch = membersOf(membersOf(entry.pricing_config).batch_config)
    const price = (name: string, of: JsonObject = rates) => scaled(membersOf(of[name]).price, 0.01)
    const facts = stated({
      input_price: price('request_token'),
      output_price: price('response_token'),
      cached_price: price('cache_read_input_token'),
      caching_price: price('cache_write_input_token'),
      input_audio_token: price('request_audio_token'),
      output_audio_token: price('response_audio_token'),
      batch: ratio(price('request_token', batch), price('request_token')),
    })
    return [{ provider, ids: [model], facts }]
  })
}

/** Reads one of the files data/*.json of simonw/llm-prices: the last price of each model. */
export function readLlmPrices(json: Json): ListedModel[] {
  const { vendor, models } = membersOf(json)
  if (typeof vendor !== 'string') return []
  return listOf(models).flatMap(({ id, price_history: history }): ListedModel[] => {
    const now = listOf(history).find(({ to_date: until }) => until === null)
    if (typeof id !== 'string' || !now) return []
    const facts = stated({
      input_price: scaled(now.input, 1e-6),
      output_price: scaled(now.output, 1e-6),
      cached_price: scaled(now.input_cached, 1e-6),
    })
    return [{ provider: vendor, ids: [id], facts }]
  })
}

function listOf(json: Json | undefined): JsonObject[] {
  return Array.isArray(json) ? json.filter(isObject) : []
}

function membersOf(json: Json | undefined): JsonObject {
  return isObject(json) ? json : {}
}
