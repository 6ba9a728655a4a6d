import { durationMs } from '../core/duration.ts'
import type { Policy } from '../core/names.ts'
import { type PolicyFile, policyOf } from '../core/policy-file.ts'
import { defaultHealth, type HealthSettings } from '../core/routing-rules.ts'

export type HealthFile = {
  in_a_row?: number
  share?: number
  of?: number
  window?: string
  open?: string
  open_most?: string
  ramp?: string
}

/** Policies by id, of a file that has passed its schema. */
export function policiesOf(file: { [id: string]: PolicyFile }): Map<string, Policy> {
  return new Map(Object.entries(file).map(([id, policy]) => [id, policyOf(id, policy)]))
}

/** The settings of health that a file states, with the defaults of the others. */
export function healthOf(file: HealthFile): HealthSettings {
  const { in_a_row, share, of, window, open, open_most, ramp } = file
  const base = defaultHealth
  return {
    inARow: in_a_row ?? base.inARow,
    share: share ?? base.share,
    of: of ?? base.of,
    windowMs: ms(window) ?? base.windowMs,
    openMs: ms(open) ?? base.openMs,
    openMostMs: ms(open_most) ?? base.openMostMs,
    rampMs: ms(ramp) ?? base.rampMs,
  }
}

function ms(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration)
}
