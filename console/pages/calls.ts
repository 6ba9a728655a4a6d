import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { api, ask, errorIn, type Query } from '../api.ts'
import type { CallEntry } from '../entries.ts'
import { count, duration } from '../format.ts'
import { html } from '../html.ts'
import { Button, Field, Select } from '../parts/form.ts'
import { Failure, Page, Spinner } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Money, Name, Outcome, Time } from '../parts/text.ts'
import { toast } from '../parts/toast.ts'
import { changeQuery, type PageProps, to } from '../place.ts'
import { CallDetail } from './call.ts'

type CallsPage = { calls: CallEntry[]; next_cursor?: string }

/** What calls are found by: names of the API's parameters. */
const texts = [
  ['model', 'Model', 'openai/gpt-5'],
  ['provider', 'Provider', 'openai'],
  ['asked', 'Asked for', 'policy/fast'],
  ['key', 'Key id', ''],
  ['code', 'Error code', 'rate_limited'],
  ['id', 'Request id', ''],
  ['tag', 'Label or tag', 'label.team=web'],
] as const
const outcomes = [
  ['', 'Any'],
  ['complete', 'Complete'],
  ['partial', 'Broken off'],
  ['failed', 'Failed'],
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
  const { calls, error, more, isLoading } = useCalls(filters)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const later = (changes: Query) => {
    clearTimeout(timer.current)
    timer.current = setTimeout(() => changeQuery(changes), typingMs)
  }
  return html`
    <${Page} title="Calls" actions=${html`<${Button} onClick=${() => void download(filters)}>Export as CSV<//>`}>
      <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
        <${Select} name="time" label="Time" value=${query.get('time') ?? ''} options=${times} onInput=${(value: string) => changeQuery({ time: value })} />
        <${Select} name="outcome" label="Outcome" value=${query.get('outcome') ?? ''} options=${outcomes} onInput=${(value: string) => changeQuery({ outcome: value })} />
        ${texts.map(([name, label, placeholder]) => html`<${Field} key=${name} name=${name} label=${label} placeholder=${placeholder} type="search" value=${query.get(name) ?? ''} onInput=${(value: string) => later({ [name]: value })} />`)}
      </form>
      ${error && html`<${Failure} error=${error} />`}
      ${calls.length === 0 && isLoading ? html`<${Spinner} />` : html`<${CallTable} calls=${calls} onEnd=${more} />`}
    <//>
  `
}

const typingMs = 250

export function CallTable({ calls, onEnd }: { calls: readonly CallEntry[]; onEnd?: (() => void) | undefined }) {
  return html`<${Table} label="Calls" rows=${calls} keyOf=${({ id }: CallEntry) => id} onEnd=${onEnd} empty="No call is found by this." columns=${[
    {
      head: 'Time',
      cell: ({ id, at }: CallEntry) => html`<a href=${to(`calls/${encodeURIComponent(id)}`)}><${Time} at=${at} /></a>`,
    },
    { head: 'Outcome', cell: ({ outcome, code }: CallEntry) => html`<${Outcome} outcome=${outcome} code=${code} />` },
    {
      head: 'Model',
      cell: ({ asked, model }: CallEntry) =>
        html`<${Name} text=${model ?? asked} />${model !== undefined && model !== asked && html`<br /><span class="quiet"><${Name} text=${`asked for ${asked}`} /></span>`}`,
    },
    {
      head: 'Key',
      isMinor: true,
      cell: ({ key }: CallEntry) => html`<a href=${to(`keys/${key.id}`)}><${Name} text=${key.name ?? key.id} /></a>`,
    },
    {
      head: 'API',
      isMinor: true,
      cell: ({ api, operation, streamed }: CallEntry) =>
        `${operation === 'chat' ? api : operation}${streamed ? ', streamed' : ''}`,
    },
    { head: 'First', isNumber: true, isMinor: true, cell: (call: CallEntry) => duration(call.first_event_ms) },
    { head: 'Took', isNumber: true, cell: (call: CallEntry) => duration(call.duration_ms) },
    { head: 'Tokens in', isNumber: true, isMinor: true, cell: (call: CallEntry) => count(call.input_tokens) },
    { head: 'Tokens out', isNumber: true, isMinor: true, cell: (call: CallEntry) => count(call.output_tokens) },
    {
      head: 'Cost',
      isNumber: true,
      cell: ({ cost, estimated, unpriced }: CallEntry) =>
        html`<${Money} value=${cost} />${estimated && html`<span title="estimated"> ≈</span>`}${unpriced && html`<span title="without a price"> ?</span>`}`,
    },
  ]} />`
}

/** The parameters of the API for what is in the address. */
function filtersIn(query: URLSearchParams): Query {
  const { time, tag, ...others } = Object.fromEntries(query)
  const since = timeMs[time ?? '']
  const [, name, value] = /^((?:label|extra)\.[^=]+)=(.+)$/s.exec(tag ?? '') ?? []
  return {
    ...others,
    ...(since !== undefined && { start: new Date(Date.now() - since).toISOString() }),
    ...(name !== undefined && { [name]: value }),
  }
}

/** The calls page by page; those that are made meanwhile are put before them. */
function useCalls(filters: Query) {
  const calls = useSignal<readonly CallEntry[]>([])
  const next = useSignal<string | undefined>(undefined)
  const error = useSignal<Error | undefined>(undefined)
  const isLoading = useSignal(true)
  const own = JSON.stringify({ ...filters, start: filters.start !== undefined })
  const round = useRef(new AbortController())
  const load = async (cursor: string | undefined, { signal }: AbortController) => {
    isLoading.value = true
    try {
      let page: CallsPage = { calls: [], ...(cursor !== undefined && { next_cursor: cursor }) }
      // A search that takes long ends its page before it has found something.
      do
        page = await api<CallsPage>('v1/manage/calls', {
          query: { ...filters, limit: pageSize, cursor: page.next_cursor },
          signal,
        })
      while (page.calls.length === 0 && page.next_cursor !== undefined)
      calls.value = cursor === undefined ? page.calls : [...calls.value, ...page.calls]
      next.value = page.next_cursor
      error.value = undefined
    } catch (thrown) {
      if (!signal.aborted) error.value = thrown as Error
    }
    if (!signal.aborted) isLoading.value = false
  }
  const refresh = async ({ signal }: AbortController) => {
    const { calls: latest } = await api<CallsPage>('v1/manage/calls', {
      query: { ...filters, limit: pageSize },
      signal,
    })
    const known = new Set(calls.value.map(({ id }) => id))
    const fresh = latest.filter(({ id }) => !known.has(id))
    if (fresh.length > 0) calls.value = [...fresh, ...calls.value]
  }
  useEffect(() => {
    const aborted = new AbortController()
    round.current = aborted
    calls.value = []
    next.value = undefined
    void load(undefined, aborted)
    const timer = setInterval(() => {
      if (!document.hidden && !isLoading.value) void refresh(aborted).catch(() => {})
    }, refreshMs)
    return () => {
      clearInterval(timer)
      aborted.abort()
    }
  }, [own])
  const more = next.value === undefined ? undefined : () => void (isLoading.value || load(next.value, round.current))
  return { calls: calls.value, error: error.value, isLoading: isLoading.value, more }
}

const pageSize = 50
const refreshMs = 1_500

/** Saves all calls that are found. */
async function download(filters: Query): Promise<void> {
  try {
    const response = await ask('v1/manage/calls', { query: filters, headers: { accept: 'text/csv' } })
    if (!response.ok) throw await errorIn(response)
    const url = URL.createObjectURL(await response.blob())
    const link = Object.assign(document.createElement('a'), { href: url, download: 'calls.csv' })
    link.click()
    URL.revokeObjectURL(url)
  } catch (thrown) {
    toast((thrown as Error).message, 'bad')
  }
}
