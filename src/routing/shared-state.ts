import type { HealthSettings } from '../core/routing/rules.ts'
import { Affinity } from './affinity.ts'
import { type Finding, sharedClock } from './findings.ts'
import { ConcurrencyLimiters } from './health/concurrency-limiter.ts'
import { Health, type HealthOptions } from './health/health.ts'
import { RetryBudget } from './health/retries.ts'
import { Measurements } from './measurements.ts'
import type { RoutingState } from './types.ts'

/** The routing state of an event loop. Several of them know the same when each adopts the findings of the others. */
export type SharedState = RoutingState & {
  /** Adopts findings of other event loops. */
  merge(findings: readonly Finding[]): void
  /** Returns everything that is known, for an event loop that knows nothing yet. */
  findings(): Finding[]
}

export type SharedStateOptions = {
  settings(): HealthSettings
  /** Number of event loops that share the limits of concurrent calls. */
  workers?: number
  onRefused?: HealthOptions['onRefused']
  /** Called immediately with circuits, paced calls and kept keys; measurements are polled. Without it nothing is shared. */
  onFound?: ((finding: Finding) => void) | undefined
  now?: () => number
  random?: () => number
}

/** Opens the state of an event loop that has seen no call. */
export function openSharedState({
  settings,
  workers = 1,
  onRefused,
  onFound,
  now = sharedClock,
  random = Math.random,
}: SharedStateOptions): SharedState {
  const own = { now, ...(onFound && { onFound }) }
  const health = new Health({ settings, random, ...own, ...(onRefused && { onRefused }) })
  const affinity = new Affinity(own)
  const measurements = new Measurements({ now, isShared: onFound !== undefined })
  const adoptOne = (finding: Finding) => {
    if (finding.kind === 'circuit') health.merge(finding)
    else if (finding.kind === 'paced') health.mergePaced(finding)
    else if (finding.kind === 'kept') affinity.merge(finding)
    else measurements.merge(finding)
  }
  return {
    health,
    affinity,
    measurements,
    retries: new RetryBudget({ now }),
    limiters: new ConcurrencyLimiters(workers),
    merge: (findings) => findings.forEach(adoptOne),
    findings: () => [...health.findings(), ...affinity.findings(), ...measurements.findings()],
  }
}
