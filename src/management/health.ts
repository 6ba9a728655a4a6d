import type { JsonObject } from '../core/json.ts'
import type { Trouble } from '../routing/health/health.ts'
import { timeText } from './key-entry.ts'
import { json, type ManagementContext, type ManageRoute } from './manage.ts'

/** `/v1/manage/health`: what takes no calls, or not all: addresses, credentials and targets of providers. */
export function providerHealthRoutes({ troubled }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/health',
      handle: ({ organization }) => json({ troubled: concerning(organization, troubled()).map(troubleEntry) }),
    },
  ]
}

/** What concerns the calls of an organization: what only another one has met does not. */
export function concerning(organization: string, troubled: readonly Trouble[]): Trouble[] {
  return troubled.filter((one) => one.organization === undefined || one.organization === organization)
}

/** In the API: times as text, null where nothing is known. */
export function troubleEntry({ until, reason, ...known }: Trouble): JsonObject {
  return { ...known, until: until === undefined ? null : timeText(until), reason: reason ?? null }
}
