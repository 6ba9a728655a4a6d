import { newSecret, storedSecret } from '../access/secrets.ts'
import { audited } from '../store/audit.ts'
import { type GroupKey, type KeyRecord, keyState } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import { limitsOf, requireCapacity } from './creation-limits.ts'
import { keyEntry, wholeKeyEntry } from './key-entry.ts'
import { newKeyProperties } from './key-properties.ts'
import {
  json,
  type ManageRequest,
  type ManageRoute,
  missing,
  noContent,
  pathPart,
  type RecordContext,
  requireNoMore,
} from './manage.ts'
import { pageOf } from './page.ts'
import { invalid } from './read.ts'

/** Serves `/v1/manage/apikey`: the keys of the organization. A secret is returned once, when its key is created. */
export function keyRoutes(context: RecordContext): ManageRoute[] {
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
        const secret = newSecret()
        const created = createKey(request, context, storedSecret(secret))
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

/** Creates the key of a request, with the stored form of its secret. Throws RouterError 400, 403. */
export function createKey(
  request: ManageRequest,
  context: RecordContext,
  secret: Pick<KeyRecord, 'hash' | 'prefix'>,
): KeyRecord {
  const { store } = context
  const createdBy = { id: request.key.id, email: '' }
  return audited(store, request.key.id, () => {
    const properties = newKeyProperties(request, context)
    requireCapacity('keys', store.keys.count(request.organization), limitsOf(context))
    const key = store.keys.create({ ...properties, ...secret, createdBy })
    return {
      result: key,
      organization: request.organization,
      action: 'apikey.create',
      subject: key.id,
      after: wholeKeyEntry(key, store),
    }
  })
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
