import type { MaybePromise } from '../runtime/maybe-promise.ts'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'
import { ReadCache } from './read-cache.ts'

/** Cached rules of organizations. */
export type OrganizationCache = {
  /**
   * Returns the rules of an organization, at once where they are known: the same object as long as nothing has changed. Rejects with an Error
   * for an unknown one.
   */
  rulesOf(id: string): MaybePromise<OrganizationRules>
}

/** Opens the rules of a store's organizations. `now` returns Unix milliseconds. */
export function openOrganizations(
  { organizations }: Pick<Store, 'organizations'>,
  { now = Date.now, rereadMs = defaultRereadMs } = {},
): OrganizationCache {
  const read = async (id: string): Promise<OrganizationRules> => {
    const rules = await organizations.rules(id)
    if (!rules) throw new Error(`the organization ${id} of a key does not exist`)
    return rules
  }
  const known = new ReadCache({ read, now, rereadMs, max: maxKnown })
  organizations.onChange((id) => known.invalidate(id))
  return { rulesOf: (id) => known.get(id) }
}

/** Maximum time for which a change by another process may go unnoticed. */
const defaultRereadMs = 2_000
const maxKnown = 10_000
