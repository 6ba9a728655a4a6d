import type { Target } from '../manifest/target.ts'
import type { Explanation } from './explanation.ts'
import type { RoutingState } from './trial.ts'

/** What is known of targets; `organization`: whose call it is. */
type State = Pick<RoutingState, 'health' | 'gates'> & { organization?: string }

/** Why a target that is passed over is not asked now. */
export function passOver(explanation: Explanation, target: Target, state: State): void {
  if (skipClosed(explanation, target, state)) return
  explanation.skip(target, 'health', 'failed a moment ago, and takes only some calls until it has answered some')
}

/** Notes a target that takes no calls now, and why. Returns whether it takes none. */
export function skipClosed(explanation: Explanation, target: Target, { health, gates, organization }: State): boolean {
  const closed = health.closedFor(target, organization)
  if (closed) {
    const seconds = Math.ceil(closed.ms / 1_000)
    const why = closed.isBusy ? 'because it is busy, by its own words' : 'after failures'
    explanation.skip(target, 'health', `takes no calls for ${seconds} s, ${why}`)
    return true
  }
  if (gates.of(target)?.isOpen !== false) return false
  explanation.skip(target, 'capacity', 'runs as many calls as it may')
  return true
}
