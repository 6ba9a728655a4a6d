import { createRequire } from 'node:module'
import type { Metric } from 'prom-client'
import { yieldToEventLoop } from '../runtime/event-loop.ts'
import type { Family } from './families.ts'

const require = createRequire(import.meta.url)

/** The text of metrics, and its media type. */
export type Exposition = { text: string; mediaType: string }

/**
 * Writes metrics as OpenMetrics where `accept` asks for it, else as Prometheus's own text. Thousands of series are written in pieces, so that
 * calls have their turns between them. Of the library only what writes is loaded, and when somebody first asks: the whole holds the event loop
 * for 50 milliseconds.
 */
export async function writeMetrics(families: readonly Family[], accept = ''): Promise<Exposition> {
  const Registry: typeof import('prom-client').Registry = require('prom-client/lib/registry.js')
  const isOpen = accept.includes('application/openmetrics-text')
  const mediaType = isOpen ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE
  let text = ''
  for (const family of families) {
    for (let at = 0; at < Math.max(family.samples.length, 1); at += samplesAtOnce) {
      const registry = new Registry()
      if (isOpen) registry.setContentType(mediaType as never)
      registry.registerMetric(asMetric({ ...family, samples: family.samples.slice(at, at + samplesAtOnce) }))
      const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && line !== end)
      // Help and type are written once.
      text += `${lines.slice(at === 0 ? 0 : 2).join('\n')}\n`
      await yieldToEventLoop()
    }
  }
  return { text: isOpen ? `${text}${end}\n` : text, mediaType }
}

/** The line that ends OpenMetrics. */
const end = '# EOF'

/** Converts a family to a metric as the library keeps its own; it may change the name, as OpenMetrics requires. */
function asMetric({ name, help, type, samples }: Family): Metric {
  const values = samples.map(({ name: metricName, labels, value }) => ({
    labels,
    value,
    ...(metricName !== undefined && { metricName }),
  }))
  const metric = { name, type, get: async () => ({ name: metric.name, help, type, values, aggregator: 'sum' }) }
  return metric as unknown as Metric
}

/** Number of samples that are written at once: about a millisecond, or less. */
const samplesAtOnce = 250
