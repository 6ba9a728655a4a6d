import { optional, required } from '../api/check.ts'
import type { JsonObject } from '../core/json.ts'
import { usdOf } from '../money/usd.ts'
import { audited } from '../store/audit.ts'
import type { Organization } from '../store/organizations.ts'
import { madeOnce } from './idempotency.ts'
import { json, type ManagementContext, type ManageRoute, missing } from './manage.ts'
import { invalid, membersOf, remark, usd } from './read.ts'

/** `/v1/manage/org`: the organization of the key, and credit for it. */
export function organizationRoutes({ store }: ManagementContext): ManageRoute[] {
  const found = (id: string): Organization => store.organizations.find(id) ?? missing('organization', id)
  return [
    {
      path: '/v1/manage/org',
      operates: true,
      handle: ({ organization }) => json(organizationEntry(found(organization))),
    },
    {
      path: '/v1/manage/org/credit',
      method: 'post',
      operates: true,
      handle: (request) => {
        const { organization } = request
        const body = membersOf(request.body, ['amount', 'note'])
        const nano = required(body.amount, 'amount', 'a number of USD, negative to take credit back', usd)
        if (nano === 0n)
          throw invalid(
            "'amount' must not be 0: write the USD to add, or a negative number to take credit back.",
            'amount',
          )
        const note = optional(body.note, 'note', remark) ?? ''
        const asked = JSON.stringify(['organization.credit', String(nano), note])
        const credit = () =>
          audited(store, request.key.id, () => {
            const before = organizationEntry(found(organization))
            const result = store.organizations.credit(organization, nano, note)
            const after = { ...organizationEntry(result), amount: usdOf(nano), note }
            return {
              result: JSON.stringify(organizationEntry(result)),
              organization,
              action: 'organization.credit',
              subject: organization,
              before,
              after,
            }
          })
        return { text: madeOnce(request, { store, asked }, credit) }
      },
    },
  ]
}

/** An organization in the API: `balance` is credit minus spend, in USD. */
export function organizationEntry({ name, creditNano, spendNano }: Organization): JsonObject {
  return { name, balance: usdOf(creditNano - spendNano) }
}
