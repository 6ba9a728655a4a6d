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
