import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { all, api, events, type Query } from '../api.ts'
import type { KeyEntry } from '../entries.ts'
import { count, counted, duration, percent, short, usd } from '../format.ts'
import { html } from '../html.ts'
import { type Loaded, useLoad } from '../load.ts'
import { Chart } from '../parts/chart.ts'
import { FileProblems } from '../parts/file-problems.ts'
import { FirstProvider, hasRealCalls } from '../parts/first-provider.ts'
import { Field, Select } from '../parts/form.ts'
import { Failure, Loading, Page, Section } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Money, Name } from '../parts/text.ts'
import { chosenSpan, chosenTimes, TimeRange } from '../parts/time-range.ts'
import { changeQuery, type PageProps, to } from '../place.ts'
import { isReachable } from '../reachable.ts'
import { spendSeries } from '../series.ts'
import { tagNames } from '../suggestions.ts'

/** The figures of a period, as the API gives them. */
type Figures = {
  total_requests: number
  failed_requests: number
  partial_requests: number
  spend: number
  input_tokens: number
  cached_tokens: number
  output_tokens: number
  total_tokens: number
}
type Period = Figures & { grouped_data?: (Figures & { group_by_values: Record<string, string | null> })[] }
type Usage = { usage: Record<string, Period> }
/** Percentiles; null where no call has any. */
type Percentiles = { p50?: number | null; p95?: number | null } | undefined
type Speeds = { first_event_ms?: Percentiles; duration_ms?: Percentiles; tokens_per_second?: Percentiles }
type Latency = Speeds & {
  calls: number
  complete: boolean
  groups?: (Speeds & { value: string | null; calls: number })[]
}
type Live = {
  calls: number
  failed: number
  input_tokens: number
  output_tokens: number
  cost: number
  under_way: number
  streams: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const ranges = [
  ['day', 'Last 24 hours'],
  ['week', 'Last 7 days'],
  ['month', 'This month (UTC)'],
  ['quarter', 'Last 90 days'],
] as const
const groups = [
  ['model', 'Model'],
  ['provider', 'Provider'],
  ['key', 'Key'],
  ['group_name', 'Group'],
  ['user', 'User'],
  ['tag', 'Label or tag …'],
] as const

/** Groupings that show the speed of calls as well. */
const timed = ['model', 'provider', 'key']

/** Shows spending, the number of calls, failures, and speed. */
export default function Overview({ query }: PageProps) {
  const range = query.get('range') ?? 'day'
  const choice = query.get('by') ?? 'model'
  const tag = query.get('tag') ?? ''
  const by = choice !== 'tag' ? choice : isTag(tag) ? tag : 'model'
  const live = useLive()
  return html`
    <${Page} title="Overview" actions=${html`
      <div class="filters">
        <${TimeRange} name="range" value=${range} options=${ranges} query=${query} />
        <${Select} name="by" label="By" value=${choice} options=${groups} onInput=${(value: string) => changeQuery({ by: value })} />
        ${choice === 'tag' && html`<${TagField} tag=${tag} />`}
      </div>`}>
      <${FileProblems} />
      <${Now} live=${live} />
      <${OverTime} range=${range} query=${query} by=${by} version=${live.chartVersion} />
    <//>
  `
}

/** Asks for the label or tag that spend is divided by, and suggests those that keys and the latest calls have. */
function TagField({ tag }: { tag: string }) {
  const names = useLoad(tagNames)
  return html`<${Field} name="tag" label="Label or tag" placeholder="label.team" type="search" value=${tag} options=${names.data ?? []} onInput=${(value: string) => changeQuery({ tag: value })} />`
}

/** Checks whether a text is `label.<name>` of a key, or `extra.<field>` of a call's metadata. */
function isTag(text: string): boolean {
  return /^(label|extra)\../s.test(text)
}

/** Follows the current activity; a version changes when figures that were loaded are out of date. */
function useLive(): { now: Live | undefined; rate: Live | undefined; version: number; chartVersion: number } {
  const now = useSignal<Live | undefined>(undefined)
  const rate = useSignal<Live | undefined>(undefined)
  const version = useSignal(0)
  const chartVersion = useSignal(0)
  useEffect(() => {
    const aborted = new AbortController()
    const [isDue, isChartDue] = [dueEvery(reloadMs), dueEvery(reloadChartsMs)]
    let wasNew = false
    const listen = async () => {
      for await (const event of events<Live>('v1/manage/live', aborted.signal)) {
        const last = now.value
        if (last) rate.value = difference(event, last)
        const isNew = last !== undefined && last.calls !== event.calls
        // Once more a second later: a call may be counted here before its row can be read.
        const isStale = isNew || wasNew
        wasNew = isNew
        if (isDue(isStale)) version.value++
        if (isChartDue(isStale)) chartVersion.value++
        now.value = event
      }
    }
    const keepListening = async () => {
      while (!aborted.signal.aborted) {
        await listen().catch(() => {})
        now.value = undefined
        rate.value = undefined
        await new Promise((resolve) => setTimeout(resolve, againMs))
      }
    }
    void keepListening()
    return () => aborted.abort()
  }, [])
  // What was counted last is not what happens now.
  const current = isReachable.value ? { now: now.value, rate: rate.value } : { now: undefined, rate: undefined }
  return { ...current, version: version.value, chartVersion: chartVersion.value }
}

/** Sums are loaded anew no more often than this, and what many calls are looked at for. */
const [reloadMs, reloadChartsMs] = [900, 15_000]
const againMs = 3_000

/** Returns a check of whether data has become out of date, and it is time to load it anew. */
function dueEvery(ms: number): (isNew: boolean) => boolean {
  let isStale = false
  let at = 0
  return (isNew) => {
    isStale ||= isNew
    if (!isStale || Date.now() - at < ms) return false
    isStale = false
    at = Date.now()
    return true
  }
}

function difference(now: Live, last: Live): Live {
  const of = (name: keyof Live) => Math.max(0, now[name] - last[name])
  return {
    calls: of('calls'),
    failed: of('failed'),
    input_tokens: of('input_tokens'),
    output_tokens: of('output_tokens'),
    cost: of('cost'),
    under_way: now.under_way,
    streams: now.streams,
  }
}

function Now({ live: { now, rate, version } }: { live: ReturnType<typeof useLive> }) {
  const figures = useLoad(
    async (signal) => {
      const asked = (path: string, query: Query = {}) => api<never>(path, { query, signal })
      const today = new Date().toISOString().slice(0, 10)
      const [org, limits, enforcing, ofToday, ofMonth, { refusals }] = await Promise.all([
        asked('v1/manage/org') as Promise<{ balance: number }>,
        (asked('v1/manage/org/limits') as Promise<Record<string, number | null>>).catch(() => ({})),
        (asked('v1/manage/org/balance') as Promise<{ enforces_balance: boolean }>).catch(() => undefined),
        asked('v1/manage/org/usage', { start: today, end: today }) as Promise<Usage>,
        asked('v1/manage/org/usage', { resolution: 'month', group_by: 'provider' }) as Promise<Usage>,
        asked('v1/manage/refusals', { limit: mostRefusals }) as Promise<{ refusals: { at: string }[] }>,
      ])
      const lastHour = new Date(Date.now() - hourMs).toISOString()
      return {
        org,
        limits,
        enforces: enforcing?.enforces_balance === true,
        today: only(ofToday),
        month: only(ofMonth),
        isUsed: hasRealCalls(ofMonth),
        refused: refusals.filter(({ at }) => at >= lastHour).length,
      }
    },
    [version],
  )
  return html`<${Loading} of=${figures}>${({
    org,
    limits,
    enforces,
    today,
    month,
    isUsed,
    refused,
  }: NonNullable<typeof figures.data>) => html`
    <div role="group" aria-label="Now"><dl class="cards">
      ${card('Spent today', html`<${Money} value=${today.spend} />`, counted(today.total_requests, 'call'))}
      ${card('Spent this month', html`<${Money} value=${month.spend} />`, counted(month.total_requests, 'call'))}
      ${card('Balance', html`<${Money} value=${org.balance} />`, enforces ? 'calls stop at zero' : 'does not limit calls')}
      ${card('Failed today', percent(today.total_requests === 0 ? 0 : today.failed_requests / today.total_requests), `${count(today.failed_requests)} of ${counted(today.total_requests, 'call')}`)}
      ${card('Refused', html`<a href=${to('calls', { outcome: 'refused' })}>${count(refused)}${refused >= mostRefusals && '+'}</a>`, 'in the last hour')}
      ${card('In flight', now ? count(now.under_way) : '–', now ? counted(now.streams, 'stream') : 'not connected')}
      ${card('Calls per second', rate ? short(rate.calls) : '–', requestsLimit(limits))}
      ${card('Tokens per second', rate ? short(rate.input_tokens + rate.output_tokens) : '–', rate ? `${usd(rate.cost * 60)} per minute` : '')}
    </dl></div>
    ${!isUsed && html`<${FirstProvider} />`}`}<//>`
}

/**
 * Maximum number of refused calls that are kept; they were refused before a provider was asked, and are not among the calls that failed.
 */
const mostRefusals = 200

function requestsLimit(limits: { requests_per_minute?: number | null }): string {
  return limits.requests_per_minute ? `limit: ${count(limits.requests_per_minute)} per minute` : 'no limit'
}

function card(name: string, value: unknown, more: string) {
  return html`<div class="card"><dt class="name">${name}</dt><dd class="value">${value}</dd><dd class="more">${more}</dd></div>`
}

const none: Figures = {
  total_requests: 0,
  failed_requests: 0,
  partial_requests: 0,
  spend: 0,
  input_tokens: 0,
  cached_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
}

function only({ usage }: Usage): Figures {
  return Object.values(usage)[0] ?? none
}

type OverTimeProps = { range: string; query: URLSearchParams; by: string; version: number }

function OverTime({ range, query, by, version }: OverTimeProps) {
  const asked = [range, query.get('from'), query.get('to'), by].join(' ')
  const when = [asked, version]
  const usage = useLoad(async (signal) => {
    const { start, end, resolution } = spanOf(range, query)
    const period = { start: start.toISOString(), end: end.toISOString() }
    const [found, keys] = await Promise.all([
      api<Usage>('v1/manage/org/usage', { query: { ...period, resolution, group_by: by }, signal }),
      by === 'key' ? all<KeyEntry>('v1/manage/apikey', 'keys', signal) : [],
    ])
    const names = new Map(keys.map(({ id, name }) => [id, name]))
    return { ...seriesOf(found.usage, by, { start, end, resolution }, names), names, answers: asked }
  }, when)
  // It reads many calls, so the figures that are available immediately do not wait for it.
  const latency = useLoad((signal) => {
    const { start, end } = spanOf(range, query)
    const period = { start: start.toISOString(), end: end.toISOString(), ...(timed.includes(by) && { group_by: by }) }
    return api<Latency>('v1/manage/latency', { query: period, signal })
  }, when)
  return html`<${Loading} of=${usage}>${(data: NonNullable<typeof usage.data>) => {
    const { times, areDays, spend, calls, failed, rows, names } = data
    // Until the period that was chosen is there, the one before is shown as superseded.
    return html`<div class=${data.answers === asked ? '' : 'superseded'} aria-busy=${data.answers !== asked}>
      <div class="grid section">
        <${Section} title="Spend"><${Chart} label="Spend over time, US dollars" times=${times} series=${spend} format=${usd} isStacked hasTable areDays=${areDays} /><//>
        <${Section} title="Calls"><${Chart} label="Calls over time" times=${times} series=${[{ label: 'calls', values: calls }, { label: 'failed', values: failed, isBad: true }]} format=${short} areDays=${areDays} /><//>
      </div>
      <${Section} title="Speed"><${Speed} of=${latency} /><//>
      <${Section} title=${`By ${groups.find(([name]) => name === by)?.[1].toLowerCase() ?? by}`}>
        <${Groups} rows=${rows} by=${by} latency=${latency.data} names=${names} />
      <//>
    </div>`
  }}<//>`
}

function Speed({ of: { data, error } }: { of: Loaded<Latency> }) {
  if (error) return html`<${Failure} error=${error} />`
  const { first_event_ms: first, duration_ms: whole, tokens_per_second: tokens } = data ?? {}
  return html`
    <div role="group" aria-label="Speed" aria-busy=${data === undefined}>
      <dl class="cards">
        ${card('Time to first token, median', duration(first?.p50) || '–', '')}
        ${card('Time to first token, p95', duration(first?.p95) || '–', '')}
        ${card('Duration, median', duration(whole?.p50) || '–', `p95: ${duration(whole?.p95) || '–'}`)}
        ${card('Output speed, median', html`${short(tokens?.p50 ?? Number.NaN)} tokens/s`, 'of one call')}
      </dl>
    </div>
    <p class="hint">${data === undefined ? 'Loading …' : `Based on ${data.complete ? 'all' : 'the latest'} ${counted(data.calls, 'call')} of this period.`}</p>`
}

type GroupRow = Figures & { value: string | null }

function Groups({
  rows,
  by,
  latency,
  names,
}: {
  rows: GroupRow[]
  by: string
  latency: Latency | undefined
  names: ReadonlyMap<string, string>
}) {
  const speeds = new Map(latency?.groups?.map((group) => [group.value, group]))
  const most = Math.max(...rows.map(({ spend }) => spend), 0)
  const callsOf = (value: string) => to('calls', isTag(by) ? { tag: `${by}=${value}` } : { [by]: value })
  const named = ({ value }: GroupRow) => {
    const name = html`<${Name} text=${value === null ? '(none)' : (names.get(value) ?? value)} />`
    return by !== 'group_name' && value !== null ? html`<a href=${callsOf(value)}>${name}</a>` : name
  }
  return html`<${Table} label="Usage by group" rows=${rows} keyOf=${({ value }: GroupRow) => value ?? ''} sorted=${['Spend', true]} empty="No calls in this period." columns=${[
    {
      head: groups.find(([name]) => name === by)?.[1] ?? by,
      cell: named,
      sortBy: ({ value }: GroupRow) => value ?? '',
    },
    {
      head: 'Spend',
      isNumber: true,
      sortBy: ({ spend }: GroupRow) => spend,
      cell: ({ spend }: GroupRow) =>
        html`<${Money} value=${spend} /><span class="bar" style=${{ width: `${most > 0 ? (100 * Math.max(0, spend)) / most : 0}%` }}></span>`,
    },
    {
      head: 'Calls',
      isNumber: true,
      sortBy: (row: GroupRow) => row.total_requests,
      cell: (row: GroupRow) => count(row.total_requests),
    },
    {
      head: 'Failed',
      isNumber: true,
      sortBy: (row: GroupRow) => row.failed_requests,
      cell: (row: GroupRow) => count(row.failed_requests),
    },
    {
      head: 'Input tokens',
      isNumber: true,
      isMinor: true,
      sortBy: (row: GroupRow) => row.input_tokens,
      cell: (row: GroupRow) => short(row.input_tokens),
    },
    {
      head: 'Output tokens',
      isNumber: true,
      isMinor: true,
      sortBy: (row: GroupRow) => row.output_tokens,
      cell: (row: GroupRow) => short(row.output_tokens),
    },
    {
      head: 'Time to first token',
      isNumber: true,
      isMinor: true,
      cell: ({ value }: GroupRow) => duration(speeds.get(value)?.first_event_ms?.p50),
    },
  ]} />`
}

type Span = { start: Date; end: Date; resolution: 'hour' | 'day' }

function spanOf(range: string, query: URLSearchParams, now = Date.now()): Span {
  if (range === chosenTimes) return spanChosen(query, now)
  const end = new Date(Math.ceil((now + 1) / hourMs) * hourMs)
  const midnight = Math.floor(now / dayMs) * dayMs
  if (range === 'week') return { start: new Date(end.getTime() - 7 * dayMs), end, resolution: 'hour' }
  if (range === 'month')
    return { start: new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth(), 1)), end, resolution: 'day' }
  if (range === 'quarter') return { start: new Date(midnight - 89 * dayMs), end, resolution: 'day' }
  return { start: new Date(end.getTime() - dayMs), end, resolution: 'hour' }
}

/** Returns a span of whole hours or days: the day before now where nothing is chosen yet. The API decides how many days are too many. */
function spanChosen(query: URLSearchParams, now: number): Span {
  const { start, end } = chosenSpan(query)
  const until = end === undefined ? now : Date.parse(end)
  const from = Math.min(start === undefined ? until - dayMs : Date.parse(start), until - hourMs)
  const resolution = until - from <= 8 * dayMs ? 'hour' : 'day'
  const step = resolution === 'hour' ? hourMs : dayMs
  return { start: new Date(Math.floor(from / step) * step), end: new Date(Math.ceil(until / step) * step), resolution }
}

/** Returns the spend of groups, calls and failures over time, and the sums of all groups; periods without calls are zero. */
function seriesOf(
  usage: Record<string, Period>,
  by: string,
  { start, end, resolution }: Span,
  names: ReadonlyMap<string, string>,
) {
  const step = resolution === 'hour' ? hourMs : dayMs
  const starts: number[] = []
  for (let at = start.getTime(); at < end.getTime(); at += step) starts.push(at)
  const found = new Map(Object.entries(usage).map(([at, period]) => [Date.parse(at), period]))
  const rows = new Map<string | null, GroupRow>()
  for (const period of found.values())
    for (const { group_by_values: values, ...figures } of period.grouped_data ?? [])
      add(rows, values[by] ?? null, figures)
  const ranked = [...rows.values()].toSorted((one, other) => other.spend - one.spend)
  return {
    times: starts.map((at) => at / 1_000),
    areDays: resolution === 'day',
    spend: spendSeries(found, starts, { by, names }),
    calls: starts.map((at) => found.get(at)?.total_requests ?? 0),
    failed: starts.map((at) => found.get(at)?.failed_requests ?? 0),
    rows: ranked,
  }
}

function add(rows: Map<string | null, GroupRow>, value: string | null, figures: Figures): void {
  const row = rows.get(value) ?? { value, ...none }
  for (const name of Object.keys(none) as (keyof Figures)[]) row[name] += figures[name]
  rows.set(value, row)
}
