import { newSecret, storedSecret } from '../access/secret.ts'
import { object, oneOf, optional, required } from '../api/check.ts'
import type { Json } from '../core/json.ts'
import { audited } from '../store/audit.ts'
import { type KeyRecord, keyState, levels, type NewKey, type Permissions } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { keyEntry, wholeKeyEntry } from './key-entry.ts'
import {
  json,
  type ManagementContext,
  type ManageRequest,
  type ManageRoute,
  missing,
  noContent,
  pathPart,
} from './manage.ts'
import { pageOf } from './page.ts'
import { futureTime, invalid, labels, membersOf, onlyMembers, orNull, title, usdLimit } from './read.ts'

/** `/v1/manage/apikey`: the keys of the organization. A secret is returned once, when its key is created. */
export function keyRoutes({ store }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/apikey',
      handle: (request) => {
        const entry = (key: KeyRecord) => keyEntry(key, store)
        // Deleted keys keep their row, so that a cursor stays valid.
        const isCursor = (id: string, organization: string) => store.keys.ownerOf(id) === organization
        return json(pageOf(request, { name: 'keys', read: store.keys.page, isCursor, idOf: ({ id }) => id, entry }))
      },
    },
    {
      path: '/v1/manage/apikey',
      method: 'post',
      handle: (request) => {
        const properties = newKeyProperties(request, store)
        const secret = newSecret()
        const createdBy = { id: request.key.id, email: '' }
        const created = audited(store, request.key.id, () => {
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
      handle: (request) => json(wholeKeyEntry(keyOf(request, store), store)),
    },
    {
      path: '/v1/manage/apikey/:id',
      method: 'delete',
      handle: (request) => {
        audited(store, request.key.id, () => {
          const key = keyOf(request, store)
          refuseLastManager(key, store)
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

/** The key that the path names by id or as `self`. Throws RouterError 404, also for keys of other organizations. */
export function keyOf(request: Pick<ManageRequest, 'key' | 'organization' | 'params'>, { keys }: Store): KeyRecord {
  const id = pathPart(request, 'id')
  const found = keys.find(id === 'self' ? request.key.id : id)
  return found?.organization === request.organization ? found : missing('API key', id)
}

/** The id of a group of the organization, or null. Throws RouterError 400. */
export function groupIn(value: Json | undefined, { organization }: ManageRequest, { groups }: Store): string | null {
  const id = orNull(title)(value, 'group_id')
  if (id === null || groups.find(id)?.organization === organization) return id
  throw invalid(`There is no group '${id}' in this organization; GET /v1/manage/group lists them.`, 'group_id')
}

const newKeyFields = ['name', 'monthly_limit', 'permissions', 'labels', 'group_id', 'expires_at']

function newKeyProperties(request: ManageRequest, store: Store): Omit<NewKey, 'hash' | 'prefix' | 'createdBy'> {
  const body = membersOf(request.body, newKeyFields)
  return {
    organization: request.organization,
    name: required(body.name, 'name', 'the name of the key', title),
    monthlyLimitNano: orNull(usdLimit)(body.monthly_limit, 'monthly_limit'),
    permissions: permissionsFrom(body.permissions),
    labels: optional(body.labels, 'labels', labels) ?? {},
    groupId: groupIn(body.group_id, request, store),
    expiresAt: orNull(futureTime)(body.expires_at, 'expires_at'),
  }
}

function permissionsFrom(value: Json | undefined): Permissions {
  const permissions = onlyMembers(
    optional(value, 'permissions', object) ?? {},
    ['manage', 'completions'],
    'permissions.',
  )
  const level = oneOf(levels)
  return {
    manage: optional(permissions.manage, 'permissions.manage', level) ?? 'none',
    completions: optional(permissions.completions, 'permissions.completions', level) ?? 'write',
  }
}

/** An organization without a managing key could never create one again. */
function refuseLastManager(key: KeyRecord, { keys }: Store): void {
  const now = Date.now()
  const manages = key.permissions.manage === 'write' && keyState(key, now) === 'active'
  if (!manages || keys.anotherManages(key, now)) return
  throw invalid('This is the last active key that may manage the organization: create another one first.')
}
