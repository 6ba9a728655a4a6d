import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'

/** Cached rules of organizations. */
export type OrganizationCache = {
  /** Returns the rules of an organization: the same object as long as nothing has changed. Throws an Error for an unknown one. */
  rulesOf(id: string): OrganizationRules
}

/** Opens the rules of a store's organizations. `now` returns Unix milliseconds. */
export function openOrganizations(
  store: Pick<Store, 'organizations'>,
  { now = Date.now, rereadMs = defaultRereadMs } = {},
): OrganizationCache {
  const known = new LRUCache<string, { rules: OrganizationRules; readAt: number }>({ max: maxKnown })
  const changed = new Set<string>()
  store.organizations.onChange((id) => changed.add(id))
  return {
    rulesOf(id) {
      const at = now()
      let entry = known.get(id)
      // `at < readAt`: the clock was set back.
      if (!entry || changed.delete(id) || at - entry.readAt >= rereadMs || at < entry.readAt) {
        const rules = store.organizations.rules(id)
        if (!rules) throw new Error(`the organization ${id} of a key does not exist`)
        // Unchanged rules stay the same object, as values derived from them are cached by it.
        entry = { rules: entry && isDeepStrictEqual(rules, entry.rules) ? entry.rules : rules, readAt: at }
        known.set(id, entry)
      }
      return entry.rules
    },
  }
}

/** Maximum time for which a change by another process may go unnoticed. */
const defaultRereadMs = 2_000
const maxKnown = 10_000
