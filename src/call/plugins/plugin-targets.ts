import { asRouterError } from '../../core/errors.ts'
import type { Target } from '../../manifest/target.ts'
import type { CallPlugins } from '../../plugin/call-plugins.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { pluginTarget } from '../../plugin/plugin-target.ts'
import type { Targets } from '../../routing/names/resolve.ts'
import { andThen } from '../../runtime/maybe-promise.ts'
import type { Settlement } from '../admission/settlement.ts'
import type { Admission } from '../types.ts'

/** Passes the targets of a call to plugins, which may order them, leave some out or add others. Throws RouterError. */
function targetsByPlugins(targets: Targets, { plugins, find, admission }: Ordered, at: number): MaybePromise<Targets> {
  if (!plugins.have('targets')) return targets
  const known = new Map(targets.map((target) => [pluginTarget(target, at), target]))
  const shown = [...known.keys()]
  const added = new Set<Target>()
  const add = (id: string) => {
    const target = find(id)
    if (!target) return undefined
    const made = pluginTarget(target, at)
    known.set(made, target)
    added.add(target)
    return made
  }
  return andThen(plugins.targets(shown, add), (chosen) => {
    if (chosen === shown) return targets
    const ordered = chosen.flatMap((one) => known.get(one) ?? []) as unknown as Targets
    return andThen(
      admitted(
        ordered.filter((target) => added.has(target)),
        admission,
      ),
      () => ordered,
    )
  })
}

/** Admits a call to further targets, one after the other. Throws RouterError. */
function admitted([first, ...others]: readonly Target[], admission: Pick<Admission, 'add'>): MaybePromise<unknown> {
  if (!first) return undefined
  return andThen(admission.add?.(first), () => admitted(others, admission))
}

/** Ordering of targets by plugins: `find` returns a target that the caller may use by its id. */
type Ordered = {
  plugins: CallPlugins
  admission: Pick<Admission, 'add'>
  find(id: string): Target | undefined
}

/**
 * Passes targets to plugins in the same way for a call that has been admitted: a plugin that ends it also releases what it has reserved.
 * Throws RouterError.
 */
export function orderedByPlugins(
  targets: Targets,
  { settlement, ...ordered }: Ordered & { settlement: Settlement },
): MaybePromise<Targets> {
  const failed = async (thrown: unknown) => {
    await settlement.fail({ target: targets[0], attempts: 0, dropped: [] }, asRouterError(thrown))
    throw thrown
  }
  try {
    const ordering = targetsByPlugins(targets, ordered, Date.now())
    return ordering instanceof Promise ? ordering.catch(failed) : ordering
  } catch (thrown) {
    return failed(thrown)
  }
}
