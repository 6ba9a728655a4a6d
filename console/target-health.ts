import { api } from './api.ts'
import { self } from './session.ts'

/** A circuit that is not closed. */
export type Outage = {
  scope: 'address' | 'credential' | 'target'
  name: string
  state: string
  organization?: string
  since: string | null
  until: string | null
  reason: string | null
}

export type Period = { start: string; succeeded: number; failed: number }
type Percentiles = { p50: number | null; p95: number | null }

/** The attempts at a target in the last hours. */
export type TargetHealth = {
  provider: string
  model: string
  attempts: number
  succeeded: number
  failed: number
  success_rate: number | null
  failures: Record<string, number>
  first_event_ms: Percentiles
  duration_ms: Percentiles
  last_success_at: string | null
  failing_since: string | null
  successes_since_failure: number
  last_failure: {
    at: string
    call: string
    organization?: string
    code: string
    class: string
    status: number
    provider_code?: string
    provider_message?: string
  } | null
  periods: Period[]
}

export type TargetList = {
  start: string
  counted_since: string
  period_minutes: number
  targets: TargetHealth[]
  degraded: Outage[]
}

/** True where the key may read what belongs to all organizations. */
export function seesInstance(): boolean {
  return self.value?.permissions.instance === 'read'
}

/** Loads how targets have answered the calls that the key may see: those of all organizations, or of its own. */
export async function loadTargets(hours: number, signal: AbortSignal): Promise<TargetList> {
  const path = seesInstance() ? 'v1/manage/instance/targets' : 'v1/manage/targets'
  return await api<TargetList>(path, { query: { hours }, signal })
}

/** The states of a target, the worst first, in words and in colour: one that is `shaky` fails now and then, or recovers. */
export const statuses = {
  down: ['failing', 'bad'],
  shaky: ['unstable', 'warn'],
  recovered: ['recovered', 'good'],
  healthy: ['healthy', 'good'],
  unknown: ['no calls', 'neutral'],
} as const
export type Status = keyof typeof statuses

export function statusOf(target: TargetHealth | undefined, outages: readonly Outage[], now = Date.now()): Status {
  if (outages.some(({ state }) => state === 'open' || state === 'paused')) return 'down'
  if (target?.failing_since) return target.succeeded > 0 && target.failed < fewFailures ? 'shaky' : 'down'
  if (outages.length > 0) return 'shaky'
  if (!target || target.success_rate === null) return 'unknown'
  const isRecent = target.last_failure !== null && now - Date.parse(target.last_failure.at) < recentMs
  if (!isRecent || target.success_rate >= healthyRate) return 'healthy'
  return target.successes_since_failure < manySuccesses ? 'shaky' : 'recovered'
}

/** Below so many failures, those since the last success may be chance. */
const fewFailures = 3
const recentMs = 900_000
/** After so many successes in a row, a target has recovered. */
const manySuccesses = 5
/** Share of successes from which a target is healthy in spite of recent failures. */
const healthyRate = 0.98

/** Returns the circuits that calls to a target go through: its own, and those of its provider. */
export function outagesOf(
  { provider, model }: { provider: string; model: string },
  outages: readonly Outage[],
): Outage[] {
  return outages.filter(({ scope, name }) => name === (scope === 'target' ? model : provider))
}

/** Returns the end of a text such as `since …` of how long something has lasted. */
export function lasting(since: string, now = Date.now()): string {
  const minutes = Math.floor(Math.max(now - Date.parse(since), 0) / 60_000)
  if (minutes < 1) return 'less than a minute'
  if (minutes < 60) return `${minutes} min`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
