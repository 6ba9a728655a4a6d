import { useEffect, useRef } from 'preact/hooks'
import { api } from '../api.ts'
import { count, counted, duration, percent } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { Circuits } from '../parts/circuits.ts'
import { Select } from '../parts/form.ts'
import { Loading, Page, Section } from '../parts/page.ts'
import { Spark } from '../parts/spark.ts'
import { Table } from '../parts/table.ts'
import { Badge, Name, Time } from '../parts/text.ts'
import { changeQuery, type PageProps, to } from '../place.ts'
import { isReachable } from '../reachable.ts'
import {
  lasting,
  loadTargets,
  type Outage,
  outagesOf,
  type Status,
  seesInstance,
  statuses,
  statusOf,
  type TargetHealth,
  type TargetList,
} from '../target-health.ts'

const reloadMs = 5_000
const spans = [
  ['1', 'Last hour'],
  ['4', 'Last 4 hours'],
  ['24', 'Last 24 hours'],
] as const

/** A target, or a provider's account or address without any calls. */
type Row = { name: string; provider: string; target: TargetHealth | undefined; outages: Outage[]; status: Status }

/** Shows how each target of a provider answers: what fails, since when, and what the provider says. */
export default function Health({ query }: PageProps) {
  const hours = spans.some(([value]) => value === query.get('hours')) ? Number(query.get('hours')) : 4
  const found = useLoad(
    async (signal) => {
      const [targets, { providers }] = await Promise.all([
        loadTargets(hours, signal),
        api<{ providers: { slug: string; configured: boolean }[] }>('v1/manage/providers', { signal }),
      ])
      const slugs = providers.filter(({ configured }) => configured).map(({ slug }) => slug)
      return { targets, configured: slugs, at: Date.now() }
    },
    [hours],
  )
  // A new request would end one that takes long.
  const isLoading = useRef(true)
  isLoading.current = found.isLoading
  useEffect(() => {
    const timer = setInterval(() => document.hidden || isLoading.current || found.reload(), reloadMs)
    return () => clearInterval(timer)
  }, [hours])
  return html`
    <${Page} title="Health" actions=${html`<div class="filters"><${Select} name="hours" label="Time" value=${String(hours)} options=${spans} onInput=${(value: string) => changeQuery({ hours: value })} /></div>`}>
      <${Loading} of=${found}>${({ targets, configured, at }: NonNullable<typeof found.data>) => html`<${Report} list=${targets} configured=${configured} at=${at} />`}<//>
    <//>
  `
}

/** Shows what was loaded `at` a time (Unix milliseconds). */
function Report({ list, configured, at }: { list: TargetList; configured: readonly string[]; at: number }) {
  const rows = rowsOf(list, at)
  const troubled = rows.filter(({ status }) => status === 'down' || status === 'shaky')
  const seen = new Set(rows.map(({ provider }) => provider))
  const silent = configured.filter((slug) => !seen.has(slug))
  return html`
    <p role="status" class=${`verdict ${isReachable.value ? (troubled.length > 0 ? 'bad' : 'good') : ''}`}>${isReachable.value ? verdict(rows, troubled) : 'Not known as long as the router does not answer.'}</p>
    ${!seesInstance() && html`<p class="hint">Only the calls of your organization are counted. A key with instance: read, which the command line grants, shows those of all.</p>`}
    ${troubled.length > 0 && html`<${Section} title="Needs attention"><div class="problems">${troubled.map((row) => html`<${Problem} key=${row.name} row=${row} list=${list} at=${at} />`)}</div><//>`}
    <${Section} title="Targets">
      <${Targets} rows=${rows} list=${list} />
      ${silent.length > 0 && html`<details><summary>${counted(silent.length, 'configured provider')} not called in this time</summary><p>${silent.map((slug, index) => html`${index > 0 && ', '}<a href=${to(`providers/${encodeURIComponent(slug)}`)}>${slug}</a>`)}</p></details>`}
      <p class="hint">Attempts since <${Time} at=${list.counted_since} />. Success, first token and duration are those of attempts: a failure counts here even if another target then served the call. Times are medians.</p>
    <//>
  `
}

function verdict(rows: readonly Row[], troubled: readonly Row[]): string {
  if (rows.length === 0) return 'No target was called in this time.'
  if (troubled.length === 0 && rows.length === 1) return 'The only target that was called is healthy.'
  if (troubled.length === 0) return `All ${counted(rows.length, 'target')} that were called are healthy.`
  const down = troubled.filter(({ status }) => status === 'down').length
  const shaky = troubled.length - down
  const parts = [
    ...(down > 0 ? [`${down} of ${counted(rows.length, 'target')} ${down === 1 ? 'is' : 'are'} failing`] : []),
    ...(shaky > 0
      ? [
          `${shaky} ${down > 0 ? 'more ' : `of ${counted(rows.length, 'target')} `}${shaky === 1 ? 'is' : 'are'} unstable`,
        ]
      : []),
  ]
  return `${parts.join(', ')}.`
}

/** Returns the targets, those with problems first; a circuit of a target or provider that was not called has a row as well. */
function rowsOf({ targets, degraded }: TargetList, at: number): Row[] {
  const rows = targets.map((target): Row => {
    const outages = outagesOf(target, degraded)
    return { name: target.model, provider: target.provider, target, outages, status: statusOf(target, outages, at) }
  })
  const shown = new Set(rows.flatMap(({ outages }) => outages))
  const others = Map.groupBy(
    degraded.filter((outage) => !shown.has(outage)),
    ({ name }) => name,
  )
  for (const [name, outages] of others)
    rows.push({
      name,
      provider: name.split('/')[0] ?? name,
      target: undefined,
      outages,
      status: statusOf(undefined, outages, at),
    })
  const rank = ({ status, target }: Row) => order.indexOf(status) * 1e12 - (target?.attempts ?? 0)
  return rows.toSorted((one, other) => rank(one) - rank(other))
}

const order = Object.keys(statuses) as Status[]

/** One problem: since when, how much of it, what the provider wrote, and where to look further. */
function Problem({ row, list, at }: { row: Row; list: TargetList; at: number }) {
  const { name, provider, target, outages, status } = row
  const last = target?.last_failure
  const since = target?.failing_since
  return html`<article class=${`problem ${status}`}>
    <div class="problem-head"><h3><${Name} text=${name} /></h3><${StatusBadge} status=${status} />${target && html`<${Spark} periods=${target.periods} start=${list.start} minutes=${list.period_minutes} />`}</div>
    ${since && html`<p><strong>Failing since <${Time} at=${since} /></strong>, for ${lasting(since, at)}.</p>`}
    ${target && target.failed > 0 && html`<p>${count(target.failed)} of ${counted(target.succeeded + target.failed, 'attempt')} failed: ${failuresText(target.failures)}.</p>`}
    <${Circuits} outages=${outages} />
    ${last && html`<${LastFailure} last=${last} />`}
    <p class="actions">
      ${last && last.organization === undefined && html`<a href=${to(`calls/${encodeURIComponent(last.call)}`)}>Last failed call</a>`}
      ${target && html`<a href=${to('calls', { model: name, time: 'day' })}>Calls</a>`}
      <a href=${to(`providers/${encodeURIComponent(provider)}`)}>Provider</a>
      <a href=${to('names')}>Edit policies</a>
    </p>
  </article>`
}

function LastFailure({ last }: { last: NonNullable<TargetHealth['last_failure']> }) {
  const { code, class: kind, provider_code: own, provider_message: message, organization } = last
  return html`
    <p>Last failure <${Time} at=${last.at} />: <code>${code}</code>${kind !== code && ` (${kind.replaceAll('_', ' ')})`}${organization !== undefined && ', in a call of another organization'}.</p>
    ${
      message
        ? html`<blockquote><p class="quiet">The provider says${own && html` (<code>${own}</code>)`}:</p><bdi dir="auto">${message}</bdi></blockquote>`
        : own && html`<p>The provider's code: <code>${own}</code></p>`
    }`
}

function failuresText(failures: Record<string, number>): string {
  return Object.entries(failures)
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, times]) => `${count(times)} ${failureNames[name] ?? name.replaceAll('_', ' ')}`)
    .join(', ')
}

/** Names of classes of failures that do not explain themselves. */
const failureNames: Record<string, string> = {
  connection: 'not connected',
  failed: 'provider errors',
  timeout: 'timed out',
  credential: 'credential or quota refused',
  gone: 'model gone',
}

function StatusBadge({ status }: { status: Status }) {
  const [text, kind] = statuses[status]
  return html`<${Badge} kind=${kind}>${text}<//>`
}

function Targets({ rows, list }: { rows: readonly Row[]; list: TargetList }) {
  const of = (show: (target: TargetHealth) => unknown) => (row: Row) => (row.target ? show(row.target) : '')
  const percentiles = ({ p50, p95 }: TargetHealth['duration_ms']) =>
    p50 === null ? '' : html`<span title=${`p95: ${duration(p95)}`}>${duration(p50)}</span>`
  return html`<${Table} label="Targets" rows=${rows} keyOf=${({ name }: Row) => name} empty="No target was called in this time." columns=${[
    {
      head: 'Target',
      sortBy: ({ name }: Row) => name,
      cell: ({ name, target }: Row) =>
        target
          ? html`<a href=${to('calls', { model: name, time: 'day' })}><${Name} text=${name} /></a>`
          : html`<${Name} text=${name} />`,
    },
    {
      head: 'State',
      sortBy: ({ status }: Row) => order.indexOf(status),
      cell: ({ status }: Row) => html`<${StatusBadge} status=${status} />`,
    },
    {
      head: 'Success',
      isNumber: true,
      sortBy: ({ target }: Row) => target?.success_rate ?? undefined,
      cell: of(({ success_rate: rate }) => (rate === null ? '–' : percent(rate))),
    },
    {
      head: 'Attempts',
      isMinor: true,
      cell: of(
        (target) => html`<${Spark} periods=${target.periods} start=${list.start} minutes=${list.period_minutes} />`,
      ),
    },
    {
      head: 'Succeeded',
      isNumber: true,
      isMinor: true,
      sortBy: ({ target }: Row) => target?.succeeded,
      cell: of(({ succeeded }) => count(succeeded)),
    },
    {
      head: 'Failed',
      isNumber: true,
      sortBy: ({ target }: Row) => target?.failed,
      cell: of(({ failed }) => count(failed)),
    },
    { head: 'First token', isNumber: true, isMinor: true, cell: of((target) => percentiles(target.first_event_ms)) },
    {
      head: 'Duration',
      isNumber: true,
      isMinor: true,
      sortBy: ({ target }: Row) => target?.duration_ms.p50 ?? undefined,
      cell: of((target) => percentiles(target.duration_ms)),
    },
    {
      head: 'Duration p95',
      isNumber: true,
      isMinor: true,
      sortBy: ({ target }: Row) => target?.duration_ms.p95 ?? undefined,
      cell: of((target) => duration(target.duration_ms.p95)),
    },
    {
      head: 'Last failure',
      isMinor: true,
      sortBy: ({ target }: Row) => target?.last_failure?.at,
      cell: of(({ last_failure: last }) => last && html`<${Time} at=${last.at} />`),
    },
  ]} />`
}
