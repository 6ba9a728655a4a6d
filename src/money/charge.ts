import type { Cost } from '../core/call.ts'
import type { ModelEntry } from '../core/models/model.ts'
import type { Usage } from '../core/usage.ts'
import { priceOf } from './price.ts'

/** Input of a cost besides the usage. */
export type Charged = {
  /** The entry of the model that was asked for. */
  entry: ModelEntry | undefined
  /** The entry of the model that served, where that is another one that is known. */
  served?: ModelEntry | undefined
  /** True if the provider charges by the figure that it reports. */
  byReport: boolean
}

/**
 * Returns the cost of a usage at the prices that models had when the call arrived (`at`, Unix milliseconds). A provider's statements
 * about a call are believed upwards: the more expensive of the model asked for and the one that served, and no less than the provider's
 * own figure where it charges by that.
 */
export function chargeOf(usage: Usage, { entry, served, byReport }: Charged, at: number): Cost {
  const asked = priceOf(usage, entry, at)
  const other = served && priceOf(usage, served, at)
  const cost = other && !other.unpriced && (asked.unpriced || other.nanoUsd > asked.nanoUsd) ? other : asked
  return byReport && usage.reported_cost !== undefined ? atLeast(cost, usage.reported_cost * 1e9) : cost
}

/**
 * Returns the highest figure of a provider's own that is believed of a call, in USD, given the maximum cost of the call at the prices of
 * the catalog (nano-USD; 0 where it has none).
 */
export function maxReportedUsd(mostNano: bigint): number {
  const mostUsd = Number(mostNano) * 1e-9
  return mostNano === 0n
    ? maxUnlistedUsd
    : Math.min(Math.max(mostUsd * maxFactor, minUsd), Math.max(mostUsd, maxUnlistedUsd))
}

/** Factor by which a provider's prices may exceed those of the catalog, and the amount that is allowed for a small call. */
const maxFactor = 10
const minUsd = 1
/** Maximum cost that is believed unless the catalog's prices lead to a higher one. USD. */
const maxUnlistedUsd = 100

/** The cost, raised to the provider's figure in nano-USD: the difference is a part of its own. */
function atLeast({ unpriced, ...cost }: Cost, reported: number): Cost {
  const nanoUsd = Math.round(reported)
  if (nanoUsd <= cost.nanoUsd) return unpriced ? { ...cost, unpriced } : cost
  const known = Object.values(cost.parts).reduce((sum, part) => sum + part, 0)
  return { ...cost, nanoUsd, parts: { ...cost.parts, reported: nanoUsd - known } }
}
