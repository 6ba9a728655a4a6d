import type { ModelEntry } from '../../src/core/models/model.ts'
import type { Usage } from '../../src/core/usage.ts'
import { priceOf } from '../../src/money/price.ts'
import { comparedAt, type PriceList } from './price-lists.ts'

/** The size of the search only matters to Perplexity, whose requests cost most at size high in both lists. */
const modes = ['search_high']

/** One usage for every price that a list may have. */
const usages: readonly Usage[] = [
  { input: 1_003, output: 501, modes },
  { input: 201, cache_read: 802, output: 11, modes },
  { input: 101, cache_write_5m: 902, output: 7, modes },
  { input: 300_001, output: 99, modes },
  { input: 11, input_audio: 1_003, output: 7, modes },
  { input: 11, output: 7, output_audio: 1_003, modes },
]

/**
 * How many times as much as in the list a model costs here, to three digits, for the usage where they differ most; 1 where
 * they agree, undefined where the list does not know the model.
 */
export function difference(list: PriceList, provider: string, model: string, entry: ModelEntry): number | undefined {
  const ratios = usages.flatMap((usage) => {
    const theirs = list.costOf(provider, model, usage)
    return theirs === undefined ? [] : [ratio(priceOf(usage, entry, comparedAt.getTime()).nanoUsd, theirs * 1e9)]
  })
  if (ratios.length === 0) return undefined
  return ratios.reduce((most, one) => (Math.abs(Math.log(one)) > Math.abs(Math.log(most)) ? one : most))
}

/** They sum floats and round nothing: what is within our own rounding, or the noise of theirs, is no difference. */
function ratio(mine: number, theirs: number): number {
  if (Math.abs(mine - theirs) <= 0.5 + theirs * 1e-9) return 1
  return Number((mine / theirs).toPrecision(3))
}
