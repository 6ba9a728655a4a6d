import { api } from '../api.ts'
import { count, short, usd } from '../format.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { spendSeries } from '../series.ts'
import { Chart } from './chart.ts'
import { Loading, Section } from './page.ts'
import { Table } from './table.ts'
import { Money, Name } from './text.ts'

type Figures = {
  spend: number
  total_requests: number
  failed_requests: number
  input_tokens: number
  output_tokens: number
}
type Usage = {
  usage: Record<string, Figures & { grouped_data: (Figures & { group_by_values: { model: string | null } })[] }>
}
type Row = Figures & { model: string }

const dayMs = 86_400_000
const days = 30

/** Shows the usage of the last 30 days: by day, and by model. */
export function UsageOf({ path }: { path: string }) {
  const usage = useLoad(
    async (signal) => {
      const last = Math.floor(Date.now() / dayMs) * dayMs
      const starts = Array.from({ length: days }, (_, index) => last - (days - 1 - index) * dayMs)
      const start = new Date(starts[0] as number).toISOString().slice(0, 10)
      const { usage: periods } = await api<Usage>(path, {
        query: { start, resolution: 'day', group_by: 'model' },
        signal,
      })
      const found = new Map(Object.entries(periods).map(([at, period]) => [Date.parse(at), period]))
      return {
        times: starts.map((at) => at / 1_000),
        spend: spendSeries(found, starts, { by: 'model' }),
        rows: rowsOf(periods),
      }
    },
    [path],
  )
  return html`<${Section} title="Last 30 days"><${Loading} of=${usage}>${({
    times,
    spend,
    rows,
  }: NonNullable<typeof usage.data>) => html`
    <${Chart} label="Spend by day, US dollars" times=${times} series=${spend} format=${usd} isStacked hasTable areDays height=${140} />
    <${Table} label="Usage by model" rows=${rows} keyOf=${({ model }: Row) => model} sorted=${['Spend', true]} empty="No calls in the last 30 days." columns=${[
      { head: 'Model', sortBy: ({ model }: Row) => model, cell: ({ model }: Row) => html`<${Name} text=${model} />` },
      {
        head: 'Spend',
        isNumber: true,
        sortBy: (row: Row) => row.spend,
        cell: (row: Row) => html`<${Money} value=${row.spend} />`,
      },
      {
        head: 'Calls',
        isNumber: true,
        sortBy: (row: Row) => row.total_requests,
        cell: (row: Row) => count(row.total_requests),
      },
      { head: 'Failed', isNumber: true, cell: (row: Row) => count(row.failed_requests) },
      {
        head: 'Tokens',
        isNumber: true,
        isMinor: true,
        cell: (row: Row) => short(row.input_tokens + row.output_tokens),
      },
    ]} />`}<//><//>`
}

function rowsOf(periods: Usage['usage']): Row[] {
  const rows = new Map<string, Row>()
  for (const { grouped_data: groups } of Object.values(periods))
    for (const { group_by_values: values, ...figures } of groups) {
      const model = values.model ?? '(none)'
      const row = rows.get(model) ?? {
        model,
        spend: 0,
        total_requests: 0,
        failed_requests: 0,
        input_tokens: 0,
        output_tokens: 0,
      }
      for (const name of ['spend', 'total_requests', 'failed_requests', 'input_tokens', 'output_tokens'] as const)
        row[name] += figures[name]
      rows.set(model, row)
    }
  return [...rows.values()]
}
