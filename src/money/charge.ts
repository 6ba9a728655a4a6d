import type { Cost } from '../core/call.ts'
import type { ModelEntry } from '../core/model.ts'
import type { Usage } from '../core/usage.ts'
import { priceOf } from './price.ts'

/** What a cost is computed from beside the usage. */
export type Charged = {
  /** The entry of the model that was asked for. */
  entry: ModelEntry | undefined
  /** The entry of the model that served, where that is another one that is known. */
  served?: ModelEntry | undefined
  /** Whether the provider charges by the figure that it reports. */
  byReport: boolean
}

/**
 * The cost of a usage at the prices that models had when the call arrived (`at`, Unix milliseconds). What a provider says
 * about a call is believed upwards: the dearer of the model asked for and the one that served, and no less than the
 * provider's own figure where it charges by that.
 */
export function chargeOf(usage: Usage, { entry, served, byReport }: Charged, at: number): Cost {
  const asked = priceOf(usage, entry, at)
  const other = served && priceOf(usage, served, at)
  const cost = other && !other.unpriced && (asked.unpriced || other.nanoUsd > asked.nanoUsd) ? other : asked
  return byReport && usage.reported_cost !== undefined ? atLeast(cost, usage.reported_cost * 1e9) : cost
}

/** The cost, raised to the provider's figure in nano-USD: the difference is a part of its own. */
function atLeast({ unpriced, ...cost }: Cost, reported: number): Cost {
  const nanoUsd = Math.round(reported)
  if (nanoUsd <= cost.nanoUsd) return unpriced ? { ...cost, unpriced } : cost
  const known = Object.values(cost.parts).reduce((sum, part) => sum + part, 0)
  return { ...cost, nanoUsd, parts: { ...cost.parts, reported: nanoUsd - known } }
}
