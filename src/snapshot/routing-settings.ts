import { durationMs } from '../core/duration.ts'
import type { Policy } from '../core/names.ts'
import { type PolicyFile, policyOf } from '../core/routing/policy-file.ts'
import { defaultHealth, type HealthSettings } from '../core/routing/rules.ts'

export type HealthFile = {
  consecutive_failures?: number
  share?: number
  min_calls?: number
  window?: string
  open_for?: string
  max_open?: string
  ramp_up?: string
}

/** Policies by id, of a file that has passed its schema. */
export function policiesOf(file: { [id: string]: PolicyFile }): Map<string, Policy> {
  return new Map(Object.entries(file).map(([id, policy]) => [id, policyOf(id, policy)]))
}

/** The settings of health that a file states, with the defaults of the others. */
export function healthOf(file: HealthFile): HealthSettings {
  const { consecutive_failures, share, min_calls, window, open_for, max_open, ramp_up } = file
  const base = defaultHealth
  return {
    inARow: consecutive_failures ?? base.inARow,
    share: share ?? base.share,
    of: min_calls ?? base.of,
    windowMs: ms(window) ?? base.windowMs,
    openMs: ms(open_for) ?? base.openMs,
    openMostMs: ms(max_open) ?? base.openMostMs,
    rampMs: ms(ramp_up) ?? base.rampMs,
  }
}

function ms(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration)
}
