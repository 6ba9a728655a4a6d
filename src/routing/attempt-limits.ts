import type { RoutingRules } from '../core/routing/rules.ts'
import type { Target } from '../manifest/target.ts'
import type { AttemptLimits } from './types.ts'

/** `leftMs`: time that is left of the call; `isOpen`: one of the targets that follow takes all calls. */
type Situation = { leftMs: number; target: Target; rules: RoutingRules; isOpen: boolean }

/**
 * Returns the limits of an attempt that so many targets follow: each of them gets a minute, or an equal share where there is less. So a
 * silent target leaves time for the next one.
 */
export function limitsBefore(
  following: number,
  { leftMs, target, rules, isOpen }: Situation,
): Required<Omit<AttemptLimits, 'totalMs'>> {
  const ms = Math.min(leftMs, target.provider.timeouts.wholeMs)
  const shareMs = Math.max(1, Math.ceil(ms - following * Math.min(enoughMs, ms / (following + 1))))
  return { firstEventMs: isOpen ? Math.min(rules.firstEventMs, shareMs) : shareMs, wholeMs: shareMs }
}

const enoughMs = 60_000
