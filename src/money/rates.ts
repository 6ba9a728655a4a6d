import { createHash } from 'node:crypto'
import type { OtherPrices } from '../catalog/other-prices.ts'
import { ascending, type BilledTier, billedTier, type ModelEntry, type Tier } from '../core/models/model.ts'
import { promptClasses, type UsageClass, usageClasses } from '../core/usage.ts'

/** A priced unit: a usage class, or the request itself. */
export type Priced = UsageClass | 'request'

/** The prices of one tier, in integer pico-USD. */
export type Rates = {
  /** The tier is reached by a prompt of more tokens than this; of at least this many where the tariff is `inclusive`. */
  threshold: number
  pico: { readonly [name in Priced]: bigint }
  /** The same as numbers, as long as they are exact; else NaN. */
  plain: { readonly [name in Priced]: number }
  /** Prices that depend on how the call was served, by mode: `search_low`. */
  byMode: ReadonlyMap<string, { readonly [name in Priced]?: bigint }>
}

/** The prices of a model in the form in which they are multiplied. */
export type Tariff = {
  /** Ascending; every prompt reaches the first one. */
  tiers: readonly Rates[]
  /** True if each slice of the prompt is billed at its own tier, instead of the whole prompt at the reached one. */
  marginal: boolean
  /** A prompt reaches a tier at its threshold, not only above it. */
  inclusive: boolean
  /** Multipliers by mode, in units of which `multiplierUnit` are 1. */
  multipliers: ReadonlyMap<string, bigint>
  /** The modes that price an image, as `imageModesOf` orders them. */
  imageModes: readonly string[]
  /** Digests of the prices of a call, by tier and modes. */
  versions: Map<string, string>
}

/** The prices of an entry; undefined when it has none. Entries do not change, a reload makes new ones: each is read once. */
export function tariffOf(entry: ModelEntry): Tariff | undefined {
  let tariff = read.get(entry)
  if (tariff === undefined) {
    tariff = readTariff(entry)
    read.set(entry, tariff)
  }
  return tariff ?? undefined
}

/** The tier that a prompt of this many tokens reaches, by its index. */
export function reachedTier({ tiers, inclusive }: Tariff, prompt: number): number {
  const place = tiers.findLastIndex(({ threshold }) => (inclusive ? threshold <= prompt : threshold < prompt))
  return Math.max(place, 0)
}

/** A digest of all prices of a call that reached this tier and was served in these modes. */
export function versionOf(tariff: Tariff, reached: number, modes: readonly string[]): string {
  const key = modes.length === 0 ? String(reached) : `${reached} ${modes.join(' ')}`
  let version = tariff.versions.get(key)
  if (version === undefined) {
    const { tiers, marginal, inclusive, multipliers } = tariff
    const used = marginal ? tiers.slice(0, reached + 1) : tiers.slice(reached, reached + 1)
    const inputs = [
      marginal,
      inclusive,
      used.map(({ threshold, pico, byMode }) => [
        threshold,
        ...pricedNames.flatMap((name) => digested(name, pico[name])),
        ...modes.flatMap((mode) =>
          Object.entries(byMode.get(mode) ?? {}).map(([name, price]) => `${mode} ${name} ${price}`),
        ),
      ]),
      modes.map((mode) => `${mode} ${multipliers.get(mode)}`),
    ]
    version = createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 12)
    tariff.versions.set(key, version)
  }
  return version
}

/** Classes that came later are in the digest only where they have a price: what was settled before has the same digest. */
function digested(name: Priced, price: bigint): string[] {
  if (!laterClasses.has(name)) return [String(price)]
  return price === 0n ? [] : [`${name} ${price}`]
}

const laterClasses: ReadonlySet<Priced> = new Set<Priced>([
  'code_runs',
  'x_searches',
  'maps_groundings',
  'containers',
  'drawing_input',
  'drawing_output',
  'megapixels',
  'queries',
  'input_images',
  'page_visits',
])

/** Returns the modes that change a price, each once, sorted; the one that prices an image is the last. */
export function pricedModes(tariff: Tariff, modes: readonly string[] | undefined): readonly string[] {
  if (!modes || modes.length === 0) return none
  const { multipliers, tiers, imageModes } = tariff
  const image = imageModes.length > 0 ? imageModeOf(imageModes, modes) : undefined
  const priced = modes.filter(
    (mode) => mode !== image && (multipliers.has(mode) || (tiers[0]?.byMode.has(mode) && !imageModes.includes(mode))),
  )
  const others = priced.length > 1 ? [...new Set(priced)].sort() : priced
  return image === undefined ? others : [...others, image]
}

/** Classes that count tokens: multipliers apply to them. */
export const tokenClasses: ReadonlySet<Priced> = new Set<Priced>([
  ...promptClasses,
  'output',
  'reasoning',
  'output_audio',
  'output_image',
  'citations',
])

const none: readonly string[] = []
const read = new WeakMap<ModelEntry, Tariff | null>()

function readTariff({ pricing, other_prices = {}, multipliers = {}, ...entry }: ModelEntry): Tariff | null {
  const tiers = ascending(pricing)
  const { image_prices = {} } = entry
  const imageModes = imageModesOf(image_prices)
  const isPriced = imageModes.length > 0 || unitPrices.some((name) => other_prices[name] !== undefined)
  if (tiers.length === 0 && isPriced) tiers.push(notByToken)
  if (tiers.length === 0) return null
  const byMode = new Map([...pricesByMode(other_prices), ...imagesByMode(image_prices)])
  const prices = { ...other_prices, per_image: other_prices.per_image ?? highestOf(image_prices) }
  return {
    tiers: tiers.map((tier) => {
      const pico = inPico(classPrices(billedTier(tier), prices))
      return { threshold: tier.prompt_tokens_threshold, pico, plain: asNumbers(pico), byMode }
    }),
    marginal: entry.tier_billing === 'marginal',
    inclusive: entry.tier_from === 'at',
    multipliers: new Map(Object.entries(multipliers).map(([mode, by]) => [mode, multiple(by)])),
    imageModes,
    versions: new Map(),
  }
}

/** A model with one of these is priced even when its tokens are not. */
const unitPrices = [
  'per_image',
  'per_input_image',
  'per_megapixel',
  'per_second',
  'per_character',
  'per_query',
  'per_request',
] as const
const notByToken: Tier = { prompt_tokens_threshold: 0 }

/** USD per unit of each class; audio, image and reasoning tokens without a price of their own cost as much as text. */
function classPrices(tier: BilledTier, other: OtherPrices): { [name in Priced]: number } {
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
    cache_read_audio: other.cached_audio_token ?? tier.cached_price,
    citations: other.citation_token ?? 0,
    searches: other.web_search_per_call ?? 0,
    file_searches: other.file_search_per_call ?? 0,
    images: other.per_image ?? 0,
    seconds: other.per_second ?? 0,
    characters: other.per_character ?? 0,
    code_runs: other.code_execution_per_call ?? 0,
    x_searches: other.x_search_per_call ?? 0,
    maps_groundings: other.maps_grounding_per_call ?? 0,
    containers: other.container_per_gb ?? 0,
    drawing_input: other.drawing_input_token ?? 0,
    drawing_output: other.drawing_output_token ?? 0,
    megapixels: other.per_megapixel ?? 0,
    queries: other.per_query ?? 0,
    input_images: other.per_input_image ?? 0,
    page_visits: other.page_visit_per_call ?? 0,
    request: other.per_request ?? 0,
  }
}

/** The context sizes of web searches, which have different prices at some providers. */
const searchSizes = ['low', 'medium', 'high'] as const

function pricesByMode(other: OtherPrices): Rates['byMode'] {
  const found = searchSizes.flatMap((size) => {
    const searches = other[`web_search_per_call_${size}`]
    const request = other[`per_request_${size}`]
    if (searches === undefined && request === undefined) return []
    const prices = {
      ...(searches !== undefined && { searches: picoUsd(searches) }),
      ...(request !== undefined && { request: picoUsd(request) }),
    }
    return [[`search_${size}`, prices] as const]
  })
  return new Map(found)
}

function imagesByMode(prices: ImagePrices): [mode: string, { images: bigint }][] {
  return Object.entries(prices).map(([mode, price]) => [mode, { images: picoUsd(price) }])
}

function inPico(usd: { [name in Priced]: number }): { [name in Priced]: bigint } {
  return Object.fromEntries(pricedNames.map((name) => [name, picoUsd(usd[name])])) as { [name in Priced]: bigint }
}

function asNumbers(pico: { [name in Priced]: bigint }): { [name in Priced]: number } {
  const plain = (name: Priced) => (pico[name] <= Number.MAX_SAFE_INTEGER ? Number(pico[name]) : Number.NaN)
  return Object.fromEntries(pricedNames.map((name) => [name, plain(name)])) as { [name in Priced]: number }
}

const pricedNames: readonly Priced[] = [...usageClasses, 'request']

/** Multipliers are exact to twelve decimals. */
export const multiplierUnit = 1_000_000_000_000n

function multiple(by: number): bigint {
  return BigInt(Math.round(by * 1e12))
}

/** Published prices have at most twelve decimals; rounding removes the error of the float. */
function picoUsd(usd: number): bigint {
  return BigInt(Math.round(usd * 1e12))
}

/** Prices of images in USD by quality, size, or both: `hd 1024x1024`. */
type ImagePrices = NonNullable<ModelEntry['image_prices']>

/** Returns the modes that price an image: the most specific first, of these the most expensive. */
function imageModesOf(prices: ImagePrices): string[] {
  const order = ([one, price]: [string, number], [other, otherPrice]: [string, number]) =>
    wordsOf(other).length - wordsOf(one).length || otherPrice - price
  return Object.entries(prices)
    .sort(order)
    .map(([mode]) => mode)
}

/** The mode that prices the images of a call: the first of `imageModesOf` that is a mode of the call, or made of its modes. */
function imageModeOf(imageModes: readonly string[], modes: readonly string[]): string | undefined {
  return imageModes.find((mode) => modes.includes(mode) || wordsOf(mode).every((word) => modes.includes(word)))
}

/** The modes of a usage with which an image costs most: for a bound, where its quality and size are not known. */
export function mostExpensiveImageModes({ image_prices = {}, other_prices }: ModelEntry): string[] {
  const price = highestOf(image_prices)
  const mode = Object.keys(image_prices).find((name) => image_prices[name] === price)
  return mode === undefined || price < (other_prices?.per_image ?? 0) ? [] : [mode]
}

/** Returns the maximum price of an image of a model, in USD, regardless of its quality and size. */
export function highestImagePrice({ image_prices = {}, other_prices }: ModelEntry): number {
  return Math.max(highestOf(image_prices), other_prices?.per_image ?? 0)
}

/** Returns the highest of these prices; 0 where there is none. */
function highestOf(prices: ImagePrices): number {
  return Math.max(0, ...Object.values(prices))
}

function wordsOf(mode: string): string[] {
  return mode.split(' ')
}
