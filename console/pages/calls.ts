import { ask, errorIn, type Query, received } from '../api.ts'
import { type ListedEntry, useCalls } from '../call-list.ts'
import type { CallEntry } from '../entries.ts'
import { count, duration } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { Button, Field, Select } from '../parts/form.ts'
import { Failure, Page, Spinner } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Money, Name, Outcome, Time } from '../parts/text.ts'
import { chosenSpan, chosenTimes, TimeRange } from '../parts/time-range.ts'
import { toast } from '../parts/toast.ts'
import { changeQuery, type PageProps, to } from '../place.ts'
import { idNamed, suggestions } from '../suggestions.ts'
import { CallDetail } from './call.ts'

/** Filters of calls: names of the API's parameters, whose values must be complete. */
const texts = [
  ['model', 'Model', 'openai/gpt-5'],
  ['provider', 'Provider', 'openai'],
  ['asked', 'Requested', 'policy/fast'],
  ['key', 'Key', ''],
  ['group', 'Group', ''],
  ['user', 'User', ''],
  ['code', 'Error code', 'rate_limited'],
  ['id', 'Request ID', ''],
  ['tag', 'Label or tag', 'label.team=web'],
] as const
const outcomes = [
  ['', 'Any'],
  ['complete', 'Complete'],
  ['partial', 'Partial'],
  ['failed', 'Failed'],
  ['refused', 'Refused'],
] as const
const times = [
  ['', 'Any time'],
  ['hour', 'Last hour'],
  ['day', 'Last 24 hours'],
  ['week', 'Last 7 days'],
] as const
const timeMs: Record<string, number> = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 }

/** The calls that were made, the latest first; or one of them. */
export default function Calls({ rest, query }: PageProps) {
  return rest === '' ? html`<${CallList} query=${query} />` : html`<${CallDetail} id=${rest} />`
}

function CallList({ query }: { query: URLSearchParams }) {
  const filters = filtersIn(query)
  const { calls, error, more, isLoading } = useCalls(filters, query.toString())
  const { data: suggested } = useLoad(suggestions)
  const shown = (name: string) => {
    const value = query.get(name) ?? ''
    return suggested?.names[name]?.get(value) ?? value
  }
  const change = (name: string, value: string) => {
    const names = suggested?.names[name]
    changeQuery({ [name]: names ? idNamed(value.trim(), names) : value.trim() })
  }
  return html`
    <${Page} title="Calls" actions=${html`<${Button} onClick=${() => void download(filters)}>Export as CSV<//>`}>
      <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
        <${TimeRange} name="time" value=${query.get('time') ?? ''} options=${times} query=${query} />
        <${Select} name="outcome" label="Outcome" value=${query.get('outcome') ?? ''} options=${outcomes} onInput=${(value: string) => changeQuery({ outcome: value })} />
        ${texts.map(([name, label, placeholder]) => html`<${Field} key=${name} name=${name} label=${label} placeholder=${placeholder} type="search" value=${shown(name)} options=${suggested?.options[name]} onChange=${(value: string) => change(name, value)} />`)}
      </form>
      ${error && html`<${Failure} error=${error} />`}
      ${calls.length === 0 && isLoading ? html`<${Spinner} />` : html`<${CallTable} calls=${calls} onEnd=${more} />`}
    <//>
  `
}

export function CallTable({ calls, onEnd }: { calls: readonly ListedEntry[]; onEnd?: (() => void) | undefined }) {
  const ofSettled = (show: (call: CallEntry) => unknown) => (call: ListedEntry) => ('cost' in call ? show(call) : '')
  return html`<${Table} label="Calls" isStacked rows=${calls} keyOf=${({ id }: ListedEntry) => id} onEnd=${onEnd} empty="No calls match." columns=${[
    {
      head: 'Time',
      cell: (call: ListedEntry) =>
        'cost' in call
          ? html`<a href=${to(`calls/${encodeURIComponent(call.id)}`)}><${Time} at=${call.at} /></a>`
          : html`<${Time} at=${call.at} />`,
    },
    { head: 'Outcome', cell: ({ outcome, code }: ListedEntry) => html`<${Outcome} outcome=${outcome} code=${code} />` },
    { head: 'Model', isMain: true, cell: modelCell },
    {
      head: 'Key',
      isMinor: true,
      cell: ({ key }: ListedEntry) => html`<a href=${to(`keys/${key.id}`)}><${Name} text=${key.name ?? key.id} /></a>`,
    },
    {
      head: 'API',
      isMinor: true,
      cell: ({ api, operation }: ListedEntry) => (operation === 'chat' ? api : operation),
    },
    { head: 'First token', isNumber: true, isMinor: true, cell: ofSettled((call) => duration(call.first_event_ms)) },
    { head: 'Duration', isNumber: true, isMinor: true, cell: ofSettled((call) => duration(call.duration_ms)) },
    { head: 'Tokens in', isNumber: true, isMinor: true, cell: ofSettled((call) => count(call.input_tokens)) },
    { head: 'Tokens out', isNumber: true, isMinor: true, cell: ofSettled((call) => count(call.output_tokens)) },
    {
      head: 'Cost',
      isNumber: true,
      cell: ofSettled(
        ({ cost, estimated, unpriced }) =>
          html`<${Money} value=${cost} />${estimated && html`<span title="estimated"> ≈</span>`}${unpriced && html`<span title="no price"> ?</span>`}`,
      ),
    },
  ]} />`
}

/** Shows who served a call, and the requested model; or why no provider was asked. */
function modelCell(call: ListedEntry) {
  const { asked } = call
  const model = 'cost' in call ? call.model : undefined
  const below = 'cost' in call ? model !== undefined && model !== asked && `requested as ${asked}` : call.message
  return html`<${Name} text=${model ?? asked} />${below && html`<br /><span class="quiet"><${Name} text=${below} /></span>`}`
}

/** Returns the parameters of the API for what is in the address. */
function filtersIn(query: URLSearchParams): Query {
  const { time = '', tag, ...others } = Object.fromEntries([...query].filter(([name]) => !chosen.includes(name)))
  const [, name, value] = /^((?:label|extra)\.[^=]+)=(.+)$/s.exec(tag ?? '') ?? []
  return { ...others, ...spanOf(time, query), ...(name !== undefined && { [name]: value }) }
}

const chosen = ['from', 'to']

function spanOf(time: string, query: URLSearchParams): Query {
  if (time === chosenTimes) return chosenSpan(query)
  const since = timeMs[time]
  return since === undefined ? {} : { start: new Date(Date.now() - since).toISOString() }
}

/** Saves all calls that are found. */
async function download(filters: Query): Promise<void> {
  try {
    const response = await ask('v1/manage/calls', { query: filters, headers: { accept: 'text/csv' } })
    if (!response.ok) throw await errorIn(response)
    const url = URL.createObjectURL(await received(response.blob()))
    const link = Object.assign(document.createElement('a'), { href: url, download: 'calls.csv' })
    link.click()
    URL.revokeObjectURL(url)
  } catch (thrown) {
    toast((thrown as Error).message, 'bad')
  }
}
