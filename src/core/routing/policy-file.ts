import type { Policy } from '../names.ts'
import { durationMs, durationText } from '../time.ts'
import type { RoutingRules } from './rules.ts'

/** Rules as they are written in the configuration and in the management API; times as `500ms`, `10s`, `5m`. */
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

/** A target as it is written; without a weight it has 1. */
export type TargetFile = string | { target: string; weight?: number }

/** A policy as it is written. */
export type PolicyFile = RoutingFile & { description?: string; targets: readonly TargetFile[] }

/** The rules that are written; they must have been checked. */
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

/** A policy that is written; it must have been checked. */
export function policyOf(id: string, { description = '', targets, ...rules }: PolicyFile): Policy {
  const weights = targets.flatMap((one) =>
    typeof one === 'string' || one.weight === undefined ? [] : [[one.target, one.weight] as const],
  )
  const routing = routingOf(rules)
  return {
    id,
    description,
    targets: targets.map(targetName),
    ...(weights.length > 0 && { weights: Object.fromEntries(weights) }),
    ...(Object.keys(routing).length > 0 && { routing }),
  }
}

/** Writes a policy as files and the management API have it: what `policyOf` reads. */
export function policyFile({ targets, weights, routing = {} }: Policy): Omit<PolicyFile, 'description'> {
  const { sort, sticky, retries, firstEventMs, totalMs, retryAfterMs, onCut, onBlocked } = routing
  return {
    targets: targets.map((target) => {
      const weight = weights?.[target]
      return weight === undefined ? target : { target, weight }
    }),
    ...known({
      sort,
      sticky,
      retries,
      first_event: text(firstEventMs),
      total: text(totalMs),
      retry_after: text(retryAfterMs),
      on_cut: onCut,
      on_blocked: onBlocked,
    }),
  }
}

/** The model of a written target. */
export function targetName(one: TargetFile): string {
  return typeof one === 'string' ? one : one.target
}

/** Checks whether the weights of all targets are 0: then none has a share of the calls. */
export function hasNoWeight({ targets, weights }: Pick<Policy, 'targets' | 'weights'>): boolean {
  return targets.every((target) => weights?.[target] === 0)
}

function ms(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : durationMs(duration)
}

function text(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : durationText(ms)
}

function known<Facts extends object>(facts: Facts): { [name in keyof Facts]?: NonNullable<Facts[name]> } {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as never
}
