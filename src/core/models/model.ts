/** One tier of a model's prices, in USD per token; it applies to the whole request once its prompt exceeds the threshold. */
export type PricingTier = {
  prompt_tokens_threshold: number
  input_price: number | null
  caching_price?: number | null
  caching_5m_price?: number | null
  caching_1h_price?: number | null
  cached_price?: number | null
  output_price: number | null
}

export type WeekDay = 'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun'

/** Other prices for a period of time: while a change is in force, its prices override those of the entry. */
export type PriceChange = Pick<ModelEntry, 'pricing' | 'other_prices' | 'image_prices' | 'multipliers'> & {
  /** The start, RFC 3339; without it the change has always been in force. */
  from?: string
  /** The end, RFC 3339, exclusive. */
  until?: string
  /** Only at these hours (`09:00-12:00`, end exclusive) of these days (all by default), in the time zone of this offset. */
  weekly?: { days?: readonly WeekDay[]; hours: readonly string[]; utc_offset?: string }
}

/** A catalog entry in the field names of the model lists. */
export type ModelEntry = {
  api: string
  /** Other APIs whose endpoints call it as well: image models that converse. It is listed under its own alone. */
  also?: string[]
  /** The listed model that a deployment of the operator's own is: it has the facts of that one. */
  is?: string
  created?: number
  updated?: number
  context_window?: number
  max_output_tokens?: number
  /** Modalities that it takes (`text`, `image`, `audio`, `video`, `file`) and gives (`text`, `image`, `audio`, `vector`, `score`). */
  modalities?: { input: string[]; output: string[] }
  pricing?: PricingTier[]
  /** Scope of a tier's prices: the whole request (the default) or its prompt tokens beyond the threshold. */
  tier_billing?: 'whole' | 'marginal'
  /** Lower end of a tier: a prompt must exceed its threshold (the default) or only reach it. */
  tier_from?: 'above' | 'at'
  /** Factors on token prices by mode of serving: `{flex: 0.5, priority: 2, us: 1.1}`. */
  multipliers?: { [mode: string]: number }
  /** Prices of other units in USD, by name: `web_search_per_call`, `input_audio_token`, `reasoning_token` … */
  other_prices?: { [name: string]: number }
  /** USD per image by quality, size or both: `{'1024x1024': 0.04, 'hd 1024x1024': 0.08, edit: 0.05}`. */
  image_prices?: { [kind: string]: number }
  /** Prices that depend on the time of a call; of several changes in force the last one applies. */
  price_changes?: PriceChange[]
  /** Length of embeddings: the numbers in each, the maximum (as many by default), and other lengths that can be requested. */
  dimensions?: number
  max_dimensions?: number
  dimensions_free?: boolean | number[]
  /** The most texts of one request: those to embed, or the documents to rank. */
  max_inputs?: number
  /** Values for images, where only these can be requested. */
  sizes?: string[]
  qualities?: string[]
  voices?: string[]
  /** The values of `response_format` of speech and transcriptions. */
  formats?: string[]
  /** The longest text that is spoken. */
  max_characters?: number
  /** Units whose times a transcription can have: `word`, `segment`; and the number of them that one request may ask for. */
  granularities?: string[]
  granularities_at_once?: number
  /** Minimum number of seconds that a transcription is billed for. */
  min_seconds?: number
  /** Number of tokens that a model counts for a second of sound that it transcribes. */
  audio_tokens_per_second?: number
  /** True if a model of speech, images or transcriptions answers in events. */
  streams?: boolean
  description?: string
  supports_caching?: boolean
  supports_vision?: boolean
  supports_computer_use?: boolean
  supports_reasoning?: boolean
  supports_image_generation?: boolean
  supports_tool_calling?: boolean
  supports_role_developer?: boolean
  supports_web_search?: boolean
  supports_output_json_object?: boolean
  supports_output_json_schema?: boolean
  data_retention?: boolean
  data_retention_days?: number
  data_used_for_training?: boolean
  privacy_comments?: string
  geolocation?: string
  open_weights?: boolean
  model_lab?: string
  model_canonical_name?: string
  /** Other ids of this model. */
  aliases?: string[]
  /** The day (`2026-10-16`, UTC) on which the provider retires the model, as far as it has announced it, and the model to call instead. */
  shutdown?: string
  successor?: string
  /** The page of the provider against which the entry was checked, and the day. */
  verified?: { page: string; on: string }
  /** The dated model that this one, without a date, stands for. */
  snapshot?: string
}

/** The members of an entry that describe the input and output of models of other APIs than chat. */
export const modalFacts = [
  'dimensions',
  'max_dimensions',
  'dimensions_free',
  'max_inputs',
  'sizes',
  'qualities',
  'voices',
  'formats',
  'max_characters',
  'granularities',
  'granularities_at_once',
  'min_seconds',
  'audio_tokens_per_second',
  'streams',
] as const satisfies (keyof ModelEntry)[]

/** The flags of an entry that describe the abilities of a model. */
export const abilities = [
  'supports_caching',
  'supports_vision',
  'supports_computer_use',
  'supports_reasoning',
  'supports_image_generation',
  'supports_tool_calling',
  'supports_role_developer',
  'supports_web_search',
  'supports_output_json_object',
  'supports_output_json_schema',
] as const satisfies (keyof ModelEntry)[]

/** Facts that lists contain about every chat model besides its abilities: an entry must have all of them. */
export const chatFacts = [
  'context_window',
  'max_output_tokens',
  'description',
  'data_retention',
  'data_retention_days',
  'data_used_for_training',
  'privacy_comments',
  'geolocation',
  'open_weights',
  'model_lab',
  'model_canonical_name',
] as const satisfies (keyof ModelEntry)[]

/** A price tier as a catalog gives it, in USD per token, with gaps. */
export type Tier = { prompt_tokens_threshold: number } & { [name in PriceName]?: number | null }

/** A tier without gaps: the price of each token in USD. */
export type BilledTier = { prompt_tokens_threshold: number } & { [name in PriceName]: number }

/**
 * Fills the gaps of a tier: a cached token without a discount and a cache write without a surcharge cost as much as
 * input, a write for 5 minutes or an hour without its own price as much as any write, and tokens without a price nothing.
 */
export function billedTier(tier: Tier): BilledTier {
  const input = tier.input_price ?? 0
  const caching = tier.caching_price ?? input
  return {
    prompt_tokens_threshold: tier.prompt_tokens_threshold,
    input_price: input,
    caching_price: caching,
    caching_5m_price: tier.caching_5m_price ?? caching,
    caching_1h_price: tier.caching_1h_price ?? caching,
    cached_price: tier.cached_price ?? input,
    output_price: tier.output_price ?? 0,
  }
}

/** The tiers of a model, ascending. */
export function ascending(tiers: readonly Tier[] = []): Tier[] {
  return tiers.toSorted((one, other) => one.prompt_tokens_threshold - other.prompt_tokens_threshold)
}

type PriceName =
  | 'input_price'
  | 'caching_price'
  | 'caching_5m_price'
  | 'caching_1h_price'
  | 'cached_price'
  | 'output_price'

/**
 * Checks whether the announced retirement of a model has come at a moment (Unix milliseconds). Providers postpone retirements: only the
 * provider knows whether it still serves the model.
 */
export function isRetired({ shutdown }: Pick<ModelEntry, 'shutdown'>, at: number): boolean {
  return shutdown !== undefined && Date.parse(shutdown) <= at
}

/** A retired model that a call has asked: its id for clients, the day of its retirement, and the model to call instead. */
export type RetiredNotice = { model: string; shutdown: string; successor?: string }

/** The next moment after this one (both Unix milliseconds) at which one of these models is retired; Infinity when none is. */
export function nextRetirement(entries: readonly Pick<ModelEntry, 'shutdown'>[], at: number): number {
  const days = entries.flatMap(({ shutdown }) => (shutdown === undefined ? [] : [Date.parse(shutdown)]))
  return days.reduce((next, day) => (day > at && day < next ? day : next), Infinity)
}

/** Returns the message for a caller of a retired model: `id` is the model's, with its provider. */
export function retiredMessage(
  id: string,
  { shutdown, successor }: Pick<ModelEntry, 'shutdown' | 'successor'>,
): string {
  const provider = id.slice(0, id.indexOf('/') + 1)
  const instead =
    successor === undefined ? 'GET /v1/models lists the available models' : `call '${provider}${successor}' instead`
  return `The model '${id}' was retired by its provider on ${shutdown}: ${instead}.`
}
