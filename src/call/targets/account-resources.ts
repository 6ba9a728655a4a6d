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
  }: { held: Pick<HeldState, 'hasAnywhere'>; organizations: Pick<Store['organizations'], 'areSeveral'> },
): AccountResources {
  return {
    allows(organization, provider, id) {
      const listed = settings.get(organization)?.resources ?? []
      if (listed === 'open') return true
      if (matchesIdPattern(listed, id) || matchesIdPattern(listed, `${provider}/${id}`)) return true
      return !organizations.areSeveral() || held.hasAnywhere(organization, id)
    },
  }
}
