import type { Key } from '../access/keys.ts'
import { newSecret, storedSecret } from '../access/secrets.ts'
import { object, oneOf, optional, required } from '../api/check.ts'
import type { Json } from '../core/json.ts'
import { audited } from '../store/audit.ts'
import {
  areas,
  type GroupKey,
  type KeyRecord,
  keyState,
  type Level,
  levels,
  type NewKey,
  type Permissions,
} from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { limitsOf, requireCapacity } from './creation-limits.ts'
import { keyEntry, wholeKeyEntry } from './key-entry.ts'
import {
  json,
  type ManagementContext,
  type ManageRequest,
  type ManageRoute,
  missing,
  noContent,
  pathPart,
  requireNoMore,
} from './manage.ts'
import { pageOf } from './page.ts'
import { futureTime, invalid, labelsWithin, membersOf, onlyMembers, orNull, title, usdLimit } from './read.ts'

/** Serves `/v1/manage/apikey`: the keys of the organization. A secret is returned once, when its key is created. */
export function keyRoutes(context: ManagementContext): ManageRoute[] {
  const { store } = context
  return [
    {
      path: '/v1/manage/apikey',
      handle: (request) => {
        const entry = (key: KeyRecord) => keyEntry(key, store)
        // Deleted keys keep their row, so that a cursor stays valid.
        const isCursor = (id: string, organization: string) => store.keys.ownerOf(id) === organization
        return pageOf(request, { name: 'keys', read: store.keys.page, isCursor, idOf: ({ id }) => id, entry })
      },
    },
    {
      path: '/v1/manage/apikey',
      method: 'post',
      handle: (request) => {
        const properties = newKeyProperties(request, context)
        const secret = newSecret()
        const createdBy = { id: request.key.id, email: '' }
        const created = audited(store, request.key.id, () => {
          requireCapacity('keys', store.keys.count(request.organization), limitsOf(context))
          const key = store.keys.create({ ...properties, ...storedSecret(secret), createdBy })
          return {
            result: key,
            organization: request.organization,
            action: 'apikey.create',
            subject: key.id,
            after: wholeKeyEntry(key, store),
          }
        })
        return json({ api_key_id: created.id, api_key: secret }, 201)
      },
    },
    {
      path: '/v1/manage/apikey/:id',
      showsSelf: true,
      handle: (request) => json(wholeKeyEntry(keyOf(request, store), store)),
    },
    {
      path: '/v1/manage/apikey/:id',
      method: 'delete',
      handle: (request) => {
        audited(store, request.key.id, () => {
          const key = keyToChange(request, store)
          refuseLast(key, store)
          store.keys.remove(key.id)
          return {
            result: undefined,
            organization: request.organization,
            action: 'apikey.delete',
            subject: key.id,
            before: wholeKeyEntry(key, store),
          }
        })
        return noContent
      },
    },
  ]
}

/** Returns the key that the path names by id or as `self`. Throws RouterError 404, also for keys of other organizations. */
export function keyOf(request: Pick<ManageRequest, 'key' | 'organization' | 'params'>, { keys }: Store): KeyRecord {
  const id = pathPart(request, 'id')
  const found = keys.find(id === 'self' ? request.key.id : id)
  return found?.organization === request.organization ? found : missing('API key', id)
}

/** Finds a key like `keyOf`, for changes: throws RouterError 403 as well, for a key with more permissions than the caller. */
export function keyToChange(request: ManageRequest, store: Store): KeyRecord {
  const key = keyOf(request, store)
  requireNoMore(request.key, key, 'that one has')
  return key
}

/** Returns the id of a group of the organization, or null. Throws RouterError 400. */
export function groupIn(value: Json | undefined, { organization }: ManageRequest, { groups }: Store): string | null {
  const id = orNull(title)(value, 'group_id')
  if (id === null || groups.find(id)?.organization === organization) return id
  throw invalid(`There is no group '${id}' in this organization; GET /v1/manage/group lists them.`, 'group_id')
}

const newKeyFields = ['name', 'monthly_limit', 'permissions', 'labels', 'group_id', 'expires_at']

function newKeyProperties(
  request: ManageRequest,
  context: ManagementContext,
): Omit<NewKey, 'hash' | 'prefix' | 'createdBy'> {
  const body = membersOf(request.body, newKeyFields)
  return {
    organization: request.organization,
    name: required(body.name, 'name', 'the name of the key', title),
    monthlyLimitNano: orNull(usdLimit)(body.monthly_limit, 'monthly_limit'),
    permissions: permissionsFrom(body.permissions, request.key),
    labels: optional(body.labels, 'labels', labelsWithin(limitsOf(context))) ?? {},
    groupId: groupIn(body.group_id, request, context.store),
    expiresAt: orNull(futureTime)(body.expires_at, 'expires_at'),
  }
}

/** Returns the permissions of a new key: of those that are not named, only completions, as far as the caller has it. */
function permissionsFrom(value: Json | undefined, caller: Key): Permissions {
  const named = onlyMembers(optional(value, 'permissions', object) ?? {}, areas, 'permissions.')
  const levelOf = (area: keyof Permissions): Level =>
    optional(named[area], `permissions.${area}`, oneOf(levels)) ??
    (area === 'completions' ? caller.permissions.completions : 'none')
  const permissions = { manage: levelOf('manage'), completions: levelOf('completions'), operate: levelOf('operate') }
  requireNoMore(caller, { permissions }, 'the new one would have')
  return permissions
}

/**
 * Refuses to give up the last key that may manage or operate: an organization without one could never make one again. Throws RouterError
 * 400.
 */
export function refuseLast(key: GroupKey, { keys }: Store): void {
  const now = Date.now()
  if (keyState(key, now) !== 'active') return
  const area = (['manage', 'operate'] as const).find(
    (each) => key.permissions[each] === 'write' && !keys.anotherMay(each, key, now),
  )
  if (area === undefined) return
  throw invalid(
    `This is the last active key with the permission to ${area} the organization: create another one first.`,
  )
}
