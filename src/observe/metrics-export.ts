import { type Family, type Labels, type Sample, sampleKey } from './families.ts'
import type { Log } from './log.ts'
import { hrTime, type MetricsRequest, type Otlp } from './otlp.ts'

/** Settings of the export of metrics in OpenTelemetry's variables. */
export type MetricsExportSettings = { intervalMs: number; isDelta: boolean }

/** Export of metrics to a collector. */
export type MetricsExport = {
  /** Sends the metrics a last time. */
  close(): Promise<void>
}

type MetricData = MetricsRequest['scopeMetrics'][number]['metrics'][number]
type Exporter = ReturnType<Otlp['metricsExporter']>

/** Reads the variables; values that are not valid count as unset, as OpenTelemetry specifies. */
export function metricsExportSettings(env: NodeJS.ProcessEnv): MetricsExportSettings {
  const intervalMs = Number(env.OTEL_METRIC_EXPORT_INTERVAL)
  const temporality = env.OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE?.toLowerCase() ?? ''
  return {
    intervalMs: intervalMs > 0 ? Math.min(intervalMs, maxIntervalMs) : usualIntervalMs,
    isDelta: temporality === 'delta' || temporality === 'lowmemory',
  }
}

const usualIntervalMs = 60_000
const maxIntervalMs = 2 ** 31 - 1

/** Starts to send metrics at an interval, in requests of bounded size. A request that fails ends the round; the next one sends everything. */
export function openMetricsExport(
  otlp: Otlp,
  { families, settings, log }: { families: () => Family[]; settings: MetricsExportSettings; log: Log },
): MetricsExport {
  const exporter = otlp.metricsExporter()
  const points = new Points(settings.isDelta)
  const report = failureReport(log)
  const sendAll = async () => {
    for (const request of points.requests(families(), Date.now())) {
      const metrics = request.map(({ metric }) => metric)
      const scopeMetrics = [{ scope: { name: 'inference-router' }, metrics }]
      const error = await send(exporter, { resource: otlp.resource, scopeMetrics })
      report(error)
      if (error) return
      for (const { onSent } of request) onSent()
    }
  }
  let round: Promise<void> | undefined
  const run = () => {
    round ??= sendAll()
      .catch(report)
      .finally(() => {
        round = undefined
      })
    return round
  }
  const timer = setInterval(run, settings.intervalMs).unref()
  return {
    async close() {
      clearInterval(timer)
      await round
      await run()
      await exporter.shutdown()
    },
  }
}

function send(exporter: Exporter, request: MetricsRequest): Promise<Error | undefined> {
  return new Promise((resolve) => {
    exporter.export(request, ({ code, error }) =>
      resolve(code === 0 ? undefined : (error ?? new Error('unknown error'))),
    )
  })
}

/** Returns a function that logs the first of failures that follow each other, and their number when there are no more. */
function failureReport(log: Log): (error: Error | undefined) => void {
  let failures = 0
  return (error) => {
    if (!error) {
      if (failures > 0) log.info({ failures }, 'metrics are sent to the collector again')
      failures = 0
    } else if (failures++ === 0) {
      log.warn({ message: error.message }, 'metrics cannot be sent to the collector')
    }
  }
}

/** A histogram as OTLP has it: counts by bucket, the last one of values above all bounds. */
type Distribution = { bounds: number[]; counts: number[]; sum: number; count: number }

/** A value of a metric with its labels; `key` identifies it among all. */
type Point<Value> = { key: string; labels: Labels; value: Value }

/** A metric of a request: `size` is the number of its samples, `onSent` is called when it was accepted. */
type Metric = { metric: MetricData; size: number; onSent(): void }

/** Converts metrics to data points; with deltas it remembers what has been sent of counters and histograms. */
export class Points {
  readonly #isDelta: boolean
  readonly #sent = new Map<string, { value: number | Distribution; at: number }>()

  constructor(isDelta: boolean) {
    this.#isDelta = isDelta
  }

  /** Returns the metrics of requests of bounded size, made one by one. `now` is in Unix milliseconds. */
  *requests(families: readonly Family[], now: number): Generator<Metric[]> {
    let request: Metric[] = []
    let size = 0
    for (const family of families) {
      for (const metric of this.#metrics(family, now)) {
        request.push(metric)
        size += metric.size
        if (size < maxSamples) continue
        yield request
        request = []
        size = 0
      }
    }
    if (request.length > 0) yield request
  }

  *#metrics(family: Family, now: number): Generator<Metric> {
    if (family.type === 'histogram') {
      const size = 1 + family.samples.findIndex(({ name }) => name === `${family.name}_count`)
      for (const some of chunks(distributions(family), Math.ceil(maxSamples / size))) {
        const { dataPoints, onSent } = this.#since(some, now, lessDistribution)
        if (dataPoints.length === 0) continue
        const metric = { ...this.#head(family), dataPointType: dataPointTypes.histogram, dataPoints }
        yield { metric, size: size * dataPoints.length, onSent }
      }
      return
    }
    for (const some of chunks(numbers(family), maxSamples)) {
      if (family.type === 'gauge') {
        const dataPoints = some.map(({ labels, value }) => dataPoint(labels, value, now, now))
        const metric = { ...this.#head(family), dataPointType: dataPointTypes.gauge, dataPoints }
        yield { metric, size: some.length, onSent: () => {} }
        continue
      }
      const { dataPoints, onSent } = this.#since(some, now, lessNumber)
      if (dataPoints.length === 0) continue
      const metric = { ...this.#head(family), dataPointType: dataPointTypes.sum, isMonotonic: true, dataPoints }
      yield { metric, size: dataPoints.length, onSent }
    }
  }

  #head({ name, help }: Family) {
    const unit = /_seconds(?:_total)?$/.test(name) ? 's' : name.endsWith('_bytes') ? 'By' : ''
    const descriptor = { name, description: help, unit, valueType: doubleType }
    return { descriptor, aggregationTemporality: this.#isDelta ? delta : cumulative }
  }

  /** Returns data points since the start of the process or, with deltas, since they were last sent; those without a change are omitted. */
  #since<Value extends number | Distribution>(
    points: readonly Point<Value>[],
    now: number,
    less: (value: Value, earlier: Value) => Value | undefined,
  ) {
    if (!this.#isDelta) {
      const dataPoints = points.map(({ labels, value }) => dataPoint(labels, value, startedAt, now))
      return { dataPoints, onSent: () => {} }
    }
    const dataPoints = points.flatMap(({ key, labels, value }) => {
      const sent = this.#sent.get(key)
      const change = sent ? less(value, sent.value as Value) : value
      if (change === undefined || change === 0) return []
      return dataPoint(labels, change, sent?.at ?? startedAt, now)
    })
    const onSent = () => {
      for (const { key, value } of points) this.#sent.set(key, { value, at: now })
    }
    return { dataPoints, onSent }
  }
}

/** Samples of one request: some milliseconds of work, and some hundred kilobytes. */
const maxSamples = 2_000

/** Beginning of the counters, in Unix milliseconds. */
const startedAt = performance.timeOrigin

/** Numbers of the SDK's enumerations: `DataPointType`, `AggregationTemporality` and `ValueType.DOUBLE`. */
const dataPointTypes = { histogram: 0, gauge: 2, sum: 3 } as const
const [delta, cumulative, doubleType] = [0, 1, 1] as const

function dataPoint<Value extends number | Distribution>(labels: Labels, value: Value, start: number, end: number) {
  const shared = { attributes: labels, startTime: hrTime(start), endTime: hrTime(end) }
  return { ...shared, value: (typeof value === 'number' ? value : histogramOf(value)) as SdkValue<Value> }
}

/** The form that the SDK has for a value. */
type SdkValue<Value> = Value extends Distribution ? ReturnType<typeof histogramOf> : Value

function histogramOf({ bounds, counts, sum, count }: Distribution) {
  return { buckets: { boundaries: bounds, counts }, sum, count }
}

function lessNumber(value: number, earlier: number): number | undefined {
  // A counter of a worker that has ended may begin again.
  return value >= earlier ? value - earlier : value
}

function lessDistribution(value: Distribution, earlier: Distribution): Distribution | undefined {
  if (value.count === earlier.count) return undefined
  return {
    bounds: value.bounds,
    counts: value.counts.map((count, at) => count - (earlier.counts[at] ?? 0)),
    sum: value.sum - earlier.sum,
    count: value.count - earlier.count,
  }
}

function numbers({ name, samples }: Family): Point<number>[] {
  return samples.map(({ labels, value }) => ({ key: sampleKey(name, labels), labels, value }))
}

/** Reads the histograms of a family from its samples: cumulative buckets, the sum and the count of each label set follow each other. */
function distributions({ name, samples }: Family): Point<Distribution>[] {
  const found: Point<Distribution>[] = []
  let current: Distribution = { bounds: [], counts: [], sum: 0, count: 0 }
  let below = 0
  for (const sample of samples as readonly Sample[]) {
    const { le, ...labels } = sample.labels
    if (le !== undefined) {
      if (le !== '+Inf') current.bounds.push(Number(le))
      current.counts.push(sample.value - below)
      below = sample.value
    } else if (sample.name === `${name}_sum`) current.sum = sample.value
    else {
      current.count = sample.value
      found.push({ key: sampleKey(name, labels), labels, value: current })
      current = { bounds: [], counts: [], sum: 0, count: 0 }
      below = 0
    }
  }
  return found
}

function* chunks<Item>(items: readonly Item[], length: number): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += length) yield items.slice(at, at + length)
}
