import { oneOf } from '../../api/check.ts'
import type { JsonObject } from '../../core/json.ts'
import { dayMs } from '../../core/time.ts'
import { type Figures, latencyGroups, type Quantiles } from '../../store/queries/latency-query.ts'
import { json, type ManagementContext, type ManageRoute } from '../manage.ts'
import { invalid } from '../read.ts'
import { filteredCalls } from './call-filters.ts'

/** Serves `/v1/manage/latency`: how long the newest calls took, of the last day by default. */
export function latencyRoutes({ store }: Pick<ManagementContext, 'store'>): ManageRoute[] {
  return [
    {
      path: '/v1/manage/latency',
      async handle({ organization, query }) {
        const { group_by, from = Date.now() - dayMs, to, filters } = filteredCalls(query, ['group_by'])
        for (const name of ['outcome', 'code'] as const)
          if (filters[name] !== undefined)
            throw invalid(`Latencies are only available for complete calls: leave '${name}' out.`, name)
        const groupBy = group_by === undefined ? {} : { groupBy: oneOf(latencyGroups)(group_by, 'group_by') }
        const { isWhole, groups, ...all } = await store.calls.latency({ organization, from, to, filters, ...groupBy })
        return json({
          ...figuresEntry(all),
          complete: isWhole,
          ...(group_by !== undefined && { groups: groups.map(({ value, ...of }) => ({ value, ...figuresEntry(of) })) }),
        })
      },
    },
  ]
}

function figuresEntry({ calls, firstEventMs, durationMs, tokensPerSecond }: Figures): JsonObject {
  return {
    calls,
    first_event_ms: quantilesEntry(firstEventMs),
    duration_ms: quantilesEntry(durationMs),
    tokens_per_second: quantilesEntry(tokensPerSecond),
  }
}

function quantilesEntry({ p50, p95 }: Partial<Quantiles> = {}): JsonObject {
  const rounded = (value: number | undefined) => (value === undefined ? null : Math.round(value * 10) / 10)
  return { p50: rounded(p50), p95: rounded(p95) }
}
