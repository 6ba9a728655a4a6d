const dayMs = 86_400_000

/** A monthly budget, or a balance, which does not end with the month. US dollars; `pace` is the spend of a day. */
export type Budget = { spent: number; limit: number; pace: number | undefined; isBalance?: boolean }

/** State of a budget: the day on which it runs out, if that is foreseeable, and how serious that is. */
export type Forecast = { kind: 'good' | 'warn' | 'bad'; at?: string; text: string }

/** Returns the state of a budget and what happens to it if the spend goes on as in the last 24 hours; `day` formats a day. */
export function forecastOf(
  { spent, limit, pace, isBalance = false }: Budget,
  day: (at: string) => string,
  now = Date.now(),
): Forecast {
  const left = limit - spent
  const end = monthEnd(now)
  if (left <= 0) return { kind: 'bad', text: isBalance ? 'used up' : `used up until ${day(end.toISOString())}` }
  if (pace === undefined) return { kind: 'good', text: '' }
  if (pace <= 0) return { kind: 'good', text: 'no spend in the last 24 hours' }
  const at = now + (left / pace) * dayMs
  const isLate = isBalance ? at - now > maxDays * dayMs : at >= end.getTime()
  if (isLate) return { kind: 'good', text: isBalance ? `lasts more than ${maxDays} days` : 'enough for this month' }
  const when = new Date(at).toISOString()
  const isSoon = at - now < soonMs
  return { kind: isSoon ? 'bad' : 'warn', at: when, text: `runs out on ${day(when)} at this pace` }
}

/** Days after which nothing is foreseen. */
const maxDays = 90
const soonMs = 3 * dayMs

function monthEnd(now: number): Date {
  const at = new Date(now)
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1))
}
