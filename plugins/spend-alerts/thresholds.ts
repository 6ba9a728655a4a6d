import type { PluginBudget } from 'inference-router/plugin'

/** `value` is percent of a monthly limit, or US dollars. */
export type Threshold = {
  kind: 'percent' | 'spend' | 'balance_below'
  of: Owner
  value: number
}

type Owner = PluginBudget['owner']

/** Thresholds as the options list them. */
export type ThresholdOptions = {
  percent?: { [owner in Owner]?: number[] }
  spend_usd?: { [owner in Owner]?: number[] }
  balance_below_usd?: number[]
}

export function thresholdsOf({ percent, spend_usd, balance_below_usd = [] }: ThresholdOptions): Threshold[] {
  const listed = (kind: Threshold['kind'], byOwner: ThresholdOptions['percent'] = {}): Threshold[] =>
    Object.entries(byOwner).flatMap(([of, values]) => values.map((value) => ({ kind, of: of as Owner, value })))
  return [
    ...listed('percent', percent),
    ...listed('spend', spend_usd),
    ...listed('balance_below', { organization: balance_below_usd }),
  ]
}

/** A threshold of one budget: whether it is crossed now. */
export type State = { budget: PluginBudget; threshold: Threshold; isCrossed: boolean; month: string }

/** Returns the state of a threshold; undefined where the budget has no such threshold. */
export function crossedBy(budget: PluginBudget, threshold: Threshold, at = Date.now()): State | undefined {
  const { kind, of, value } = threshold
  if (budget.owner !== of) return undefined
  const isCrossed = reached(budget, kind, value)
  const month = new Date(at).toISOString().slice(0, 7)
  return isCrossed === undefined ? undefined : { budget, threshold, isCrossed, month }
}

function reached({ spent_usd, limit_usd, balance_usd }: PluginBudget, kind: Threshold['kind'], value: number) {
  if (kind === 'spend') return spent_usd >= value
  if (kind === 'percent') return limit_usd === undefined ? undefined : spent_usd * 100 >= limit_usd * value
  return balance_usd === undefined ? undefined : balance_usd < value
}

/** Returns the name of one crossing: a limit that was changed can be crossed again in its month, a balance when it has been high enough. */
export function nameOf({ budget, threshold: { kind, of, value }, month }: State): string {
  const which = kind === 'balance_below' ? '' : `${month} ${kind === 'percent' ? budget.limit_usd : ''}`
  return `${kind} ${value} ${of} ${budget.id} ${which}`
}

/** Alert that is sent to webhooks. US dollars; `budget` is a monthly limit, or the balance. */
export type Alert = {
  type: 'spend_alert'
  threshold: { kind: Threshold['kind']; value: number; budget: number | null; current_spend: number }
  owner: { type: Owner; id: string; name: string }
  fired_at: string
}

export function alertOf({ budget, threshold: { kind, value } }: State, at = Date.now()): Alert {
  const { owner, id, name, spent_usd, limit_usd, balance_usd } = budget
  const money = kind === 'balance_below' ? balance_usd : limit_usd
  return {
    type: 'spend_alert',
    threshold: { kind, value, budget: money ?? null, current_spend: spent_usd },
    owner: { type: owner, id, name },
    fired_at: new Date(at).toISOString(),
  }
}

/** Returns a human-readable sentence with the same facts. */
export function sentenceOf({ threshold: { kind, value, budget, current_spend }, owner }: Alert): string {
  const who = `${owner.type} '${owner.name}'`
  if (kind === 'balance_below') return `The balance of ${who} is ${usd(budget ?? 0)}, below ${usd(value)}.`
  const spent = `The ${who} has spent ${usd(current_spend)} this month`
  return kind === 'percent'
    ? `${spent}: ${value} % of its limit of ${usd(budget ?? 0)}.`
    : `${spent}: at least ${usd(value)}.`
}

function usd(value: number): string {
  return `$${value.toFixed(2)}`
}
