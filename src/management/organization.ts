import { optional, required } from '../api/check.ts'
import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import { usdOf } from '../money/usd.ts'
import type { Organization } from '../store/organizations.ts'
import type { Tables } from '../store/tables.ts'
import { changedBy, json, type ManagementContext, type ManageRequest, type ManageRoute, missing } from './manage.ts'
import { invalid, membersOf, remark, usd } from './read.ts'

/** Serves `/v1/manage/org`: the organization of the key, and credit for it. */
export function organizationRoutes({ store }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/org',
      operates: true,
      handle: async ({ organization }) => json(organizationEntry(await found(organization, store))),
    },
    {
      path: '/v1/manage/org/credit',
      method: 'post',
      operates: true,
      handle: async (request) => {
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
        const credit = (within: Tables) =>
          changedBy(request, within, async (tx) => {
            const before = organizationEntry(await found(organization, tx))
            const result = await tx.organizations.credit(organization, nano, note)
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
        return { text: await madeOnce(request, { store, asked }, credit) }
      },
    },
  ]
}

async function found(id: string, { organizations }: Pick<Tables, 'organizations'>): Promise<Organization> {
  return (await organizations.find(id)) ?? missing('organization', id)
}

/** Returns an organization in the API: `balance` is credit minus spend, in USD. */
function organizationEntry({ name, creditNano, spendNano }: Organization): JsonObject {
  return { name, balance: usdOf(creditNano - spendNano) }
}

/**
 * Runs a change that returns its answer, in one transaction. With the header `Idempotency-Key` it is made once: the same
 * request gets the same answer again, another one with the same key 409. `asked` is the request in a form that is the same for the
 * same request.
 */
async function madeOnce(
  { headers, organization }: ManageRequest,
  { store, asked: requested }: { store: Tables; asked: string },
  change: (tx: Tables) => Promise<string>,
): Promise<string> {
  const key = headers['idempotency-key']
  if (key === undefined) return await store.atomically(change)
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) throw invalid(wrongKey, 'Idempotency-Key')
  return await store.atomically(async (tx) => {
    const earlier = await tx.idempotency.find(organization, key)
    if (earlier && earlier.request !== requested)
      throw new RouterError('idempotency_conflict', usedKey, { param: 'Idempotency-Key' })
    if (earlier) return earlier.answer
    const answer = await change(tx)
    await tx.idempotency.keep(organization, key, { request: requested, answer })
    return answer
  })
}

const wrongKey =
  "'Idempotency-Key' must be one text of 1 to 255 letters, digits and punctuation without spaces, as a UUID is."
const usedKey =
  "This 'Idempotency-Key' was used for another request. Choose a new key for each change, and repeat it only with the same body."
