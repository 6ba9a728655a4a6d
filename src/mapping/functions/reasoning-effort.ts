/** Efforts by rank. */
const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** The most tokens of a budget that still count as an effort. */
export type BudgetLimits = { low?: number; medium?: number }

/** The effort that a reasoning setting names, or the one that its token budget corresponds to. */
export function reasoningEffort(reasoning?: unknown, { low = 1024, medium = 8192 }: BudgetLimits = {}) {
  if (typeof reasoning !== 'object' || reasoning === null) return undefined
  const { effort, budget } = reasoning as { effort?: unknown; budget?: unknown }
  if (typeof effort === 'string' && effort !== '') return effort
  // A negative budget leaves the amount to the model.
  if (typeof budget !== 'number' || budget < 0) return undefined
  if (budget === 0) return 'none'
  return budget <= low ? 'low' : budget <= medium ? 'medium' : 'high'
}

/** The share of a length limit that reasoning with an effort takes. */
const shares = new Map([
  ['minimal', 0.1],
  ['low', 0.2],
  ['medium', 0.5],
  ['high', 0.8],
  ['xhigh', 0.95],
  ['max', 0.95],
])

/** The tokens for reasoning: its budget, or the share of a length limit that its effort corresponds to. */
export function reasoningBudget(reasoning?: unknown, limit = 0): number | undefined {
  if (typeof reasoning !== 'object' || reasoning === null) return undefined
  const { effort, budget } = reasoning as { effort?: unknown; budget?: unknown }
  if (typeof budget === 'number' && budget > 0) return budget
  return Math.floor(limit * (shares.get(String(effort)) ?? 0.5))
}

/**
 * The level nearest to an effort among those that a model takes, in any order: the next one above, but for efforts
 * above `high` the next one below. The level `default` is any effort where no other has a name. Without levels the effort itself.
 */
export function nearestEffort(effort?: string, levels: readonly unknown[] = []): string | undefined {
  const rank = efforts.indexOf(effort ?? '')
  const taken = efforts.filter((level) => levels.includes(level))
  if (rank === -1) return effort
  if (levels.includes('default') && rank > 0 && taken.every((level) => level === 'none')) return 'default'
  if (taken.length === 0) return effort
  const above = taken.find((level) => efforts.indexOf(level) >= rank)
  const below = taken.findLast((level) => efforts.indexOf(level) <= rank)
  return rank > efforts.indexOf('high') ? (below ?? above) : (above ?? below)
}
