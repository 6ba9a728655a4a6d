import type { Cost } from '../core/call.ts'
import type { ModelEntry } from '../core/models/model.ts'
import { entryAt } from '../core/models/price-times.ts'
import { promptClasses, promptTokens, type Usage, usageClasses } from '../core/usage.ts'
import {
  mostExpensiveImageModes,
  multiplierUnit,
  type Priced,
  pricedModes,
  type Rates,
  reachedTier,
  type Tariff,
  tariffOf,
  tokenClasses,
  versionOf,
} from './rates.ts'

/**
 * The cost of a usage at the prices that a model had when the call arrived (`at`, Unix milliseconds): tokens at the tier
 * that the prompt reaches, times the multipliers of how the call was served; each part exact, the sum rounded once
 * (half up) to nano-USD. A model without prices costs 0 and is marked unpriced.
 */
export function priceOf(usage: Usage, entry: ModelEntry | undefined, at: number): Cost {
  const tariff = entry && tariffOf(entryAt(entry, at))
  if (!tariff) return { nanoUsd: 0, parts: {}, priceVersion: '', unpriced: true }
  const reached = reachedTier(tariff, promptTokens(usage))
  const modes = pricedModes(tariff, usage.modes)
  const { nano, parts } = costOf(usage, { tariff, reached, modes })
  return { nanoUsd: Number(nano), parts, priceVersion: versionOf(tariff, reached, modes) }
}

/** The cost of a usage as if its prompt reached a certain tier, in nano-USD. */
export function costAt(usage: Usage, tariff: Tariff, reached: number): bigint {
  return BigInt(costOf(usage, { tariff, reached, modes: pricedModes(tariff, usage.modes) }).nano)
}

/** A cost is summed in millionths of a pico-USD, since counts (seconds) may have fractions down to a millionth. */
const microPicoPerNano = 1_000_000_000n
const millionths = 1_000_000n

type Bill = { tariff: Tariff; reached: number; modes: readonly string[] }
type Costs = { nano: bigint | number; parts: Cost['parts'] }

function costOf(usage: Usage, bill: Bill): Costs {
  const plain = plainCost(usage, bill)
  if (plain) return plain
  const { total, scale, parts } = sumOf(usage, bill)
  return { nano: rounded(total, scale), parts }
}

/** Computes the cost of nearly all calls: whole counts at the prices of one tier, small enough for exact numbers. Three times as fast. */
function plainCost(usage: Usage, { tariff, reached, modes }: Bill): Costs | undefined {
  if (modes.length > 0 || tariff.marginal) return undefined
  const { plain } = tariff.tiers[reached] as Rates
  const parts: Cost['parts'] = {}
  let total = plain.request
  if (total > 0) parts.request = total / picoPerNano
  for (const name of usageClasses) {
    const count = usage[name]
    if (count === undefined || !(count > 0)) continue
    const part = count * plain[name]
    if (part === 0) continue
    if (!Number.isInteger(count) || !(part <= maxPlain)) return undefined
    parts[name] = part / picoPerNano
    total += part
  }
  return total <= maxPlain ? { nano: Math.floor((total + picoPerNano / 2) / picoPerNano), parts } : undefined
}

const picoPerNano = 1_000
/** Pico-USD: some thousand dollars, less a margin for the rounding. */
const maxPlain = Number.MAX_SAFE_INTEGER - picoPerNano

/** The sum and its parts; `scale` is how many units of the sum are a nano-USD. */
function sumOf(usage: Usage, bill: Bill): { total: bigint; scale: bigint; parts: Cost['parts'] } {
  const { tariff, reached, modes } = bill
  const { pico, byMode } = tariff.tiers[reached] as Rates
  let multiplier = 1n
  let unit = 1n
  for (const mode of modes) {
    const by = tariff.multipliers.get(mode)
    if (by === undefined) continue
    multiplier *= by
    unit *= multiplierUnit
  }
  const scale = microPicoPerNano * unit
  const parts: Cost['parts'] = {}
  let total = 0n
  const add = (name: Priced, microPico: bigint) => {
    if (microPico === 0n) return
    const part = microPico * (tokenClasses.has(name) ? multiplier : unit)
    parts[name] = Number(part) / Number(scale)
    total += part
  }
  const slices = tariff.marginal && reached > 0 ? slicedPrompt(usage, bill) : undefined
  const priceFor = (name: Priced) => modes.reduce((price, mode) => byMode.get(mode)?.[name] ?? price, pico[name])
  for (const name of usageClasses) {
    const count = usage[name]
    if (count === undefined || !(count > 0)) continue
    add(name, slices?.[name] ?? microCount(count) * (modes.length > 0 ? priceFor(name) : pico[name]))
  }
  add('request', millionths * priceFor('request'))
  return { total, scale, parts }
}

/** The cost of each class of a prompt with marginal tiers, where each slice has the price of its own tier. */
function slicedPrompt(usage: Usage, { tariff, reached }: Bill): { [name in Priced]?: bigint } {
  const cost: { [name in Priced]?: bigint } = {}
  let begin = 0n
  for (const name of promptClasses) {
    const end = begin + microCount(Math.max(usage[name] ?? 0, 0))
    for (let place = 0; place <= reached; place++) {
      const { threshold, pico } = tariff.tiers[place] as Rates
      const next = place < reached ? tariff.tiers[place + 1] : undefined
      const from = larger(begin, microCount(threshold))
      const to = next ? smaller(end, microCount(next.threshold)) : end
      if (to > from) cost[name] = (cost[name] ?? 0n) + (to - from) * pico[name]
    }
    begin = end
  }
  return cost
}

function rounded(total: bigint, scale: bigint): bigint {
  return (total + scale / 2n) / scale
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

function microCount(count: number): bigint {
  return Number.isInteger(count) ? BigInt(count) * millionths : BigInt(Math.round(count * 1e6))
}

/**
 * Returns the maximum cost of a usage of at most these counts at the prices of a model at a time (Unix milliseconds), in nano-USD; 0
 * where no price is known. A shorter prompt stays in a lower tier, which may be the more expensive one; images are of the most expensive
 * quality and size.
 */
export function highestCost(most: Usage, entry: ModelEntry | undefined, at: number): bigint {
  const current = entry && entryAt(entry, at)
  const tariff = current && tariffOf(current)
  if (!tariff) return 0n
  const usage = most.images === undefined || most.modes ? most : { ...most, modes: mostExpensiveImageModes(current) }
  let dearest = 0n
  for (let place = reachedTier(tariff, promptTokens(most)); place >= 0; place--) {
    const cost = costAt(usage, tariff, place)
    if (cost > dearest) dearest = cost
  }
  return dearest
}
