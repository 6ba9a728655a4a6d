/** Efforts by rank. */
const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** The most tokens of a budget that still count as an effort. */
export type BudgetLimits = { low?: number; medium?: number }

/** The effort that a wish for reasoning names, or the one that its budget of tokens stands for. */
export function reasoningEffort(reasoning?: unknown, { low = 1024, medium = 8192 }: BudgetLimits = {}) {
  if (typeof reasoning !== 'object' || reasoning === null) return undefined
  const { effort, budget } = reasoning as { effort?: unknown; budget?: unknown }
  if (typeof effort === 'string' && effort !== '') return effort
  // A negative budget leaves the amount to the model.
  if (typeof budget !== 'number' || budget < 0) return undefined
  if (budget === 0) return 'none'
  return budget <= low ? 'low' : budget <= medium ? 'medium' : 'high'
}

/**
 * The level nearest to an effort among those that a model takes, in any order: the next one above, but for efforts
 * above `high` the next one below. Without levels the effort itself.
 */
export function nearestEffort(effort?: string, levels: readonly unknown[] = []): string | undefined {
  const wish = efforts.indexOf(effort ?? '')
  const taken = efforts.filter((level) => levels.includes(level))
  if (wish === -1 || taken.length === 0) return effort
  const above = taken.find((level) => efforts.indexOf(level) >= wish)
  const below = taken.findLast((level) => efforts.indexOf(level) <= wish)
  return wish > efforts.indexOf('high') ? (below ?? above) : (above ?? below)
}
