import type { RefusedCall } from '../core/refused-call.ts'

/** Maximum number of calls of one organization that are remembered, and of organizations: those that had one last. */
export const maxRefused = 200
const maxOrganizations = 100

/** The calls that were refused last, in memory: a client that is refused all the time must not fill the disk. */
export class RefusedCalls {
  readonly #byOrganization = new Map<string, RefusedCall[]>()
  /** Time since which they are remembered. Unix milliseconds. */
  readonly since = Date.now()

  readonly add = (call: RefusedCall): void => {
    const { organization } = call
    const calls = this.#byOrganization.get(organization) ?? []
    this.#byOrganization.delete(organization)
    this.#byOrganization.set(organization, calls)
    calls.push(call)
    // Moving them for each call would cost more than to keep some more for a while.
    if (calls.length >= 2 * maxRefused) calls.splice(0, calls.length - maxRefused)
    if (this.#byOrganization.size <= maxOrganizations) return
    for (const oldest of this.#byOrganization.keys()) {
      this.#byOrganization.delete(oldest)
      return
    }
  }

  /** Returns those of an organization, the latest first, though several threads may have reported them in another order. */
  of(organization: string): RefusedCall[] {
    const newest = (this.#byOrganization.get(organization) ?? []).slice(-maxRefused)
    return newest.reverse().sort((one, other) => other.at - one.at)
  }
}

/**
 * Passes on at most `max` refused calls of an organization in a second: to report every call of a flood would cost more than to refuse it,
 * and the flood of one organization must not hide what the others are refused.
 */
export function limitPerSecond<Call extends Pick<RefusedCall, 'organization'>>(
  max: number,
  pass: (call: Call) => void,
  now = Date.now,
): (call: Call) => void {
  let second = 0
  const counts = new Map<string, number>()
  return (call) => {
    const present = Math.floor(now() / 1_000)
    if (present !== second) counts.clear()
    second = present
    const count = (counts.get(call.organization) ?? 0) + 1
    counts.set(call.organization, count)
    if (count <= max) pass(call)
  }
}
