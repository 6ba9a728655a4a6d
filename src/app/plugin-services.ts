import type { JsonRoute } from '../http/types.ts'
import { usdOf } from '../money/usd.ts'
import type { PluginBudget } from '../plugin/contract.ts'
import type { ReadBudgets, ValueStore } from '../plugin/kit.ts'
import type { Store } from '../store/open.ts'
import { TooManyValues } from '../store/plugin-values.ts'

/** Returns the values of plugins in the database of this thread, which writes them. */
export function storedValues({ pluginValues }: Pick<Store, 'pluginValues'>): ValueStore {
  const { get, set, add, delete: remove } = pluginValues
  return {
    get: (plugin, key) => get(plugin, key),
    set,
    add,
    delete: remove,
  }
}

/** Returns the route by which a worker asks the accounting to write values: no client reaches it. */
export function valuesRoute(values: ValueStore): JsonRoute {
  return {
    path: 'plugin values',
    async answer({ params }) {
      const { how, plugin, key, value, until } = params as Change
      try {
        const isNew = await changes[how](values, plugin, key, value, Number(until))
        return { text: JSON.stringify({ isNew }) }
      } catch (thrown) {
        if (!(thrown instanceof TooManyValues)) throw thrown
        return { text: JSON.stringify({ refusal: thrown.message }) }
      }
    },
  }
}

/** Returns the values of plugins as a worker sees them: it reads its own connection to the database, and the accounting writes. */
export function remoteValues(store: Pick<Store, 'pluginValues'>, ask: JsonRoute['answer']): ValueStore {
  const change = async (how: Change['how'], plugin: string, key: string, value = '', until = 0) => {
    const params = { how, plugin, key, value, until: String(until) }
    const { text = '{}' } = await ask({ params, headers: {}, query: {}, readBody: async () => undefined })
    const { isNew, refusal } = JSON.parse(String(text)) as { isNew?: boolean; refusal?: string }
    if (refusal !== undefined) throw new Error(refusal)
    return isNew === true
  }
  return {
    get: (plugin, key) => store.pluginValues.get(plugin, key),
    set: async (...given) => void (await change('set', ...given)),
    add: (...given) => change('add', ...given),
    delete: async (...given) => void (await change('delete', ...given)),
  }
}

type Change = { how: 'set' | 'add' | 'delete'; plugin: string; key: string; value: string; until: string }
type Changing = (values: ValueStore, plugin: string, key: string, value: string, until: number) => Promise<unknown>

const changes: { readonly [how in Change['how']]: Changing } = {
  set: (values, ...given) => values.set(...given),
  add: (values, ...given) => values.add(...given),
  delete: (values, plugin, key) => values.delete(plugin, key),
}

/** Returns the budgets for plugins: limits and sums as this connection to the database has them. */
export function storedBudgets({ keys, groups, organizations, spend }: Store): ReadBudgets {
  return async (id) => {
    const key = await keys.find(id)
    const rules = key && (await organizations.rules(key.organization))
    if (!key || !rules) return []
    const at = Date.now()
    const group = key.groupId === null ? undefined : await groups.find(key.groupId)
    const { creditNano, enforcesBalance } = rules
    const hasBalance = enforcesBalance || creditNano > 0n
    const ofOrganization = { owner: 'organization', id: rules.id, name: rules.name } as const
    return [
      monthly({ owner: 'key', id, name: key.name }, await spend.ofKey(id, at), key.monthlyLimitNano),
      ...(group
        ? [
            monthly(
              { owner: 'group', id: group.id, name: group.name },
              await spend.ofGroup(group.id, at),
              group.monthlyLimitNano,
            ),
          ]
        : []),
      {
        ...monthly(ofOrganization, await spend.ofOrganization(rules.id, at), null),
        ...(hasBalance && { balance_usd: usdOf(creditNano - (await spend.totalOfOrganization(rules.id))) }),
      },
    ]
  }
}

type Owner = Pick<PluginBudget, 'owner' | 'id' | 'name'>

function monthly(owner: Owner, spentNano: bigint, limitNano: bigint | null): PluginBudget {
  return { ...owner, spent_usd: usdOf(spentNano), ...(limitNano !== null && { limit_usd: usdOf(limitNano) }) }
}
