import type { JsonObject } from '../core/json.ts'
import { usdOf } from '../money/usd.ts'
import type { Organization } from '../store/organizations.ts'
import { json, type ManagementRooms, type ManageRoute } from './manage.ts'

/** `/v1/manage/org`: the organization of the key. */
export function organizationRoutes({ store }: ManagementRooms): ManageRoute[] {
  return [
    {
      path: '/v1/manage/org',
      answer: ({ organization }) => json(organizationEntry(store.organizations.find(organization) as Organization)),
    },
  ]
}

/** An organization as the API shows it: `balance` is credit minus spend, in USD. */
export function organizationEntry({ name, creditNano, spendNano }: Organization): JsonObject {
  return { name, balance: usdOf(creditNano - spendNano) }
}
