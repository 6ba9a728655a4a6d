import type { JsonObject } from '../../core/json.ts'
import { hourMs } from '../../core/time.ts'
import type { Quantiles } from '../../store/queries/latency-query.ts'
import { tallyMs } from '../../store/queries/recent-attempts.ts'
import type { TargetFigures, Targets } from '../../store/queries/targets-query.ts'
import { concernsOperator } from '../calls/calls.ts'
import { organizationIn } from '../instance.ts'
import { timeText } from '../key-entry.ts'
import { json, type ManagementContext, type ManageRequest, type ManageRoute, mayOperate } from '../manage.ts'
import { concerning, outageEntry } from '../providers.ts'
import { invalid, parametersOf } from '../read.ts'

/**
 * Serves `/v1/manage/targets`: how targets of providers have answered in the last hours, in the calls of the organization, and what they
 * wrote last; and `/v1/manage/instance/targets`: the same of all organizations.
 */
export function targetRoutes({ store, degraded }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/targets',
      async handle({ key, organization, query }) {
        const span = spanIn(query)
        const listed = await store.calls.targets({ organization, ...span })
        const found = (await mayOperate(key, store)) ? listed : forOrganization(listed)
        return json({
          ...targetsEntry(found, span, organization),
          degraded: concerning(organization, degraded()).map(outageEntry),
        })
      },
    },
    {
      path: '/v1/manage/instance/targets',
      readsInstance: true,
      async handle({ organization: own, query: { organization: asked, ...query } }) {
        const organization = await organizationIn(asked, store)
        const span = spanIn(query)
        const found = await store.calls.targets({ ...(organization !== undefined && { organization }), ...span })
        const outages = organization === undefined ? degraded() : concerning(organization, degraded())
        return json({ ...targetsEntry(found, span, own), degraded: outages.map(outageEntry) })
      },
    },
  ]
}

/** Leaves out what providers wrote for the operator alone. */
function forOrganization({ targets, ...found }: Targets): Targets {
  return {
    ...found,
    targets: targets.map((target) => {
      if (!target.lastFailure || !concernsOperator(target.lastFailure.code)) return target
      const { message: _, ...lastFailure } = target.lastFailure
      return { ...target, lastFailure }
    }),
  }
}

type Span = { from: number; periodMs: number }

const maxHours = 24
/** Up to so many hours are counted in the shortest periods, more of them by the hour. */
const maxFineHours = 4

/** Returns the last hours, which end with the current period. Throws RouterError 400. */
function spanIn(query: ManageRequest['query']): Span {
  const { hours: asked = String(maxHours) } = parametersOf(query, ['hours'])
  const hours = /^\d{1,2}$/.test(asked) ? Number(asked) : 0
  if (hours < 1 || hours > maxHours)
    throw invalid(`'hours' must be a whole number from 1 to ${maxHours}, not '${asked.slice(0, 40)}'.`, 'hours')
  const periodMs = hours <= maxFineHours ? tallyMs : hourMs
  return { from: (Math.floor(Date.now() / periodMs) + 1) * periodMs - hours * hourMs, periodMs }
}

function targetsEntry({ since, targets }: Targets, { from, periodMs }: Span, own: string): JsonObject {
  return {
    start: timeText(from),
    counted_since: timeText(since),
    period_minutes: periodMs / 60_000,
    targets: targets.map((target) => targetEntry(target, own)),
  }
}

function targetEntry(target: TargetFigures, own: string): JsonObject {
  const { provider, model, succeeded, failed, others, failures, periods } = target
  const counted = succeeded + failed
  return {
    provider,
    model: `${provider}/${model}`,
    attempts: counted + others,
    succeeded,
    failed,
    success_rate: counted === 0 ? null : Math.round((succeeded / counted) * 10_000) / 10_000,
    failures,
    first_event_ms: quantilesEntry(target.firstEventMs),
    duration_ms: quantilesEntry(target.durationMs),
    last_success_at: timeOrNull(target.lastSuccessAt),
    failing_since: timeOrNull(target.failingSince),
    successes_since_failure: target.sinceFailure,
    last_failure: lastFailureEntry(target.lastFailure, own),
    periods: periods.map(({ start, ...counts }) => ({ start: timeText(start), ...counts })),
  }
}

function lastFailureEntry(last: TargetFigures['lastFailure'], own: string): JsonObject | null {
  if (!last) return null
  const { call, organization, at, code, failure, status, providerCode, message } = last
  return {
    at: timeText(at),
    call,
    ...(organization !== own && { organization }),
    code,
    class: failure,
    status,
    ...(providerCode !== undefined && { provider_code: providerCode }),
    ...(message !== undefined && { provider_message: message }),
  }
}

function quantilesEntry({ p50 = null, p95 = null }: { [name in keyof Quantiles]?: number | null } = {}): JsonObject {
  return { p50, p95 }
}

function timeOrNull(at: number | undefined): string | null {
  return at === undefined ? null : timeText(at)
}
