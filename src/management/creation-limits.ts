import type { CreationLimits } from '../core/creation-limits.ts'
import { RouterError } from '../core/errors.ts'
import { hourMs } from '../core/time.ts'
import { invalid } from './read.ts'

/** The configuration as far as it limits what an organization can create. */
export type LimitingConfig = { watch: { current(): { config: { manage: { limits: CreationLimits } } } } }

/** Returns the limits of the current configuration. */
export function limitsOf({ watch }: LimitingConfig): CreationLimits {
  return watch.current().config.manage.limits
}

/** Throws RouterError 400 where an organization that has so many records of a kind cannot create another one. */
export function requireCapacity(
  kind: 'keys' | 'groups' | 'aliases' | 'policies',
  count: number,
  limits: CreationLimits,
): void {
  const { [kind]: limit } = limits
  if (count < limit) return
  const message = `This organization has ${count} ${kind}; manage.limits.${kind} of this server is ${limit}. Delete one first.`
  throw invalid(message)
}

/** Counter of the changes of each organization in the present hour of the clock. */
export class ChangeCounts {
  #hour = 0
  readonly #counts = new Map<string, number>()

  /** Counts a change. Throws RouterError 429, with the time until the next hour, for one too many. */
  count(organization: string, { changesPerHour }: CreationLimits, now = Date.now()): void {
    const hour = Math.floor(now / hourMs)
    if (hour !== this.#hour) this.#counts.clear()
    this.#hour = hour
    const count = (this.#counts.get(organization) ?? 0) + 1
    if (count > changesPerHour) {
      const message = `This organization has made ${changesPerHour} changes in this hour, the manage.limits.changes_per_hour of this server.`
      throw new RouterError('rate_limited', message, { retryAfterMs: (hour + 1) * hourMs - now })
    }
    this.#counts.set(organization, count)
  }
}
