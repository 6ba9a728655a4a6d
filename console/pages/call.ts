import { api } from '../api.ts'
import type { CallEntry } from '../entries.ts'
import { count, duration, short, usd } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { CallContent } from '../parts/call-content.ts'
import { Facts, Loading, Page, Section } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Badge, Code, Duration, Id, Money, Name, Outcome, Tags, Time } from '../parts/text.ts'
import { Waterfall } from '../parts/waterfall.ts'
import { to } from '../place.ts'

type Row = {
  attempt: number
  at_ms?: number
  provider?: string
  model?: string
  outcome: string
  code?: string
  class?: string
  provider_code?: string
  provider_message?: string
  status?: number
  first_event_ms?: number
  duration_ms?: number
  cost: number
}
type Part = { class: string; units: number; price?: number; per?: number; cost: number; attempt?: number }
type Call = CallEntry & {
  usage?: { class: string; units: number }[]
  cost_parts?: Part[]
  rows?: Row[]
  dropped?: string[]
  reserved?: number
  error?: { code: string; message?: string; provider_code?: string; provider_message?: string }
  damaged?: boolean
  explanation?: unknown
  trace_id?: string
}

/** One call: its attempts with their targets and times, and its cost, part by part. */
export function CallDetail({ id }: { id: string }) {
  const call = useLoad((signal) => api<Call>(`v1/manage/calls/${encodeURIComponent(id)}`, { signal }), [id])
  return html`<${Page} title="Call" actions=${html`<a href=${to('calls')}>All calls</a>`}><${Loading} of=${call}>${(found: Call) => html`<${Details} call=${found} />`}<//><//>`
}

function Details({ call }: { call: Call }) {
  const { error, cost_parts: parts = [], rows = [], dropped = [], usage = [] } = call
  return html`
    <${Facts} facts=${[
      ['Outcome', html`<${Outcome} outcome=${call.outcome} code=${call.code} /> ${call.status ?? ''}`],
      ['Time', html`<${Time} at=${call.at} />`],
      ['Duration', html`<${Duration} ms=${call.duration_ms} />`],
      ['Time to first token', call.first_event_ms !== undefined && html`<${Duration} ms=${call.first_event_ms} />`],
      [
        'Cost',
        html`<${Money} value=${call.cost} isExact />${call.estimated && ' (estimated)'}${call.unpriced && ' (no price)'}`,
      ],
      ['Reserved', call.reserved !== undefined && html`<${Money} value=${call.reserved} isExact />`],
      ['Requested', html`<${Name} text=${call.asked} />`],
      ['Model', call.model && html`<${Name} text=${call.model} />`],
      ['Served by', call.served && html`<${Name} text=${call.served} />`],
      ['API', `${call.operation === 'chat' ? call.api : call.operation}${call.streamed ? ', streamed' : ''}`],
      ['Key', html`<a href=${to(`keys/${call.key.id}`)}><${Name} text=${call.key.name ?? call.key.id} /></a>`],
      ['Group', call.group && html`<${Name} text=${call.group.name ?? call.group.id} />`],
      ['User', call.user && html`<${Name} text=${call.user} />`],
      ['Key labels', call.labels && html`<${Tags} of=${call.labels} />`],
      ['Tags and metadata', call.extra && html`<${Tags} of=${call.extra} />`],
      ['ID', html`<${Id} id=${call.id} />`],
      ['Request ID', call.request_id && html`<${Id} id=${call.request_id} />`],
      ['Trace', call.trace_id && html`<${Id} id=${call.trace_id} />`],
    ]} />
    ${error && html`<${Section} title="Error returned to the client"><p class="failure"><strong>${error.code}</strong>${error.provider_code && ` (provider code: ${error.provider_code})`}<br /><bdi dir="auto">${error.message ?? error.provider_message ?? 'The message is not stored: it may repeat the prompt, or is older than errors.keep.'}</bdi></p><//>`}
    ${dropped.length > 0 && html`<${Section} title="Dropped from the request"><p>The provider does not support: ${dropped.map((field, index) => html`${index > 0 && ', '}<code>${field}</code>`)}.</p><//>`}
    ${call.damaged && html`<p class="note">Part of the response could not be read and was skipped.</p>`}
    <${Section} title="Attempts">
      <${Waterfall} attempts=${rows} total=${call.duration_ms} />
      <${Table} label="Attempts" rows=${rows} keyOf=${(row: Row) => `${row.attempt} ${row.at_ms}`} columns=${[
        { head: '#', cell: ({ attempt }: Row) => attempt },
        { head: 'Started after', isNumber: true, isMinor: true, cell: ({ at_ms: ms }: Row) => duration(ms) },
        { head: 'Target', cell: ({ model }: Row) => html`<${Name} text=${model} />` },
        {
          head: 'Outcome',
          cell: (row: Row) =>
            html`<${Outcome} outcome=${row.outcome} code=${row.code} />${row.class && html` <${Badge}>${row.class}<//>`}${row.provider_code && html` <span class="quiet"><${Name} text=${row.provider_code} /></span>`}${row.provider_message && html`<br /><bdi dir="auto" class="quiet">${row.provider_message}</bdi>`}`,
        },
        {
          head: 'First token',
          isNumber: true,
          isMinor: true,
          cell: (row: Row) => duration(row.first_event_ms),
        },
        { head: 'Duration', isNumber: true, cell: (row: Row) => duration(row.duration_ms) },
        { head: 'Cost', isNumber: true, cell: ({ cost }: Row) => html`<${Money} value=${cost} />` },
      ]} />
    <//>
    <${Section} title="Cost breakdown">
      <${Table} label="Cost by part" rows=${parts} keyOf=${(part: Part) => `${part.attempt} ${part.class}`} empty="Nothing was charged." columns=${[
        {
          head: 'Part',
          cell: (part: Part) =>
            `${part.class.replaceAll('_', ' ')}${part.attempt === undefined ? '' : ` (attempt ${part.attempt})`}`,
        },
        { head: 'Units', isNumber: true, cell: ({ units }: Part) => count(units) },
        {
          head: 'Price',
          isNumber: true,
          cell: ({ price, per }: Part) =>
            price === undefined
              ? ''
              : `${usd(price, true)}${per === undefined || per === 1 ? '' : ` per ${short(per)}`}`,
        },
        { head: 'Cost', isNumber: true, cell: ({ cost }: Part) => usd(cost, true) },
      ]} />
    <//>
    ${usage.length > 0 && html`<${Section} title="Usage"><${Facts} facts=${usage.map((one) => [one.class.replaceAll('_', ' '), count(one.units)] as const)} /><//>`}
    <${CallContent} key=${call.id} id=${call.id} />
    ${call.explanation !== undefined && html`<${Section} title="Why this target"><${Code} text=${JSON.stringify(call.explanation, null, 2)} /><//>`}
  `
}
