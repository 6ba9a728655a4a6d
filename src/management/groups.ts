import { required } from '../api/check.ts'
import type { JsonObject } from '../core/json.ts'
import { usdOf } from '../money/usd.ts'
import type { Group } from '../store/groups.ts'
import type { Store } from '../store/open.ts'
import { limitUsd, timeText } from './key-entry.ts'
import {
  type Asked,
  done,
  json,
  type ManagementRooms,
  type ManageRoute,
  missing,
  named,
  noted,
  pathPart,
} from './manage.ts'
import { isRecordId, pageOf } from './page.ts'
import { invalid, membersOf, orNull, title, usdLimit } from './read.ts'

/** `/v1/manage/group`: keys that share a monthly limit. */
export function groupRoutes({ store }: ManagementRooms): ManageRoute[] {
  const entry = (group: Group) => groupEntry(group, store)
  return [
    {
      path: '/v1/manage/group',
      answer: (asked) =>
        json(
          pageOf(asked, { name: 'groups', read: store.groups.page, isCursor: isRecordId, idOf: ({ id }) => id, entry }),
        ),
    },
    {
      path: '/v1/manage/group',
      method: 'post',
      answer: (asked) => {
        const body = membersOf(asked.body, ['name', 'monthly_limit'])
        const name = required(body.name, 'name', 'what the group is called', title)
        const monthlyLimitNano = orNull(usdLimit)(body.monthly_limit, 'monthly_limit')
        const { organization } = asked
        const made = named('name', () =>
          noted(store, asked, () => {
            const group = store.groups.create({ organization, name, monthlyLimitNano })
            return { result: group, action: 'group.create', subject: group.id, after: entry(group) }
          }),
        )
        return json({ group_id: made.id }, 201)
      },
    },
    { path: '/v1/manage/group/:id', answer: (asked) => json(entry(groupOf(asked, store))) },
    {
      path: '/v1/manage/group/:id',
      method: 'delete',
      answer: (asked) => {
        noted(store, asked, () => {
          const group = groupOf(asked, store)
          store.groups.remove(group.id)
          return { result: undefined, action: 'group.delete', subject: group.id, before: entry(group) }
        })
        return done
      },
    },
    { path: '/v1/manage/group/:id/limit', method: 'post', answer: (asked) => json(entry(limitGroup(asked, store))) },
  ]
}

function limitGroup(asked: Asked, store: Store): Group {
  const { monthly_limit } = membersOf(asked.body, ['monthly_limit'])
  if (monthly_limit === undefined) {
    throw invalid("'monthly_limit' is missing: it must be a number of USD; 0 means unlimited.", 'monthly_limit')
  }
  const limit = orNull(usdLimit)(monthly_limit, 'monthly_limit')
  const shown = ({ monthlyLimitNano }: Group) => ({ monthly_limit: limitUsd(monthlyLimitNano) })
  return noted(store, asked, () => {
    const before = groupOf(asked, store)
    const result = store.groups.setLimit(before.id, limit) as Group
    return { result, action: 'group.limit', subject: before.id, before: shown(before), after: shown(result) }
  })
}

function groupOf(asked: Asked, { groups }: Store): Group {
  const id = pathPart(asked, 'id')
  const found = groups.find(id)
  return found?.organization === asked.organization ? found : missing('group', id)
}

function groupEntry({ id, name, monthlyLimitNano, createdAt }: Group, { spend }: Store): JsonObject {
  return {
    id,
    name,
    monthly_limit: limitUsd(monthlyLimitNano),
    monthly_spend: usdOf(spend.ofGroup(id, Date.now())),
    created_at: timeText(createdAt),
  }
}
