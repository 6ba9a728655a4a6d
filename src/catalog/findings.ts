import { chatFacts, isRetired, type ModelEntry, type PriceChange, type PricingTier } from '../core/models/model.ts'
import { hoursOf } from '../core/models/price-times.ts'
import { parseTime } from '../core/time.ts'
import { otherPrices } from './other-prices.ts'

/** A fault in a list of models that nevertheless matches the schema; `path` leads to it from the list. */
export type Finding = { path: (string | number)[]; message: string }

/**
 * Checks that a JSON schema cannot express: every model has an `api`, tiers ascend from 0, a price change states what changes and when,
 * and a name belongs to one model only.
 */
export function findingsIn(models: { readonly [model: string]: Partial<ModelEntry> }): Finding[] {
  const findings = Object.entries(models).flatMap(([model, entry]) => [
    ...(entry.api === undefined && entry.is === undefined
      ? [{ path: [model], message: `\`${model}\` needs \`api\`, such as chat` }]
      : []),
    ...tierFindings([model, 'pricing'], entry.pricing ?? []),
    ...priceFindings([model, 'other_prices'], entry.other_prices ?? {}),
    ...(entry.price_changes ?? []).flatMap((change, index) => changeFindings([model, 'price_changes', index], change)),
  ])
  return [...findings, ...aliasFindings(models)]
}

/** A price that nothing reads would let what it is for be free. */
function priceFindings(path: Finding['path'], prices: NonNullable<ModelEntry['other_prices']>): Finding[] {
  return Object.keys(prices)
    .filter((name) => !known.has(name))
    .map((name) => ({
      path: [...path, name],
      message: `no usage is billed at \`${name}\`; the names are ${otherPrices.join(', ')}`,
    }))
}

const known: ReadonlySet<string> = new Set(otherPrices)

function tierFindings(place: Finding['path'], tiers: NonNullable<ModelEntry['pricing']>): Finding[] {
  return tiers.flatMap(({ prompt_tokens_threshold: threshold }, index) => {
    const path = [...place, index, 'prompt_tokens_threshold']
    const before = tiers[index - 1]?.prompt_tokens_threshold
    if (before === undefined) {
      return threshold === 0 ? [] : [{ path, message: `the first tier must have threshold 0, not ${threshold}` }]
    }
    if (threshold > before) return []
    return [{ path, message: `tiers must ascend: the threshold ${threshold} follows ${before}` }]
  })
}

function changeFindings(path: Finding['path'], change: PriceChange): Finding[] {
  const { from, until, weekly, pricing, other_prices, image_prices, multipliers } = change
  const findings = [
    ...tierFindings([...path, 'pricing'], pricing ?? []),
    ...priceFindings([...path, 'other_prices'], other_prices ?? {}),
  ]
  const find = (member: (string | number)[], message: string) => findings.push({ path: [...path, ...member], message })
  if (!pricing && !other_prices && !image_prices && !multipliers)
    find([], 'a price change needs what it changes: `pricing`, `other_prices`, `image_prices` or `multipliers`')
  if (from === undefined && until === undefined && !weekly)
    find([], 'a price change needs a time when it applies: `from`, `until` or `weekly`')
  const [begins, ends] = [from, until].map((text) => text && parseTime(text))
  if (from !== undefined && begins === undefined) find(['from'], `${from} is not a valid time`)
  if (until !== undefined && ends === undefined) find(['until'], `${until} is not a valid time`)
  if (begins && ends && ends <= begins) find(['until'], `\`until\` must be after \`from\`, ${from}`)
  for (const [index, hours] of (weekly?.hours ?? []).entries()) {
    if (!hoursOf(hours))
      find(['weekly', 'hours', index], `${hours} must end after it begins; split hours past midnight between two days`)
  }
  return findings
}

function aliasFindings(models: { readonly [model: string]: Partial<ModelEntry> }): Finding[] {
  const owners = new Map<string, string>()
  return Object.entries(models).flatMap(([model, { aliases = [] }]) =>
    aliases.flatMap((alias, index) => {
      const owner = Object.hasOwn(models, alias) ? alias : owners.get(alias)
      if (owner === undefined) owners.set(alias, model)
      if (owner === undefined) return []
      return [
        { path: [model, 'aliases', index], message: `the alias \`${alias}\` already names the model \`${owner}\`` },
      ]
    }),
  )
}

type Models = { readonly [model: string]: ModelEntry }
type PriceName = (typeof priceNames)[number]

const priceNames = ['input_price', 'cached_price', 'output_price'] as const

/** Price that no token of any model reaches, in USD. */
const maxTokenPrice = 0.001

/** Prices that are so far apart are in different units. */
const farApart = 1_000

/**
 * Finds prices that can only be mistakes, with the path from the list: cached input more expensive than uncached input, and prices that
 * are a thousand times those beside them, in the entry or in the list, or a thousandth.
 */
export function doubtsIn(models: Models): Finding[] {
  const usual = usualPrices(models)
  return Object.entries(models).flatMap(([model, entry]) => {
    const inTiers = (path: Finding['path'], tiers: readonly PricingTier[] = []) =>
      tiers.flatMap((tier, index) => {
        const beside = (name: PriceName) => [usual.get(`${entry.api} ${name}`), ...neighbours(tiers, index, name)]
        return doubtsOfTier(tier, beside).map((message) => ({
          path: [...path, index],
          message: `\`${model}\`: ${message}`,
        }))
      })
    return [
      ...inTiers([model, 'pricing'], entry.pricing),
      ...(entry.price_changes ?? []).flatMap(({ pricing }, index) =>
        inTiers([model, 'price_changes', index, 'pricing'], pricing),
      ),
    ]
  })
}

function doubtsOfTier(tier: PricingTier, beside: (name: PriceName) => readonly (number | undefined)[]): string[] {
  const { input_price: input, cached_price: cached } = tier
  const dearer = (cached ?? 0) > (input ?? cached ?? 0)
  return [
    ...(dearer ? [`\`cached_price\` is ${cached}, more than the \`input_price\` of ${input}`] : []),
    ...priceNames.flatMap((name) => {
      const price = tier[name]
      if (!price) return []
      if (price >= maxTokenPrice) return [`\`${name}\` is ${price} USD for one token: 2 USD for a million are 2e-6`]
      const other = beside(name).find((one) => one && one < maxTokenPrice && isFarApart(one, price))
      return other ? [`\`${name}\` is ${price}, and ${other} beside it: one of them is in another unit`] : []
    }),
  ]
}

/** Sums of floats are not exact. */
function isFarApart(one: number, other: number): boolean {
  return Math.round(Math.max(one, other) / Math.min(one, other)) >= farApart
}

/** The same price in the tiers beside it, and that of the other direction. */
function neighbours(tiers: readonly PricingTier[], index: number, name: PriceName): (number | undefined)[] {
  const other = name === 'output_price' ? 'input_price' : 'output_price'
  const named = [tiers[index - 1]?.[name], tiers[index + 1]?.[name], tiers[index]?.[other]]
  return named.map((price) => price ?? undefined)
}

/** The median price of three or more models of a kind, by API and name. */
function usualPrices(models: Models): ReadonlyMap<string, number> {
  const all = Object.values(models).flatMap(({ api, pricing: [tier] = [] }) =>
    priceNames.flatMap((name) => (tier?.[name] ? [{ kind: `${api} ${name}`, price: tier[name] }] : [])),
  )
  const kinds = [...Map.groupBy(all, ({ kind }) => kind)].filter(([, { length }]) => length >= 3)
  return new Map(
    kinds.map(([kind, found]) => {
      const prices = found.map(({ price }) => price).toSorted((one, other) => one - other)
      return [kind, prices[Math.floor(prices.length / 2)] as number]
    }),
  )
}

/** Facts that every chat model states; flags may be missing. */
const facts = ['created', ...chatFacts] as const

/**
 * Finds the facts that chat models of a list lack, one finding for each model, with the path from the list. A price may be missing, but
 * not be empty, unless `priced` is set: calls are then charged by the catalog. Deployments have the facts of their model, and models that
 * are shut down are not listed.
 */
export function gapsIn(models: { readonly [model: string]: ModelEntry }, { priced }: { priced: boolean }): Finding[] {
  return Object.entries(models).flatMap(([model, entry]) => {
    if (entry.api !== 'chat' || entry.is !== undefined || isRetired(entry, Date.now())) return []
    const missing: string[] = facts.filter((name) => entry[name] === undefined)
    const isPriced =
      entry.pricing === undefined ? !priced || entry.price_changes !== undefined : entry.pricing.length > 0
    if (!isPriced) missing.push('pricing')
    return missing.length === 0 ? [] : [{ path: [model], message: `\`${model}\` has no ${missing.join(', ')}` }]
  })
}
