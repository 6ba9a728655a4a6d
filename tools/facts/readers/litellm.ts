import { isObject, type Json, type JsonObject } from '../../../src/core/json.ts'
import { type ListedModel, ratio, stated } from '../listed.ts'

/** Reads LiteLLM's model_prices_and_context_window.json. */
export function readLitellm(json: Json): ListedModel[] {
  if (!isObject(json)) return []
  return Object.entries(json).flatMap(([name, entry]) => (isObject(entry) ? readEntry(name, entry) : []))
}

function readEntry(name: string, entry: JsonObject): ListedModel[] {
  const { litellm_provider: provider, mode } = entry
  if (typeof provider !== 'string' || provider.includes(' ')) return []
  const cost = (member: string) => entry[member]
  const input = cost('input_cost_per_token')
  const facts = stated({
    input_price: input,
    output_price: cost('output_cost_per_token'),
    cached_price: cost('cache_read_input_token_cost'),
    caching_price: cost('cache_creation_input_token_cost'),
    caching_1h_price:
      cost('cache_creation_input_token_cost_above_1hr') ?? cost('cache_creation_input_token_cost_above_12hr'),
    input_audio_token: cost('input_cost_per_audio_token'),
    output_audio_token: cost('output_cost_per_audio_token'),
    input_image_token: cost('input_cost_per_image_token'),
    per_character: mode === 'audio_speech' ? cost('input_cost_per_character') : undefined,
    batch: ratio(cost('input_cost_per_token_batches'), input),
    flex: ratio(cost('input_cost_per_token_flex'), input),
    priority: ratio(cost('input_cost_per_token_priority'), input),
    context_window: entry.max_input_tokens,
    max_output_tokens: mode === 'embedding' ? undefined : entry.max_output_tokens,
    supports_vision: entry.supports_vision,
    supports_reasoning: entry.supports_reasoning,
    supports_tool_calling: entry.supports_function_calling,
    shutdown: entry.deprecation_date,
  })
  const api = typeof mode === 'string' ? (apis[mode] ?? 'other') : undefined
  const pages = {
    ...(typeof entry.source === 'string' && { page: entry.source }),
    ...(typeof entry.deprecation_source === 'string' && { retirementPage: entry.deprecation_source }),
  }
  return [{ provider, ids: [withoutProvider(name, provider)], ...(api !== undefined && { api }), facts, ...pages }]
}

/** The catalog's word for a mode. */
const apis: { readonly [mode: string]: string } = {
  chat: 'chat',
  responses: 'chat',
  completion: 'completion',
  embedding: 'embedding',
  image_generation: 'image',
  image_edit: 'image',
  audio_speech: 'speech',
  audio_transcription: 'transcription',
  rerank: 'rerank',
  moderation: 'moderation',
}

/** Removes the provider from a name: names begin with it, without its suffix for a kind of models. */
function withoutProvider(name: string, provider: string): string {
  const head = name.slice(0, name.indexOf('/'))
  const isProvider =
    head !== '' && (head === provider || provider.startsWith(`${head}-`) || provider === `${head}_chat`)
  return isProvider ? name.slice(head.length + 1) : name
}
