import type { ModelEntry, PriceChange } from '../core/models/model.ts'
import { hoursOf } from '../core/models/price-times.ts'
import { parseTime } from '../core/time.ts'
import { otherPrices } from './other-prices.ts'

/** Something that is wrong with a list of models although it matches the schema; `path` leads to it from the list. */
export type Finding = { path: (string | number)[]; message: string }

/**
 * Checks that a JSON schema cannot express: every model has an `api`, tiers ascend from 0, a price change says what changes
 * and when, and a name belongs to one model only.
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
      message: `nothing is billed at \`${name}\`; known are ${otherPrices.join(', ')}`,
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
  if (from !== undefined && begins === undefined) find(['from'], `there is no such time as ${from}`)
  if (until !== undefined && ends === undefined) find(['until'], `there is no such time as ${until}`)
  if (begins && ends && ends <= begins) find(['until'], `\`until\` must be after \`from\`, ${from}`)
  for (const [index, hours] of (weekly?.hours ?? []).entries()) {
    if (!hoursOf(hours))
      find(
        ['weekly', 'hours', index],
        `${hours} must end after it begins; write hours past midnight as those of two days`,
      )
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
