import { matchesIdPattern } from '../../core/id-patterns.ts'
import type { Store } from '../../store/open.ts'
import type { AccountResources, HeldState } from '../types.ts'

/** Resources of the operator's accounts that an organization may use: all of them, or ids and patterns. */
export type ResourceSettings = { readonly resources: 'open' | readonly string[] }

/**
 * Opens the resources of the operator's accounts. An only organization may use all of them. Of several, each may use what was made for it
 * through this router, and what the operator lists for it.
 */
export function openAccountResources(
  settings: ReadonlyMap<string, ResourceSettings>,
  {
    held,
    organizations,
  }: { held: Pick<HeldState, 'holders'>; organizations: Pick<Store['organizations'], 'areSeveral'> },
): AccountResources {
  return {
    isListed(organization, provider, id) {
      const listed = settings.get(organization)?.resources ?? []
      return listed === 'open' || matchesIdPattern(listed, id) || matchesIdPattern(listed, `${provider}/${id}`)
    },
    isOwn: async (organization, id) =>
      !(await organizations.areSeveral()) || (await held.holders(organization, id)).length > 0,
  }
}
