import { type Budget, forecastOf } from '../forecast.ts'
import { date, percent, usd } from '../format.ts'
import { html } from '../html.ts'

/** A budget as a bar, with the day on which it runs out at the present pace. Nothing where there is no limit. */
export function BudgetBar(budget: Budget) {
  const { spent, limit } = budget
  if (limit <= 0) return null
  const share = Math.min(Math.max(spent / limit, 0), 1)
  const { kind, text } = forecastOf(budget, date)
  const used = `${usd(spent)} of ${usd(limit)}, ${percent(spent / limit)}`
  return html`<span class="budget">
    <span class=${`budget-bar ${kind}`} role="meter" aria-label="Budget" aria-valuemin=${0} aria-valuemax=${limit} aria-valuenow=${Math.min(Math.max(spent, 0), limit)} aria-valuetext=${[used, text].filter(Boolean).join(', ')} title=${used}><span style=${{ width: `${share * 100}%` }}></span></span>
    ${text !== '' && html`<span class=${kind === 'good' ? 'hint' : `hint ${kind}`}>${text}</span>`}
  </span>`
}
