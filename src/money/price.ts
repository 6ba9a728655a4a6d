import { createHash } from 'node:crypto'
import { ascending, type BilledTier, billedTier, type Tier } from '../api/models/tier.ts'
import type { ModelEntry } from '../catalog/model.ts'
import type { Cost } from '../core/call.ts'
import { promptTokens, type Usage, type UsageClass, usageClasses } from '../core/usage.ts'

/**
 * What a usage costs by a model's prices: the whole request at the tier its prompt exceeds, each part exact, the sum
 * rounded once (half up) to nano-USD. A model without prices costs 0 and is marked unpriced.
 */
export function priceOf(usage: Usage, entry: ModelEntry | undefined): Cost {
  const rates = entry && tierFor(promptTokens(usage), entry)
  if (!rates) return { nanoUsd: 0, parts: {}, priceVersion: '', unpriced: true }
  const parts: Cost['parts'] = {}
  let total = 0n
  for (const name of usageClasses) {
    const count = usage[name]
    if (count === undefined || !(count > 0)) continue
    const part = microCount(count) * rates.pico[name]
    if (part === 0n) continue
    parts[name] = Number(part) / Number(microPicoPerNano)
    total += part
  }
  const nanoUsd = Number((total + microPicoPerNano / 2n) / microPicoPerNano)
  return { nanoUsd, parts, priceVersion: rates.version }
}

/** Prices of one tier in integer pico-USD, and their digest. */
type Rates = { above: number; pico: Record<UsageClass, bigint>; version: string }

/** A cost is summed in millionths of a pico-USD, since counts (seconds) may have fractions down to a millionth. */
const microPicoPerNano = 1_000_000_000n

/** Catalog entries do not change, a reload makes new ones: each is converted once. */
const converted = new WeakMap<ModelEntry, Rates[]>()

function tierFor(prompt: number, entry: ModelEntry): Rates | undefined {
  let rates = converted.get(entry)
  if (!rates) {
    rates = ratesOf(entry)
    converted.set(entry, rates)
  }
  return rates.findLast(({ above }) => above < prompt) ?? rates[0]
}

function ratesOf({ pricing, other_prices = {} }: ModelEntry): Rates[] {
  const tiers = ascending(pricing)
  if (tiers.length === 0 && unitPrices.some((name) => other_prices[name] !== undefined)) tiers.push(notByToken)
  return tiers.map((tier) => {
    const usd = classPrices(billedTier(tier), other_prices)
    const pico = Object.fromEntries(usageClasses.map((name) => [name, picoUsd(usd[name])])) as Rates['pico']
    const above = tier.prompt_tokens_threshold
    return { above, pico, version: digest([above, ...Object.values(pico)].join()) }
  })
}

/** A model with one of these is priced even when its tokens are not. */
const unitPrices = ['per_image', 'per_second', 'per_character'] as const
const notByToken: Tier = { prompt_tokens_threshold: 0 }

/** USD per unit of each class; audio, image and reasoning tokens without a price of their own cost what text costs. */
function classPrices(tier: BilledTier, other: { [name: string]: number }): Record<UsageClass, number> {
  return {
    input: tier.input_price,
    cache_read: tier.cached_price,
    cache_write_5m: tier.caching_5m_price,
    cache_write_1h: tier.caching_1h_price,
    output: tier.output_price,
    reasoning: other.reasoning_token ?? tier.output_price,
    input_audio: other.input_audio_token ?? tier.input_price,
    output_audio: other.output_audio_token ?? tier.output_price,
    input_image: other.input_image_token ?? tier.input_price,
    output_image: other.output_image_token ?? tier.output_price,
    searches: other.web_search_per_call ?? 0,
    images: other.per_image ?? 0,
    seconds: other.per_second ?? 0,
    characters: other.per_character ?? 0,
  }
}

/** Published prices have at most twelve decimals; what a float adds beyond them is rounded away. */
function picoUsd(usd: number): bigint {
  return BigInt(Math.round(usd * 1e12))
}

function microCount(count: number): bigint {
  return Number.isInteger(count) ? BigInt(count) * 1_000_000n : BigInt(Math.round(count * 1e6))
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}
