import type { PluginBudget } from './contract.ts'

/** Reads the budgets that calls of a key are paid from; an unknown key has none. */
export type ReadBudgets = (key: string) => Promise<readonly PluginBudget[]>

/** For plugins that are loaded without a database. */
export const noBudgets: ReadBudgets = async () => []

/** Budgets of a database that is opened later: what is asked before then waits. */
export function budgetsLater(): { budgets: ReadBudgets; open(read: ReadBudgets): void } {
  const { promise, resolve: open } = Promise.withResolvers<ReadBudgets>()
  return { budgets: async (key) => (await promise)(key), open }
}
