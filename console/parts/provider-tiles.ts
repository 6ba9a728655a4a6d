import { counted, duration, percent } from '../format.ts'
import { html } from '../html.ts'
import { to } from '../place.ts'
import {
  type Outage,
  type Period,
  type Status,
  statuses,
  statusOf,
  type TargetHealth,
  type TargetList,
} from '../target-health.ts'
import { Spark } from './spark.ts'
import { Badge, Name } from './text.ts'

type Provider = { slug: string; name: string; models: number; problems: readonly unknown[] }

/**
 * Configured providers, each with its attempts of the last 24 hours: those that fail come first, then those with most calls; those without
 * any are named below. Without a list, their figures are not known.
 */
export function ProviderTiles({ providers, list }: { providers: readonly Provider[]; list: TargetList | undefined }) {
  const tiles = providers.map((provider) => ({ provider, lately: list && latelyOf(provider.slug, list) }))
  const rank = ({ lately }: (typeof tiles)[number]) =>
    lately ? Object.keys(statuses).indexOf(lately.status) * 1e12 - lately.attempts : 0
  const isQuiet = ({ provider, lately }: (typeof tiles)[number]) =>
    lately?.status === 'unknown' && lately.attempts === 0 && provider.problems.length === 0
  const quiet = tiles.filter(isQuiet)
  const shown = tiles.filter((tile) => !isQuiet(tile)).toSorted((one, other) => rank(one) - rank(other))
  return html`
    ${shown.length > 0 && html`<ul class="tiles">${shown.map(({ provider, lately }) => html`<li key=${provider.slug}><${Tile} provider=${provider} lately=${lately} list=${list} /></li>`)}</ul>`}
    ${quiet.length > 0 && html`<p class="quiet">Not called in the last 24 hours: ${quiet.map(({ provider: { slug } }, index) => html`${index > 0 && ', '}<a href=${hrefOf(slug)}>${slug}</a>`)}</p>`}
  `
}

function hrefOf(slug: string): string {
  return to(`providers/${encodeURIComponent(slug)}`)
}

function Tile({
  provider: { slug, name, models, problems },
  lately,
  list,
}: {
  provider: Provider
  lately: Lately | undefined
  list: TargetList | undefined
}) {
  const [text, kind] = statuses[lately?.status ?? 'unknown']
  return html`<a class="tile" href=${hrefOf(slug)}>
    <span class="tile-head"><strong><${Name} text=${name} /></strong>${lately && html`<${Badge} kind=${kind}>${text}<//>`}</span>
    <span class="quiet"><${Name} text=${slug} mono /> · ${counted(models, 'model')}${problems.length > 0 && html` · <span class="error">${counted(problems.length, 'problem')}</span>`}</span>
    ${lately && list && html`<span class="tile-figures"><span class="value">${lately.rate === undefined ? '–' : percent(lately.rate)}</span><${Spark} periods=${lately.periods} start=${list.start} minutes=${list.period_minutes} /></span>`}
    ${lately && html`<span class="quiet">${lately.rate === undefined ? 'no attempts' : `${counted(lately.counted, 'attempt')} in 24 h`}${lately.firstMs !== undefined && html` · <span title="Median of its busiest model">first token ${duration(lately.firstMs)}</span>`}</span>`}
  </a>`
}

type Lately = {
  status: Status
  attempts: number
  counted: number
  rate: number | undefined
  firstMs: number | undefined
  periods: Period[]
}

/** Adds up the targets of a provider: it is in the worst state of those that were called. */
function latelyOf(slug: string, { targets, degraded }: TargetList): Lately {
  const own = targets.filter(({ provider }) => provider === slug)
  const outagesAt = (target: TargetHealth): Outage[] =>
    degraded.filter(({ name }) => name === slug || name === target.model)
  const states = own.map((target) => statusOf(target, outagesAt(target)))
  const ofAll = statusOf(
    undefined,
    degraded.filter(({ name }) => name === slug),
  )
  const order = Object.keys(statuses) as Status[]
  const sum = (of: (target: TargetHealth) => number) => own.reduce((total, target) => total + of(target), 0)
  const [succeeded, failed] = [sum((target) => target.succeeded), sum((target) => target.failed)]
  const busiest = own.toSorted((one, other) => other.succeeded - one.succeeded)[0]
  return {
    status: order.find((one) => one === ofAll || states.includes(one)) ?? 'unknown',
    attempts: sum(({ attempts }) => attempts),
    counted: succeeded + failed,
    rate: succeeded + failed === 0 ? undefined : succeeded / (succeeded + failed),
    firstMs: busiest?.first_event_ms.p50 ?? undefined,
    periods: joined(own),
  }
}

function joined(targets: readonly TargetHealth[]): Period[] {
  const found = new Map<string, Period>()
  for (const { periods } of targets)
    for (const { start, succeeded, failed } of periods) {
      const period = found.get(start) ?? { start, succeeded: 0, failed: 0 }
      found.set(start, { start, succeeded: period.succeeded + succeeded, failed: period.failed + failed })
    }
  return [...found.values()]
}
