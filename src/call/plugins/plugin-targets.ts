import { asRouterError } from '../../core/errors.ts'
import { andThen } from '../../manifest/run/run-mapping.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { pluginTarget } from '../../plugin/plugin-target.ts'
import type { Targets } from '../../routing/names/resolve.ts'
import type { Settlement } from '../admission/settlement.ts'

/** Passes the targets of a call to plugins, which may order them or leave some out. Throws RouterError. */
function targetsByPlugins(targets: Targets, plugins: CallPlugins, at: number): MaybePromise<Targets> {
  if (!plugins.have('targets')) return targets
  const shown = targets.map((target) => pluginTarget(target, at))
  return andThen(plugins.targets(shown), (chosen) => {
    if (chosen === shown) return targets
    return chosen.flatMap((one) => targets[shown.indexOf(one)] ?? []) as unknown as Targets
  })
}

/**
 * Passes targets to plugins in the same way for a call that has been admitted: a plugin that ends it also releases what it has reserved.
 * Throws RouterError.
 */
export function orderedByPlugins(
  targets: Targets,
  { plugins, settlement }: { plugins: CallPlugins; settlement: Settlement },
): MaybePromise<Targets> {
  const failed = async (thrown: unknown) => {
    await settlement.fail({ target: targets[0], attempts: 0, dropped: [] }, asRouterError(thrown))
    throw thrown
  }
  try {
    const ordering = targetsByPlugins(targets, plugins, Date.now())
    return ordering instanceof Promise ? ordering.catch(failed) : ordering
  } catch (thrown) {
    return failed(thrown)
  }
}
