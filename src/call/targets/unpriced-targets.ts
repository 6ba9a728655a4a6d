import { RouterError } from '../../core/errors.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { isPriced } from '../../money/max-cost.ts'
import type { Explanation } from '../../routing/explanation.ts'
import type { Targets } from '../../routing/names/resolve.ts'
import type { Applicant } from '../types.ts'

/**
 * Returns the targets that a call may go to when its caller has a limit in money: those with a price, since nothing can be reserved
 * for the others. Without such a limit all of them. Throws RouterError `unpriced_model` when none is left.
 */
export function withoutUnpriced(
  targets: Targets,
  { key, rules, at }: Pick<Applicant, 'key' | 'rules' | 'at'>,
  explanation?: Explanation,
): Targets {
  if (!hasMoneyLimit({ key, rules })) return targets
  const [first, ...others] = targets.every((target) => isPriced({ at }, target))
    ? targets
    : targets.filter((target) => {
        const priced = isPriced({ at }, target)
        if (!priced) explanation?.skip(target, 'priced', 'has no known price, and the caller has a spending limit')
        return priced
      })
  if (first) return [first, ...others]
  throw unpriced(targets[0])
}

function hasMoneyLimit({ key, rules }: Pick<Applicant, 'key' | 'rules'>): boolean {
  const group = key.groupId === null ? undefined : rules.groupLimits.get(key.groupId)
  return key.monthlyLimitNano !== null || (group?.limitNano ?? null) !== null || rules.enforcesBalance
}

function unpriced(target: Target): RouterError {
  const id = targetId(target)
  const message = `No price is known for '${id}', and a caller with a spending limit can only call models with a known price. Set its price in the router's settings: providers.${target.provider.slug}.models.`
  return new RouterError('unpriced_model', message, { param: 'model' })
}
