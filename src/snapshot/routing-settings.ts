import type { Policy } from '../core/names.ts'
import { defaultHealth, type HealthSettings, type RoutingRules } from '../core/routing-rules.ts'
import { durationMs } from '../manifest/duration.ts'

/** Rules as they are written in files and in the management API. */
export type RoutingFile = {
  sort?: RoutingRules['sort']
  sticky?: RoutingRules['sticky']
  retries?: number
  first_event?: string
  total?: string
  retry_after?: string
  on_cut?: RoutingRules['onCut']
  on_blocked?: RoutingRules['onBlocked']
}

export type TargetFile = string | { target: string; weight?: number }
export type PolicyFile = RoutingFile & { description?: string; targets: TargetFile[] }

export type HealthFile = {
  in_a_row?: number
  share?: number
  of?: number
  window?: string
  open?: string
  open_most?: string
  ramp?: string
}

/** The rules that a file states, which has passed its schema. */
export function routingOf(file: RoutingFile): Partial<RoutingRules> {
  const { sort, sticky, retries, first_event, total, retry_after, on_cut, on_blocked } = file
  return known({
    sort,
    sticky,
    retries,
    firstEventMs: ms(first_event),
    totalMs: ms(total),
    retryAfterMs: ms(retry_after),
    onCut: on_cut,
    onBlocked: on_blocked,
  })
}

/** Policies by id, of a file that has passed its schema. */
export function policiesOf(file: { [id: string]: PolicyFile }): Map<string, Policy> {
  const policies = Object.entries(file).map(([id, policy]) => policyOf(id, policy))
  return new Map(policies.map((policy) => [policy.id, policy]))
}

function policyOf(id: string, { description = '', targets, ...rules }: PolicyFile): Policy {
  const written = targets.map((target) => (typeof target === 'string' ? { target } : target))
  const weights = written.flatMap(({ target, weight }) => (weight === undefined ? [] : [[target, weight] as const]))
  const routing = routingOf(rules)
  return {
    id,
    description,
    targets: written.map(({ target }) => target),
    ...(weights.length > 0 && { weights: Object.fromEntries(weights) }),
    ...(Object.keys(routing).length > 0 && { routing }),
  }
}

/** The settings of health that a file states, with the defaults of the others. */
export function healthOf({ in_a_row, share, of, window, open, open_most, ramp }: HealthFile): HealthSettings {
  return {
    ...defaultHealth,
    ...known({
      inARow: in_a_row,
      share,
      of,
      windowMs: ms(window),
      openMs: ms(open),
      openMostMs: ms(open_most),
      rampMs: ms(ramp),
    }),
  }
}

function ms(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration)
}

function known<Facts extends object>(facts: Facts): { [name in keyof Facts]?: NonNullable<Facts[name]> } {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as never
}
