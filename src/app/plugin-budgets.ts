import { usdOf } from '../money/usd.ts'
import type { ReadBudgets } from '../plugin/budgets.ts'
import type { PluginBudget } from '../plugin/contract.ts'
import type { Store } from '../store/open.ts'

/** What plugins are told of budgets: limits and sums as this connection to the database has them. */
export function storedBudgets({ keys, groups, organizations, spend }: Store): ReadBudgets {
  return async (id) => {
    const key = keys.find(id)
    const rules = key && organizations.rules(key.organization)
    if (!key || !rules) return []
    const at = Date.now()
    const group = key.groupId === null ? undefined : groups.find(key.groupId)
    const { creditNano, enforcesBalance } = rules
    const hasBalance = enforcesBalance || creditNano > 0n
    const ofOrganization = { owner: 'organization', id: rules.id, name: rules.name } as const
    return [
      monthly({ owner: 'key', id, name: key.name }, spend.ofKey(id, at), key.monthlyLimitNano),
      ...(group
        ? [
            monthly(
              { owner: 'group', id: group.id, name: group.name },
              spend.ofGroup(group.id, at),
              group.monthlyLimitNano,
            ),
          ]
        : []),
      {
        ...monthly(ofOrganization, spend.ofOrganization(rules.id, at), null),
        ...(hasBalance && { balance_usd: usdOf(creditNano - spend.totalOfOrganization(rules.id)) }),
      },
    ]
  }
}

type Owner = Pick<PluginBudget, 'owner' | 'id' | 'name'>

function monthly(owner: Owner, spentNano: bigint, limitNano: bigint | null): PluginBudget {
  return { ...owner, spent_usd: usdOf(spentNano), ...(limitNano !== null && { limit_usd: usdOf(limitNano) }) }
}
