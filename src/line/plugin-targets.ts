import { asRouterError } from '../core/errors.ts'
import { entryAt } from '../core/price-times.ts'
import { type Target, targetId } from '../manifest/target.ts'
import type { CallPlugins } from '../plugin/call-plugins.ts'
import type { PluginTarget } from '../plugin/contract.ts'
import type { Targets } from '../routing/resolve.ts'
import type { HttpClient } from '../upstream/http-client.ts'
import type { Settlement } from './settlement.ts'

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
async function targetsByPlugins(targets: Targets, plugins: CallPlugins, at: number): Promise<Targets> {
  if (!plugins.have('targets')) return targets
  const shown = new Map(targets.map((target) => [pluginTarget(target, at), target]))
  const chosen = await plugins.targets([...shown.keys()])
  return chosen.flatMap((one) => shown.get(one) ?? []) as unknown as Targets
}

/** The same for a call that has been admitted: a plugin that ends it ends what it has reserved as well. Throws RouterError. */
export async function orderedByPlugins(
  targets: Targets,
  { plugins, settlement }: { plugins: CallPlugins; settlement: Settlement },
): Promise<Targets> {
  try {
    return await targetsByPlugins(targets, plugins, Date.now())
  } catch (thrown) {
    await settlement.fail({ target: targets[0], attempts: 0, dropped: [] }, asRouterError(thrown)).catch(() => {})
    throw thrown
  }
}

/** The client for an attempt, with what plugins send to its target beside the router's own headers. Throws RouterError. */
export async function clientByPlugins(
  httpClient: HttpClient,
  target: Target,
  plugins: CallPlugins | undefined,
): Promise<HttpClient> {
  if (!plugins?.have('send')) return httpClient
  const headers = await plugins.send(pluginTarget(target, Date.now()))
  if (Object.keys(headers).length === 0) return httpClient
  return {
    ...httpClient,
    send: (request) => httpClient.send({ ...request, headers: { ...headers, ...request.headers } }),
  }
}
