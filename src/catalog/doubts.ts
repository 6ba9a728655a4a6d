import type { ModelEntry, PricingTier } from '../core/models/model.ts'
import type { Finding } from './findings.ts'

type Models = { readonly [model: string]: ModelEntry }
type PriceName = (typeof priceNames)[number]

const priceNames = ['input_price', 'cached_price', 'output_price'] as const

/** No token of any model costs as much, in USD. */
const dearest = 0.001

/** Prices that are so far apart are in different units. */
const farApart = 1_000

/**
 * Prices that can only be mistakes, with the path from the list: what is read from a cache dearer than what is read anew, and prices
 * that are a thousand times those beside them, in the entry or in the list, or a thousandth.
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
      if (price >= dearest) return [`\`${name}\` is ${price} USD for one token: 2 USD for a million are 2e-6`]
      const other = beside(name).find((one) => one && one < dearest && isFarApart(one, price))
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
