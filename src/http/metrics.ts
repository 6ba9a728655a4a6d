import { RouterError } from '../core/errors.ts'
import { writeMetrics } from '../observe/exposition.ts'
import type { Family } from '../observe/families.ts'
import type { JsonRequest, JsonRoute } from './types.ts'

/** Source of the metrics, with the check of who may read them: `requireReader` rejects with RouterError 401, 403. */
export type MetricsSource = {
  settings(): { enabled: boolean; public: boolean }
  requireReader(request: Pick<JsonRequest, 'headers'>): Promise<void>
  families(): Family[]
}

/** Serves `GET /metrics`, in the text of Prometheus or, where `Accept` asks for it, as OpenMetrics. */
export function metricsRoutes({ settings, requireReader, families }: MetricsSource): JsonRoute[] {
  const answer: JsonRoute['answer'] = async ({ headers }) => {
    const { enabled, public: isPublic } = settings()
    if (!isPublic) await requireReader({ headers })
    if (!enabled) {
      throw new RouterError('not_found', 'Metrics are switched off: write metrics.enabled: true in config.yaml.')
    }
    return await writeMetrics(families(), headers.accept)
  }
  return [{ path: '/metrics', answer }]
}
