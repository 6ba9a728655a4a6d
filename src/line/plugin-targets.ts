import { entryAt } from '../core/price-times.ts'
import { type Target, targetId } from '../manifest/target.ts'
import type { CallPlugins } from '../plugin/call-plugins.ts'
import type { PluginTarget } from '../plugin/contract.ts'
import type { Targets } from '../routing/resolve.ts'

/** A target as plugins see it. `at` is Unix milliseconds: it decides the prices. */
export function pluginTarget(target: Target, at: number): PluginTarget {
  const { provider, model, entry } = target
  const tier = entry && entryAt(entry, at).pricing?.[0]
  return {
    id: targetId(target),
    provider: provider.slug,
    model,
    ...(typeof tier?.input_price === 'number' && { input_price: tier.input_price }),
    ...(typeof tier?.output_price === 'number' && { output_price: tier.output_price }),
    ...(entry?.context_window !== undefined && { context_window: entry.context_window }),
  }
}

/** The targets of a call as plugins put them in order. Throws RouterError. */
export async function targetsByPlugins(
  targets: Targets,
  plugins: CallPlugins | undefined,
  at: number,
): Promise<Targets> {
  if (!plugins?.have('targets')) return targets
  const shown = new Map(targets.map((target) => [pluginTarget(target, at), target]))
  const chosen = await plugins.targets([...shown.keys()])
  return chosen.flatMap((one) => shown.get(one) ?? []) as unknown as Targets
}

/** What plugins send to a target beside what its manifest and its authentication do. Throws RouterError. */
export async function headersByPlugins(
  target: Target,
  plugins: CallPlugins | undefined,
): Promise<{ name: string; value: string; how: 'replace' }[]> {
  if (!plugins?.have('send')) return []
  const headers = await plugins.send(pluginTarget(target, Date.now()))
  const { provider } = target
  const declared = new Set(Object.keys(provider.headers).map((name) => name.toLowerCase()))
  return Object.entries(headers).flatMap(([name, value]) =>
    declared.has(name) ? [] : [{ name, value, how: 'replace' as const }],
  )
}
