import { entryAt } from '../core/models/price-times.ts'
import { type Target, targetId } from '../manifest/target.ts'
import type { PluginTarget } from './contract.ts'

/** Returns a target as plugins see it. `at` is Unix milliseconds: it decides the prices. */
export function pluginTarget(target: Target, at: number): PluginTarget {
  const { provider, model, entry } = target
  const shown: PluginTarget = { id: targetId(target), provider: provider.slug, model }
  const tier = entry && entryAt(entry, at).pricing?.[0]
  if (typeof tier?.input_price === 'number') shown.input_price = tier.input_price
  if (typeof tier?.output_price === 'number') shown.output_price = tier.output_price
  if (entry?.context_window !== undefined) shown.context_window = entry.context_window
  return shown
}
