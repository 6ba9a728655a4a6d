import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { date, time } from '../format.ts'
import { html } from '../html.ts'
import type { Series } from '../series.ts'
import { Table } from './table.ts'

export type ChartProps = {
  /** Description of the chart, for those who do not see it. */
  label: string
  /** Unix seconds, ascending. */
  times: readonly number[]
  series: readonly Series[]
  format(value: number): string
  isBars?: boolean
  /** True where the values of all series at a time are one bar. */
  isStacked?: boolean
  /** True where the values can be read as a table as well. */
  hasTable?: boolean
  /** True where each of the times is a whole day. Days are those of UTC, as in budgets. */
  areDays?: boolean
  height?: number
}

/** Chart library, loaded while the values are being fetched. */
const library = import('uplot')
library.catch(() => {})

/** Values over time. */
export function Chart({ height = 180, ...props }: ChartProps) {
  const {
    label,
    times,
    series,
    format,
    isStacked = false,
    isBars = isStacked,
    hasTable = false,
    areDays = false,
  } = props
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const data = useRef<uPlot.AlignedData>([[]])
  const latest = useRef({ times, series })
  latest.current = { times, series }
  const dataNow = () => dataOf(latest.current, isStacked, (index) => plot.current?.series[index + 1]?.show !== false)
  data.current = dataNow()
  const names = series.map((one) => one.label).join('\n')
  useEffect(() => {
    const host = place.current
    if (!host) return
    let isGone = false
    let observer: ResizeObserver | undefined
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const draw = async () => {
      const { default: UPlot } = await library
      if (isGone) return
      plot.current?.destroy()
      plot.current = new UPlot(
        optionsOf(UPlot, {
          host,
          series,
          format,
          isBars,
          areDays,
          height,
          ...(isStacked && { stack: { latest, dataNow } }),
        }),
        data.current,
        host,
      )
      observer ??= new ResizeObserver(() => plot.current?.setSize({ width: host.clientWidth, height }))
      observer.observe(host)
    }
    void draw()
    scheme.addEventListener('change', draw)
    return () => {
      isGone = true
      scheme.removeEventListener('change', draw)
      observer?.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [names, isBars, isStacked, areDays, height])
  useEffect(() => plot.current?.setData(data.current), [times, series])
  return html`
    <div class="chart" role="img" aria-label=${`${label}: ${summary(series, format)}`}><div ref=${place} style=${{ minHeight: `${height}px` }}></div></div>
    ${hasTable && html`<${ValueTable} ...${{ label, times, series, format, areDays }} />`}
  `
}

/** The values of a chart as a table, the latest first, which is made when it is opened. */
function ValueTable({ label, times, series, format, areDays }: ChartProps) {
  const isOpen = useSignal(false)
  const name = areDays ? date : time
  const columns = [
    {
      head: areDays ? 'Day' : 'Time',
      cell: (index: number) => name(new Date((times[index] ?? 0) * 1_000).toISOString()),
    },
    ...series.map(({ label: head, values }) => ({
      head,
      isNumber: true,
      cell: (index: number) => format(values[index] ?? 0),
    })),
  ]
  const rows = times.map((_, index) => index).toReversed()
  return html`<details class="values" onToggle=${(event: Event) => (isOpen.value = (event.currentTarget as HTMLDetailsElement).open)}>
    <summary class="hint">As a table</summary>
    ${isOpen.value && html`<div class="scroll"><${Table} label=${label} rows=${rows} keyOf=${String} columns=${columns} /></div>`}
  </details>`
}

/** Returns the values of each series; stacked, the values of a series are on top of those of all that follow, so that none hides another. */
function dataOf(
  { times, series }: Pick<ChartProps, 'times' | 'series'>,
  isStacked: boolean,
  isShown: (index: number) => boolean,
): uPlot.AlignedData {
  if (!isStacked) return [[...times], ...series.map(({ values }) => [...values])]
  const sums: number[][] = []
  for (let index = series.length - 1; index >= 0; index--) {
    const { values = [] } = series[index] ?? {}
    const below = sums[0]
    sums.unshift(times.map((_, at) => (below?.[at] ?? 0) + (isShown(index) ? (values[at] ?? 0) : 0)))
  }
  return [[...times], ...sums]
}

function summary(series: readonly Series[], format: ChartProps['format']): string {
  return series
    .slice(0, 10)
    .map(({ label, values }) => `${label} ${format(values.reduce<number>((sum, value) => sum + (value ?? 0), 0))}`)
    .join(', ')
}

const hours = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' })
const day = { month: 'short', day: 'numeric' } as const
const days = new Intl.DateTimeFormat(undefined, day)
const daysOfUtc = new Intl.DateTimeFormat(undefined, { ...day, timeZone: 'UTC' })

/** Formats a tick: the day where one begins, or else the time of the day. */
function tick(at: number, step: number): string {
  const then = new Date(at * 1_000)
  const isDay = step >= 86_400 || (then.getHours() === 0 && then.getMinutes() === 0)
  return (isDay ? days : hours).format(then)
}

/** Returns the range of an axis that shows the first and the last bar whole. Unix seconds. */
function besides(times: ArrayLike<number>, first: number, last: number): [number, number] {
  const half = times.length > 1 ? ((times[1] ?? 0) - (times[0] ?? 0)) / 2 : 1_800
  return [first - half, last + half]
}

/** Values of a stacked chart: its legend has those of the series, not their sums, and a series that is hidden leaves no gap. */
type Stack = { latest: { current: Pick<ChartProps, 'series'> }; dataNow(): uPlot.AlignedData }

function optionsOf(
  UPlot: typeof uPlot,
  {
    host,
    series,
    format,
    isBars,
    areDays,
    height,
    stack,
  }: Pick<ChartProps, 'series' | 'format' | 'isBars' | 'areDays'> & {
    host: HTMLElement
    height: number
    stack?: Stack
  },
): uPlot.Options {
  const style = getComputedStyle(host)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const font = `11px ${style.fontFamily}`
  const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font }
  const labelOf = (at: number, step: number) => (areDays ? daysOfUtc.format(new Date(at * 1_000)) : tick(at, step))
  const colours = series.map(({ isBad }, index) => colour(isBad ? '--series-6' : `--series-${(index % 6) + 1}`))
  return {
    width: host.clientWidth,
    height,
    ...(areDays && { tzDate: (at: number) => UPlot.tzDate(new Date(at * 1_000), 'Etc/UTC') }),
    legend: {
      show: series.length > 1,
      live: true,
      markers: { width: 0, fill: (_, index) => colours[index - 1] ?? '' },
    },
    cursor: { y: false, drag: { x: false, y: false } },
    ...(stack && {
      hooks: { setSeries: [(plot, _, { show }) => void (show !== undefined && plot.setData(stack.dataNow()))] },
    }),
    scales: {
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] },
      ...(isBars && { x: { range: ({ data: [times] }, first, last) => besides(times, first, last) } }),
    },
    axes: [
      { ...axis, space: 70, size: 32, values: (_, ticks, __, ___, step) => ticks.map((at) => labelOf(at, step)) },
      { ...axis, size: 64, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {
        label: '\u00a0',
        value: (_: uPlot, at: number | null) =>
          at === null ? '' : (areDays ? date : time)(new Date(at * 1_000).toISOString()),
      },
      ...series.map(({ label }, index) => {
        const own = colours[index] ?? ''
        const bars = isBars && UPlot.paths.bars?.({ size: [0.7, 40] })
        return {
          label: label.slice(0, 60),
          stroke: own,
          width: isBars ? 0 : 1.5,
          ...(isBars && { fill: own }),
          ...(bars && { paths: bars }),
          points: { show: false },
          value: (_: uPlot, drawn: number | null, __: number, at: number | null) => {
            const value = stack && at !== null ? stack.latest.current.series[index]?.values[at] : drawn
            return value === null || value === undefined ? '' : format(value)
          },
        }
      }),
    ],
  }
}
