import { optional } from '../api/check.ts'
import type { JsonObject } from '../core/json.ts'
import type { RateLimits } from '../core/limits.ts'
import { limitsEntry } from './key-entry.ts'
import { json, type ManagementRooms, type ManageRoute, noted, rulesOf } from './manage.ts'
import { countLimit, membersOf } from './read.ts'

/** `/v1/manage/org/limits`: how much all keys of the organization together may ask. */
export function limitRoutes({ store }: ManagementRooms): ManageRoute[] {
  const path = '/v1/manage/org/limits'
  const shown = (organization: string) => limitsEntry(rulesOf(store, organization).limits)
  return [
    { path, answer: ({ organization }) => json(shown(organization)) },
    {
      path,
      method: 'put',
      answer: (asked) => {
        const { organization } = asked
        const limits = limitsFrom(membersOf(asked.body, limitFields))
        return json(
          noted(store, asked, () => {
            const before = shown(organization)
            store.organizations.setLimits(organization, limits)
            const after = shown(organization)
            return { result: after, action: 'organization.limits', subject: organization, before, after }
          }),
        )
      },
    },
  ]
}

/** The fields of limits. */
export const limitFields = ['requests_per_minute', 'tokens_per_minute', 'concurrent_calls']

/** The limits of a body; what is left out, null or 0 does not limit. Throws RouterError 400. */
export function limitsFrom(body: JsonObject): RateLimits {
  const limit = (name: string) => optional(body[name], name, countLimit) ?? null
  return {
    requestsPerMinute: limit('requests_per_minute'),
    tokensPerMinute: limit('tokens_per_minute'),
    concurrentCalls: limit('concurrent_calls'),
  }
}
