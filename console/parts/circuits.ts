import { html } from '../html.ts'
import type { Outage } from '../target-health.ts'
import { Time } from './text.ts'

/** Describes circuits that are not closed: what that means for calls, since when, why, and when they are tried again. */
export function Circuits({ outages }: { outages: readonly Outage[] }) {
  return outages.map(
    (outage) =>
      html`<p key=${`${outage.scope} ${outage.name} ${outage.organization}`}>${circuitText(outage)}${outage.since && html`, since <${Time} at=${outage.since} />`}${outage.reason && html` (<code>${outage.reason}</code>)`}${outage.until && html`. Next attempt: <${Time} at=${outage.until} />`}.</p>`,
  )
}

function circuitText({ scope, state, organization }: Outage): string {
  const of = { address: ' of its address', credential: ' of its credential', target: '' }[scope]
  const alone = organization === undefined ? '' : ' for one organization only'
  if (state === 'open') return `Circuit${of} open${alone}: no calls are sent`
  if (state === 'paused') return `Paused${of}${alone}: the provider asked for a break`
  if (state === 'half_open') return `Circuit${of} half-open${alone}: single calls test it`
  return `Recovering${alone}: it gets a growing share of the calls`
}
