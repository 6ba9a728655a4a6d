import { expect, test } from 'vitest'
import { type Family, Histogram } from '../../src/observe/families.ts'
import { metricsExportSettings, Points } from '../../src/observe/metrics-export.ts'

function families(calls: number, durations: readonly number[], names = ['a']): Family[] {
  const name = 'duration_seconds'
  return [
    {
      name: 'calls_total',
      help: '',
      type: 'counter',
      samples: names.map((model) => ({ labels: { model }, value: calls })),
    },
    {
      ...{ name, help: '', type: 'histogram' },
      samples: names.flatMap((model) => {
        const histogram = new Histogram([1, 10])
        for (const duration of durations) histogram.add(duration)
        return histogram.samples(name, { model })
      }),
    },
  ]
}

/** The values that are sent, by metric. */
function sent(points: Points, given: Family[], { now = 1, isAccepted = true } = {}) {
  const requests = [...points.requests(given, now)]
  if (isAccepted) for (const request of requests) for (const { onSent } of request) onSent()
  return requests.flat().map(({ metric }) => metric.dataPoints.map(({ value }) => value))
}

const distribution = (counts: number[], sum: number) => ({
  buckets: { boundaries: [1, 10], counts },
  sum,
  count: counts.reduce((all, count) => all + count, 0),
})

test('sums since the start are repeated, deltas are what was added since they were accepted', () => {
  const [cumulative, delta] = [new Points(false), new Points(true)]
  const first = families(2, [0.5, 20])
  for (const points of [cumulative, delta]) expect(sent(points, first)).toEqual([[2], [distribution([1, 0, 1], 20.5)]])
  const second = families(5, [0.5, 20, 5])
  expect(sent(cumulative, second)).toEqual([[5], [distribution([1, 1, 1], 25.5)]])
  const added = [[3], [distribution([0, 1, 0], 5)]]
  expect(sent(delta, second, { isAccepted: false })).toEqual(added)
  expect(sent(delta, second)).toEqual(added)
  expect(sent(delta, second)).toEqual([])
})

test('a counter that begins again adds its new value', () => {
  const delta = new Points(true)
  sent(delta, families(7, []))
  expect(sent(delta, families(2, []))[0]).toEqual([2])
})

test('requests are bounded, however many label sets there are', () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `m${index}`)
  const requests = [...new Points(false).requests(families(1, [1], names), 1)]
  const sizes = requests.map((request) => request.reduce((sum, { size }) => sum + size, 0))
  expect(Math.max(...sizes)).toBeLessThanOrEqual(4_000)
  const points = requests.flat().flatMap(({ metric }) => metric.dataPoints.map(() => metric.descriptor.name))
  expect(points.filter((name) => name === 'calls_total')).toHaveLength(5_000)
  expect(points.filter((name) => name === 'duration_seconds')).toHaveLength(5_000)
})

test.each([
  [{}, { intervalMs: 60_000, isDelta: false }],
  [{ OTEL_METRIC_EXPORT_INTERVAL: '5000' }, { intervalMs: 5_000, isDelta: false }],
  [{ OTEL_METRIC_EXPORT_INTERVAL: 'soon' }, { intervalMs: 60_000, isDelta: false }],
  [{ OTEL_METRIC_EXPORT_INTERVAL: '1e99' }, { intervalMs: 2 ** 31 - 1, isDelta: false }],
  [{ OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'Delta' }, { intervalMs: 60_000, isDelta: true }],
  [{ OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'lowmemory' }, { intervalMs: 60_000, isDelta: true }],
])('the variables %o are read', (env, settings) => {
  expect(metricsExportSettings(env)).toEqual(settings)
})
