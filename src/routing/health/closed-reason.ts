import { type Target, targetId } from '../../manifest/target.ts'
import type { Explanation } from '../explanation.ts'
import type { RoutingState } from '../types.ts'
import type { ClosedFor, Trouble } from './health.ts'

/** What is known of targets; `organization`: whose call it is. */
type State = Pick<RoutingState, 'health' | 'gates'> & { organization?: string }

/** Why a target that is passed over is not asked now. */
export function passOver(explanation: Explanation, target: Target, state: State): void {
  if (skipClosed(explanation, target, state)) return
  explanation.skip(target, 'health', someCalls)
}

/** Notes a target that takes no calls now, and why. Returns whether it takes none. */
export function skipClosed(explanation: Explanation, target: Target, { health, gates, organization }: State): boolean {
  const closed = health.closedFor(target, organization)
  if (closed) {
    explanation.skip(target, 'health', noCalls(closed))
    return true
  }
  if (gates.of(target)?.isOpen !== false) return false
  explanation.skip(target, 'capacity', 'runs as many calls as it may')
  return true
}

/** Notes a target that takes no calls of an organization, or not all, by what all event loops report. */
export function skipTroubled(
  explanation: Explanation,
  target: Target,
  { organization, troubled }: { organization: string; troubled: readonly Trouble[] },
): void {
  const names = { target: targetId(target), credential: target.provider.slug, address: target.provider.slug }
  for (const { scope, name, state, until, organization: only = organization } of troubled) {
    if (name !== names[scope] || only !== organization) continue
    const isClosed = until !== undefined
    explanation.skip(
      target,
      'health',
      isClosed ? noCalls({ ms: until - Date.now(), isBusy: state === 'paused' }) : someCalls,
    )
    if (isClosed) return
  }
}

function noCalls({ ms, isBusy }: ClosedFor): string {
  const why = isBusy ? 'because it is busy, by its own words' : 'after failures'
  return `takes no calls for ${Math.max(1, Math.ceil(ms / 1_000))} s, ${why}`
}

const someCalls = 'failed a moment ago, and takes only some calls until it has answered some'
