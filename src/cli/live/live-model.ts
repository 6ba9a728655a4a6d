import type { ModelEntry } from '../../core/models/model.ts'
import type { Provider } from '../../manifest/provider.ts'
import { servedBy } from '../../manifest/target.ts'
import { highestCost } from '../../money/price.ts'
import { liveTokens } from './live-call.ts'

/** A model that can be called, and its entry. */
export type LiveModel = { model: string; entry?: ModelEntry | undefined }

/** Picks the model for conversations that costs least for a live call, of those that are not retired; undefined where there is none. */
export function cheapestModel(
  provider: Provider,
  models: Iterable<readonly [model: string, entry: ModelEntry]>,
  now = Date.now(),
): LiveModel | undefined {
  const usage = { input: promptTokens, output: liveTokens }
  const found = [...models].flatMap(([model, entry]) => {
    const isRetired = entry.shutdown !== undefined && Date.parse(entry.shutdown) <= now
    if (entry.api !== 'chat' || isRetired || model === '*' || !servedBy(provider, model).chat) return []
    const isPriced = (entry.pricing ?? []).length > 0
    return [{ model, entry, cost: isPriced ? Number(highestCost(usage, entry, now)) : Number.MAX_VALUE }]
  })
  const [first] = found.sort((one, other) => one.cost - other.cost || (one.model < other.model ? -1 : 1))
  return first && { model: first.model, entry: first.entry }
}

/** About the length of the prompt of a live call. */
const promptTokens = 20
