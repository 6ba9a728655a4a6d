import { required } from '../api/check.ts'
import type { JsonObject } from '../core/json.ts'
import { usdOf } from '../money/usd.ts'
import type { Group } from '../store/groups.ts'
import type { Tables } from '../store/tables.ts'
import { limitsOf, requireCapacity } from './creation-limits.ts'
import { limitUsd, stateEntry, timeText } from './key-entry.ts'
import { refuseLast } from './keys.ts'
import {
  changedBy,
  json,
  type ManageRequest,
  type ManageRoute,
  missing,
  noContent,
  pathPart,
  type RecordContext,
  requireNoMore,
  uniqueName,
} from './manage.ts'
import { isRecordId, pageOf } from './page.ts'
import { invalid, membersOf, orNull, parametersOf, title, usdLimit } from './read.ts'

/** Serves `/v1/manage/group`: keys that share a monthly limit. */
export function groupRoutes(context: RecordContext): ManageRoute[] {
  const { store } = context
  return [
    {
      path: '/v1/manage/group',
      handle: (request) =>
        pageOf(request, {
          name: 'groups',
          read: store.groups.page,
          isCursor: isRecordId,
          idOf: ({ id }) => id,
          entry: (group) => groupEntry(group, store),
        }),
    },
    {
      path: '/v1/manage/group',
      method: 'post',
      handle: async (request) => {
        const body = membersOf(request.body, ['name', 'monthly_limit'])
        const name = required(body.name, 'name', 'the name of the group', title)
        const monthlyLimitNano = orNull(usdLimit)(body.monthly_limit, 'monthly_limit')
        const { organization } = request
        const created = await uniqueName('name', () =>
          changedBy(request, store, async (tx) => {
            requireCapacity('groups', await tx.groups.count(organization), limitsOf(context))
            const group = await tx.groups.create({ organization, name, monthlyLimitNano })
            return {
              result: group,
              organization: request.organization,
              action: 'group.create',
              subject: group.id,
              after: await groupEntry(group, tx),
            }
          }),
        )
        return json({ group_id: created.id }, 201)
      },
    },
    {
      path: '/v1/manage/group/:id',
      handle: async (request) => json(await groupEntry(await groupOf(request, store), store)),
    },
    {
      path: '/v1/manage/group/:id',
      method: 'delete',
      handle: async (request) => {
        const keys = fateOfKeys(request)
        await changedBy(request, store, async (tx) => {
          const group = await groupToChange(request, tx)
          if (keys === undefined && group.monthlyLimitNano !== null) throw invalid(chooseFate, 'keys')
          if (keys === 'revoke') await revokeKeys(request, group, tx)
          await tx.groups.remove(group.id)
          return {
            result: undefined,
            organization: request.organization,
            action: 'group.delete',
            subject: group.id,
            before: await groupEntry(group, tx),
          }
        })
        return noContent
      },
    },
    {
      path: '/v1/manage/group/:id/limit',
      method: 'post',
      handle: async (request) => json(await groupEntry(await limitGroup(request, store), store)),
    },
  ]
}

async function limitGroup(request: ManageRequest, store: Tables): Promise<Group> {
  const { monthly_limit } = membersOf(request.body, ['monthly_limit'])
  if (monthly_limit === undefined) {
    throw invalid("'monthly_limit' is missing: it must be a number of USD; 0 means unlimited.", 'monthly_limit')
  }
  const limit = orNull(usdLimit)(monthly_limit, 'monthly_limit')
  const limitEntry = ({ monthlyLimitNano }: Group) => ({ monthly_limit: limitUsd(monthlyLimitNano) })
  return await changedBy(request, store, async (tx) => {
    const before = await groupToChange(request, tx)
    const result = (await tx.groups.setLimit(before.id, limit)) as Group
    return {
      result,
      organization: request.organization,
      action: 'group.limit',
      subject: before.id,
      before: limitEntry(before),
      after: limitEntry(result),
    }
  })
}

async function groupOf(request: ManageRequest, { groups }: Pick<Tables, 'groups'>): Promise<Group> {
  const id = pathPart(request, 'id')
  const found = await groups.find(id)
  return found?.organization === request.organization ? found : missing('group', id)
}

/**
 * Finds a group like `groupOf`; rejects with RouterError 403 for a group with a key that has more permissions than the caller: its limit is that
 * key's.
 */
async function groupToChange(request: ManageRequest, tx: Tables): Promise<Group> {
  const group = await groupOf(request, tx)
  for (const permissions of await tx.keys.permissionsOfGroup(group.id))
    requireNoMore(request.key, { permissions }, 'a key of this group has')
  return group
}

/** Reads from the query what happens to the keys of a deleted group. */
function fateOfKeys({ query }: ManageRequest): 'keep' | 'revoke' | undefined {
  const { keys } = parametersOf(query, ['keys'])
  if (keys === undefined || keys === 'keep' || keys === 'revoke') return keys
  throw invalid(`'keys' must be keep or revoke, not '${keys.slice(0, 40)}'.`, 'keys')
}

const chooseFate =
  "This group has a limit, which its keys would lose: set 'keys' to keep to keep them without it, or to revoke to revoke them."

/** Maximum number of keys that are revoked at once: each is an entry in the log of changes, in one transaction. */
const maxRevoked = 1_000

async function revokeKeys(
  { key: { id: actor }, organization }: ManageRequest,
  { id: group }: Group,
  tx: Tables,
): Promise<void> {
  const count = await tx.keys.countOfGroup(group)
  if (count > maxRevoked) {
    const message = `This group has ${count} active keys, and at most ${maxRevoked} are revoked at once: revoke some of them first.`
    throw invalid(message, 'keys')
  }
  const keys = await tx.keys.ofGroup(group)
  await tx.keys.revokeGroup(group)
  const revokedAt = Date.now()
  for (const key of keys) {
    await refuseLast(key, tx)
    const entry = { organization, actor, action: 'apikey.revoke', subject: key.id }
    await tx.audit.append({ ...entry, before: stateEntry(key), after: stateEntry({ ...key, revokedAt }) })
  }
}

async function groupEntry(
  { id, name, monthlyLimitNano, createdAt }: Group,
  { spend }: Pick<Tables, 'spend'>,
): Promise<JsonObject> {
  return {
    id,
    name,
    monthly_limit: limitUsd(monthlyLimitNano),
    monthly_spend: usdOf(await spend.ofGroup(id, Date.now())),
    created_at: timeText(createdAt),
  }
}
