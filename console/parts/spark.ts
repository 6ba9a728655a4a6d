import { counted } from '../format.ts'
import { html } from '../html.ts'
import type { Period } from '../target-health.ts'

/** Draws the attempts of periods as bars, what failed in its own colour; periods without attempts are empty. */
export function Spark({ periods, start, minutes }: { periods: readonly Period[]; start: string; minutes: number }) {
  const periodMs = minutes * 60_000
  const begin = Date.parse(start)
  const found = new Map(periods.map((period) => [Math.round((Date.parse(period.start) - begin) / periodMs), period]))
  const count = Math.max(Math.ceil((Date.now() - begin) / periodMs), ...[...found.keys()].map((at) => at + 1))
  const most = Math.max(1, ...periods.map(({ succeeded, failed }) => succeeded + failed))
  const failed = periods.reduce((sum, period) => sum + period.failed, 0)
  const succeeded = periods.reduce((sum, period) => sum + period.succeeded, 0)
  const label = `${counted(succeeded, 'attempt')} succeeded, ${failed} failed`
  const height = (part: number) => ({ height: `${part === 0 ? 0 : Math.max(8, (100 * part) / most)}%` })
  return html`<span class="spark" role="img" aria-label=${label}>${Array.from({ length: count }, (_, index) => {
    const period = found.get(index)
    return html`<span key=${index} class="period">${period && html`<span class="failed" style=${height(period.failed)}></span><span class="succeeded" style=${height(period.succeeded)}></span>`}</span>`
  })}</span>`
}
