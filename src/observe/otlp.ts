import type { HrTime } from '@opentelemetry/api'
import type { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base'
import type { IExporterMetricsHelper, ISerializer, ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { parseJson } from '../core/json.ts'
import type { Log } from './log.ts'

/** A signal, by its name in OpenTelemetry's variables. */
export type Signal = 'TRACES' | 'METRICS'

/** Checks whether the variables name a collector for a signal. */
export function isExported(signal: Signal, env: NodeJS.ProcessEnv): boolean {
  const exporters = env[`OTEL_${signal}_EXPORTER`] || 'otlp'
  const isOff = env.OTEL_SDK_DISABLED === 'true' || !exporters.split(',').some((name) => name.trim() === 'otlp')
  return !isOff && Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT || env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`])
}

/** Metrics of one export request, as the SDK has them. */
export type MetricsRequest = Parameters<typeof ProtobufMetricsSerializer.serializeRequest>[0]

/**
 * Access to a collector by OTLP: the packages, the resource that all telemetry of the process has, and an exporter for each signal, which
 * has its address, headers, compression and time limit from the variables.
 */
export type Otlp = {
  api: typeof import('@opentelemetry/api')
  sdk: typeof import('@opentelemetry/sdk-trace')
  resource: Resource
  spanExporter(): OTLPExporterBase<ReadableSpan[]>
  metricsExporter(): OTLPExporterBase<MetricsRequest>
  /** Logs what the SDK reports, once a minute at most. */
  warn(message: string): void
}

/** Loads the packages, which nothing else needs. Throws an Error that names one that is missing. */
export async function openOtlp(log: Log): Promise<Otlp> {
  const { api, sdk, resources, base, http, transformer } = await load()
  const warn = onceAMinute((message) =>
    log.warn({ message: messageIn(message) }, 'the collector does not accept telemetry'),
  )
  const ignore = () => {}
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore }
  api.diag.setLogger(logger, { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true })
  const exporter = <Items, Answer>(
    { signal, path, type }: { signal: Signal; path: string; type: string },
    serializer: ISerializer<Items, Answer>,
    helper: IExporterMetricsHelper<Items>,
  ) => {
    const options = http.convertLegacyHttpOptions({}, signal, path, { 'Content-Type': 'application/x-protobuf' })
    return new base.OTLPExporterBase(http.createOtlpHttpExportDelegate(options, serializer, type, helper, undefined))
  }
  const traces = { signal: 'TRACES', path: 'v1/traces', type: 'otlp_http_span_exporter' } as const
  const metrics = { signal: 'METRICS', path: 'v1/metrics', type: 'otlp_http_metric_exporter' } as const
  return {
    api,
    sdk,
    resource: resourceOf(resources),
    spanExporter: () => exporter(traces, transformer.ProtobufTraceSerializer, transformer.TraceExporterMetricsHelper),
    metricsExporter: () =>
      exporter(metrics, transformer.ProtobufMetricsSerializer, transformer.MetricsExporterMetricsHelper),
    warn,
  }
}

async function load() {
  try {
    const [api, sdk, resources, base, http, transformer] = await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/otlp-exporter-base'),
      import('@opentelemetry/otlp-exporter-base/node-http'),
      import('@opentelemetry/otlp-transformer'),
    ])
    return { api, sdk, resources, base, http, transformer }
  } catch (thrown) {
    const message =
      'OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages for it are missing: install @opentelemetry/api, @opentelemetry/sdk-trace, @opentelemetry/resources, @opentelemetry/otlp-exporter-base and @opentelemetry/otlp-transformer.'
    throw new Error(message, { cause: thrown })
  }
}

/** Describes this process: with an id of its own, since a successor may send its telemetry at the same time. */
function resourceOf(resources: typeof import('@opentelemetry/resources')): Resource {
  const { serviceInstanceIdDetector, envDetector } = resources
  // The variables come last and win.
  const detected = resources.detectResources({ detectors: [serviceInstanceIdDetector, envDetector] })
  const named = resources.defaultResource().merge(detected)
  return named.attributes['service.name']?.toString().startsWith('unknown_service')
    ? named.merge(resources.resourceFromAttributes({ 'service.name': 'inference-router' }))
    : named
}

/** Converts milliseconds to seconds and nanoseconds. */
export function hrTime(ms: number): HrTime {
  const seconds = Math.trunc(ms / 1_000)
  return [seconds, Math.round((ms - seconds * 1_000) * 1e6)]
}

/** Returns the message of an error that the SDK reports as JSON, with its stack and the collector's answer. */
export function messageIn(reported: string): string {
  const { message } = (parseJson(reported) ?? {}) as { message?: unknown }
  return typeof message === 'string' ? message : reported
}

function onceAMinute(report: (message: string) => void): (message: string) => void {
  let reportedAt = -Infinity
  return (message) => {
    const now = performance.now()
    if (now - reportedAt < 60_000) return
    reportedAt = now
    report(message)
  }
}
