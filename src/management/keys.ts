import { newSecret, storedSecret } from '../access/secret.ts'
import { object, oneOf, optional, required } from '../api/check.ts'
import type { Json } from '../core/json.ts'
import { type KeyRecord, keyState, levels, type NewKey, type Permissions } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { keyEntry, wholeKeyEntry } from './key-entry.ts'
import { type Asked, done, json, type ManagementRooms, type ManageRoute, missing, noted, pathPart } from './manage.ts'
import { pageOf } from './page.ts'
import { futureTime, invalid, labels, membersOf, onlyMembers, orNull, title, usdLimit } from './read.ts'

/** `/v1/manage/apikey`: the keys of the organization. A secret is shown once, in the answer that makes it. */
export function keyRoutes({ store }: ManagementRooms): ManageRoute[] {
  return [
    {
      path: '/v1/manage/apikey',
      answer: (asked) => {
        const entry = (key: KeyRecord) => keyEntry(key, store)
        // Rows of keys are kept for ever.
        const isCursor = (id: string, organization: string) => store.keys.ownerOf(id) === organization
        return json(pageOf(asked, { name: 'keys', read: store.keys.page, isCursor, idOf: ({ id }) => id, entry }))
      },
    },
    {
      path: '/v1/manage/apikey',
      method: 'post',
      answer: (asked) => {
        const facts = newKeyFacts(asked, store)
        const secret = newSecret()
        const createdBy = { id: asked.key.id, email: '' }
        const made = noted(store, asked, () => {
          const key = store.keys.create({ ...facts, ...storedSecret(secret), createdBy })
          return { result: key, action: 'apikey.create', subject: key.id, after: wholeKeyEntry(key, store) }
        })
        return json({ api_key_id: made.id, api_key: secret }, 201)
      },
    },
    {
      path: '/v1/manage/apikey/:id',
      answer: (asked) => json(wholeKeyEntry(keyOf(asked, store), store)),
    },
    {
      path: '/v1/manage/apikey/:id',
      method: 'delete',
      answer: (asked) => {
        noted(store, asked, () => {
          const key = keyOf(asked, store)
          refuseLastManager(key, store)
          store.keys.remove(key.id)
          return { result: undefined, action: 'apikey.delete', subject: key.id, before: wholeKeyEntry(key, store) }
        })
        return done
      },
    },
  ]
}

/** The key that the path names, by its id or as `self`. Throws RouterError 404, also for those of other organizations. */
export function keyOf(asked: Pick<Asked, 'key' | 'organization' | 'params'>, { keys }: Store): KeyRecord {
  const id = pathPart(asked, 'id')
  const found = keys.find(id === 'self' ? asked.key.id : id)
  return found?.organization === asked.organization ? found : missing('API key', id)
}

/** The group that a body names. Throws RouterError 400. */
export function groupIn(value: Json | undefined, { organization }: Asked, { groups }: Store): string | null {
  const id = orNull(title)(value, 'group_id')
  if (id === null || groups.find(id)?.organization === organization) return id
  throw invalid(`There is no group '${id}' in this organization; GET /v1/manage/group lists them.`, 'group_id')
}

const newKeyFields = ['name', 'monthly_limit', 'permissions', 'labels', 'group_id', 'expires_at']

function newKeyFacts(asked: Asked, store: Store): Omit<NewKey, 'hash' | 'prefix' | 'createdBy'> {
  const body = membersOf(asked.body, newKeyFields)
  return {
    organization: asked.organization,
    name: required(body.name, 'name', 'what the key is called', title),
    monthlyLimitNano: orNull(usdLimit)(body.monthly_limit, 'monthly_limit'),
    permissions: permissionsFrom(body.permissions),
    labels: optional(body.labels, 'labels', labels) ?? {},
    groupId: groupIn(body.group_id, asked, store),
    expiresAt: orNull(futureTime)(body.expires_at, 'expires_at'),
  }
}

function permissionsFrom(value: Json | undefined): Permissions {
  const said = onlyMembers(optional(value, 'permissions', object) ?? {}, ['manage', 'completions'], 'permissions.')
  const level = oneOf(levels)
  return {
    manage: optional(said.manage, 'permissions.manage', level) ?? 'none',
    completions: optional(said.completions, 'permissions.completions', level) ?? 'write',
  }
}

/** Without a key that may manage nobody could let the organization's people in again. */
function refuseLastManager(key: KeyRecord, { keys }: Store): void {
  const now = Date.now()
  const manages = key.permissions.manage === 'write' && keyState(key, now) === 'active'
  if (!manages || keys.anotherManages(key, now)) return
  throw invalid('This is the last active key that may manage the organization: create another one first.')
}
