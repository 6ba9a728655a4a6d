import type { Attributes, SpanContext } from '@opentelemetry/api'
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace'
import type { CallRecord } from '../core/call.ts'
import type { Sampling } from '../core/trace.ts'
import { hrTime, isExported, type Otlp } from './otlp.ts'
import { type SpanFacts, Spans } from './spans.ts'

/** Settings of traces in the variables of OpenTelemetry: whether they are sent, and which. */
export type TraceSettings = { isSent: boolean; sampling: Sampling }

/** Sends spans to a collector. */
export type Tracing = {
  /** Makes spans of a row of the ledger. */
  record(record: CallRecord): void
  /** Sends the remaining spans. */
  close(): Promise<void>
}

/** Reads the variables. Throws an error that names the one that is wrong. */
export function traceSettings(env: NodeJS.ProcessEnv): TraceSettings {
  const sampling = samplingOf(env)
  if (!isExported('TRACES', env)) return { isSent: false, sampling: { share: 0, followsParent: true } }
  const contents = env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT?.toLowerCase() ?? ''
  return { isSent: true, sampling: { ...sampling, contents: withContents.has(contents) } }
}

function samplingOf({
  OTEL_TRACES_SAMPLER: name = 'parentbased_always_on',
  OTEL_TRACES_SAMPLER_ARG: share,
}: NodeJS.ProcessEnv): Sampling {
  const followsParent = name.startsWith('parentbased_')
  const own = followsParent ? name.slice('parentbased_'.length) : name
  if (own === 'always_on') return { share: 1, followsParent }
  if (own === 'always_off') return { share: 0, followsParent }
  const part = share === undefined || share === '' ? 1 : Number(share)
  if (own !== 'traceidratio') throw new Error(`OTEL_TRACES_SAMPLER is '${name}': ${samplers}.`)
  if (!(part >= 0 && part <= 1)) throw new Error(`OTEL_TRACES_SAMPLER_ARG is '${share}': write a number from 0 to 1.`)
  return { share: part, followsParent }
}

/** OpenTelemetry's own values, of which events alone have no spans. */
const withContents: ReadonlySet<string> = new Set(['true', 'span_only', 'span_and_event'])

const samplers = 'write always_on, always_off or traceidratio, alone or after parentbased_'

/** Starts to send spans, in batches. */
export function openTracing({ api, sdk, resource, spanExporter, warn }: Otlp, env: NodeJS.ProcessEnv): Tracing {
  const processor: SpanProcessor = new sdk.BatchSpanProcessor({ exporter: spanExporter(), ...batchOptions(env) })
  const spans = new Spans()
  const context = { resource, api }
  return {
    record(record) {
      for (const facts of spans.of(record)) processor.onEnd(readable(facts, context))
    },
    close: () => processor.shutdown().catch((thrown: Error) => warn(thrown.message)),
  }
}

/** Reads the settings of the queue from the variables; those that are not numbers count as unset. */
function batchOptions(env: NodeJS.ProcessEnv): { [option: string]: number } {
  const read = Object.entries(batchVariables).map(([option, name]) => [option, Number.parseInt(env[name] ?? '', 10)])
  return Object.fromEntries(read.filter(([, value]) => (value as number) > 0))
}

const batchVariables = {
  scheduledDelayMillis: 'OTEL_BSP_SCHEDULE_DELAY',
  exportTimeoutMillis: 'OTEL_BSP_EXPORT_TIMEOUT',
  maxQueueSize: 'OTEL_BSP_MAX_QUEUE_SIZE',
  maxExportBatchSize: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
}

/** Returns a span that has ended, as the SDK passes them on. */
function readable(facts: SpanFacts, { resource, api }: Pick<Otlp, 'resource' | 'api'>): ReadableSpan {
  const { name, kind, traceId, spanId, parentId, start, end, error, attributes, events } = facts
  const context: SpanContext = { traceId, spanId, traceFlags: api.TraceFlags.SAMPLED }
  return {
    name,
    kind: kind === 'server' ? api.SpanKind.SERVER : api.SpanKind.CLIENT,
    spanContext: () => context,
    ...(parentId !== undefined && { parentSpanContext: { ...context, spanId: parentId, isRemote: kind === 'server' } }),
    startTime: hrTime(start),
    endTime: hrTime(end),
    duration: hrTime(end - start),
    status:
      error === undefined ? { code: api.SpanStatusCode.UNSET } : { code: api.SpanStatusCode.ERROR, message: error },
    attributes: attributes as Attributes,
    links: [],
    events: events.map((event) => ({
      name: event.name,
      time: hrTime(event.at),
      attributes: event.attributes ?? {},
      droppedAttributesCount: 0,
    })),
    ended: true,
    resource,
    instrumentationScope: { name: 'inference-router' },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}
