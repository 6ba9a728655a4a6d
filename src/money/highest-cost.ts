import type { ModelEntry } from '../core/models/model.ts'
import { entryAt } from '../core/models/price-times.ts'
import { promptTokens, type Usage } from '../core/usage.ts'
import { dearestImageModes } from './image-prices.ts'
import { costAt } from './price.ts'
import { reachedTier, tariffOf } from './rates.ts'

/**
 * The most that a usage of at most these counts can cost at the prices of a model at a time (Unix milliseconds), in nano-USD; 0
 * where no price is known. A shorter prompt stays in a lower tier, which may be the dearer one; images are of the dearest quality and size.
 */
export function mostCost(most: Usage, entry: ModelEntry | undefined, at: number): bigint {
  const current = entry && entryAt(entry, at)
  const tariff = current && tariffOf(current)
  if (!tariff) return 0n
  const usage = most.images === undefined || most.modes ? most : { ...most, modes: dearestImageModes(current) }
  let dearest = 0n
  for (let place = reachedTier(tariff, promptTokens(most)); place >= 0; place--) {
    const cost = costAt(usage, tariff, place)
    if (cost > dearest) dearest = cost
  }
  return dearest
}
