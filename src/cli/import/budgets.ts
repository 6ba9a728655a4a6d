/** A budget of another gateway as a monthly limit in USD; `note` says in which way it differs. */
export type MonthlyLimit = { limit: number; note?: string }

const dayMs = 86_400_000
const unitsMs: { readonly [unit: string]: number } = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: dayMs,
  w: 7 * dayMs,
  mo: 30 * dayMs,
  M: 30 * dayMs,
  y: 365 * dayMs,
  Y: 365 * dayMs,
}

const words: { readonly [word: string]: string } = {
  hourly: '1h',
  daily: '1d',
  weekly: '7d',
  monthly: '1mo',
  yearly: '1y',
}

/** Returns a budget for a time such as `30d` or `1mo` as a monthly limit. Without a time it is for good, less what was `spent`. */
export function monthlyLimit(budget: number, duration: string | undefined, spent = 0): MonthlyLimit {
  if (budget <= 0) return { limit: tiny }
  if (duration === undefined) {
    const limit = Math.max(budget - spent, 0)
    const rest = limit === 0 ? tiny : limit
    return {
      limit: rest,
      note: `a budget of $${budget} for good became $${rounded(rest)} a month: what was left of it`,
    }
  }
  const [, count = '1', unit = ''] = /^(\d+)\s*([a-zA-Z]+)$/.exec(words[duration] ?? duration) ?? []
  const ms = Number(count) * (unitsMs[unit] ?? 0)
  if (ms === 0) return { limit: budget, note: `a budget of $${budget} for '${duration}' became the same sum a month` }
  if (Math.abs(ms - 30 * dayMs) <= 2 * dayMs) {
    const isCalendar = unit === 'mo' || unit === 'M'
    return isCalendar ? { limit: budget } : { limit: budget, note: `${duration} became the calendar month (UTC)` }
  }
  const limit = rounded((budget * 30 * dayMs) / ms)
  return {
    limit,
    note: `$${budget} in ${duration} became $${limit} a calendar month, all of which can be spent at once`,
  }
}

/** Limit of a budget that is used up: 0 would be no limit. USD. */
const tiny = 0.000001

function rounded(usd: number): number {
  return Number(usd.toFixed(6))
}
