import type { Sampling } from '../core/trace.ts'
import type { Family } from './families.ts'
import type { Log } from './log.ts'
import { metricsExportSettings, openMetricsExport } from './metrics-export.ts'
import { isExported, openOtlp } from './otlp.ts'
import { openTracing, type Tracing, traceSettings } from './tracing.ts'

/** Telemetry for a collector, as OpenTelemetry's variables ask for it. */
export type Telemetry = {
  sampling: Sampling
  /** Sends spans; undefined where none are sent. */
  tracing: Tracing | undefined
  /** Starts to send metrics, if they are sent; the last ones when the stack ends. */
  sendMetrics(families: () => Family[], started: AsyncDisposableStack): void
}

/** Opens the way to the collector, if there is one. Throws an Error that names a variable that is wrong, or a missing package. */
export async function openTelemetry(
  env: NodeJS.ProcessEnv,
  { log, hasMetrics }: { log: Log; hasMetrics: boolean },
  started: AsyncDisposableStack,
): Promise<Telemetry> {
  const { isSent, sampling } = traceSettings(env)
  const sendsMetrics = hasMetrics && isExported('METRICS', env)
  const otlp = isSent || sendsMetrics ? await openOtlp(log) : undefined
  return {
    sampling,
    tracing: otlp && isSent ? started.adopt(openTracing(otlp, env), (open) => open.close()) : undefined,
    sendMetrics(families, running) {
      if (!otlp || !sendsMetrics) return
      const settings = metricsExportSettings(env)
      running.adopt(openMetricsExport(otlp, { families, settings, log }), (open) => open.close())
    },
  }
}
