import { asRouterError } from '../../core/errors.ts'
import { entryAt } from '../../core/price-times.ts'
import { andThen } from '../../manifest/run-mapping.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise, PluginTarget } from '../../plugin/contract.ts'
import type { Targets } from '../../routing/resolve.ts'
import type { HttpClient } from '../../upstream/http-client.ts'
import type { Settlement } from '../admission/settlement.ts'

/** A target as plugins see it. `at` is Unix milliseconds: it decides the prices. */
export function pluginTarget(target: Target, at: number): PluginTarget {
  const { provider, model, entry } = target
  const shown: PluginTarget = { id: targetId(target), provider: provider.slug, model }
  const tier = entry && entryAt(entry, at).pricing?.[0]
  if (typeof tier?.input_price === 'number') shown.input_price = tier.input_price
  if (typeof tier?.output_price === 'number') shown.output_price = tier.output_price
  if (entry?.context_window !== undefined) shown.context_window = entry.context_window
  return shown
}

/** The targets of a call as plugins put them in order. Throws RouterError. */
function targetsByPlugins(targets: Targets, plugins: CallPlugins, at: number): MaybePromise<Targets> {
  if (!plugins.have('targets')) return targets
  const shown = targets.map((target) => pluginTarget(target, at))
  return andThen(plugins.targets(shown), (chosen) => {
    if (chosen === shown) return targets
    return chosen.flatMap((one) => targets[shown.indexOf(one)] ?? []) as unknown as Targets
  })
}

/** The same for a call that has been admitted: a plugin that ends it ends what it has reserved as well. Throws RouterError. */
export function orderedByPlugins(
  targets: Targets,
  { plugins, settlement }: { plugins: CallPlugins; settlement: Settlement },
): MaybePromise<Targets> {
  const failed = async (thrown: unknown) => {
    await settlement.fail({ target: targets[0], attempts: 0, dropped: [] }, asRouterError(thrown)).catch(() => {})
    throw thrown
  }
  try {
    const ordering = targetsByPlugins(targets, plugins, Date.now())
    return ordering instanceof Promise ? ordering.catch(failed) : ordering
  } catch (thrown) {
    return failed(thrown)
  }
}

/** The client for an attempt, with what plugins send to its target beside the router's own headers. Throws RouterError. */
export function clientByPlugins(
  httpClient: HttpClient,
  target: Target,
  plugins: CallPlugins | undefined,
): MaybePromise<HttpClient> {
  if (!plugins?.have('send')) return httpClient
  return andThen(plugins.send(pluginTarget(target, Date.now())), (headers) => {
    if (Object.keys(headers).length === 0) return httpClient
    return {
      ...httpClient,
      send: (request) => httpClient.send({ ...request, headers: { ...headers, ...request.headers } }),
    }
  })
}
