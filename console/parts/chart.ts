import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { date, time } from '../format.ts'
import { html } from '../html.ts'

/** A line of a chart: its values at the times of the chart. `isBad`: it is better when there are few. */
export type Series = { label: string; values: readonly (number | null)[]; isBad?: boolean }
export type ChartProps = {
  /** Description of the chart, for those who do not see it. */
  label: string
  /** Unix seconds, ascending. */
  times: readonly number[]
  series: readonly Series[]
  format(value: number): string
  isBars?: boolean
  /** True where each of the times is a whole day. Days are those of UTC, as in budgets. */
  areDays?: boolean
  height?: number
}

/** Chart library, loaded while the values are being fetched. */
const library = import('uplot')
library.catch(() => {})

/** Values over time. */
export function Chart({ label, times, series, format, isBars = false, areDays = false, height = 180 }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const data = useRef<uPlot.AlignedData>([[]])
  data.current = dataOf(times, series)
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
      plot.current = new UPlot(optionsOf(UPlot, { host, series, format, isBars, areDays, height }), data.current, host)
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
  }, [names, isBars, areDays, height])
  useEffect(() => plot.current?.setData(data.current), [times, series])
  return html`<div class="chart" role="img" aria-label=${`${label}: ${summary(series, format)}`}><div ref=${place} style=${{ minHeight: `${height}px` }}></div></div>`
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [[...times], ...series.map(({ values }) => [...values])]
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

function optionsOf(
  UPlot: typeof uPlot,
  {
    host,
    series,
    format,
    isBars,
    areDays,
    height,
  }: Pick<ChartProps, 'series' | 'format' | 'isBars' | 'areDays'> & { host: HTMLElement; height: number },
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
          value: (_: uPlot, value: number | null) => (value === null ? '' : format(value)),
        }
      }),
    ],
  }
}
