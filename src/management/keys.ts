import { newSecret, storedSecret } from '../access/secrets.ts'
import { type GroupKey, type KeyRecord, keyState } from '../store/keys.ts'
import type { Tables } from '../store/tables.ts'
import { limitsOf, requireCapacity } from './creation-limits.ts'
import { keyEntry, wholeKeyEntry } from './key-entry.ts'
import { newKeyProperties } from './key-properties.ts'
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
        const isCursor = async (id: string, organization: string) => (await store.keys.ownerOf(id)) === organization
        return pageOf(request, { name: 'keys', read: store.keys.page, isCursor, idOf: ({ id }) => id, entry })
      },
    },
    {
      path: '/v1/manage/apikey',
      method: 'post',
      handle: async (request) => {
        const secret = newSecret()
        const created = await createKey(request, context, storedSecret(secret))
        return json({ api_key_id: created.id, api_key: secret }, 201)
      },
    },
    {
      path: '/v1/manage/apikey/:id',
      showsSelf: true,
      handle: async (request) => json(await wholeKeyEntry(await keyOf(request, store), store)),
    },
    {
      path: '/v1/manage/apikey/:id',
      method: 'delete',
      handle: async (request) => {
        await changedBy(request, store, async (tx) => {
          const key = await keyToChange(request, tx)
          await refuseLast(key, tx)
          await tx.keys.remove(key.id)
          return {
            result: undefined,
            organization: request.organization,
            action: 'apikey.delete',
            subject: key.id,
            before: await wholeKeyEntry(key, tx),
          }
        })
        return noContent
      },
    },
  ]
}

/** Creates the key of a request, with the stored form of its secret. Rejects with RouterError 400, 403. */
export function createKey(
  request: ManageRequest,
  context: RecordContext,
  secret: Pick<KeyRecord, 'hash' | 'prefix'>,
): Promise<KeyRecord> {
  const { store } = context
  const createdBy = { id: request.key.id, email: '' }
  return changedBy(request, store, async (tx) => {
    const properties = await newKeyProperties(request, { ...context, store: tx })
    requireCapacity('keys', await tx.keys.count(request.organization), limitsOf(context))
    const key = await tx.keys.create({ ...properties, ...secret, createdBy })
    return {
      result: key,
      organization: request.organization,
      action: 'apikey.create',
      subject: key.id,
      after: await wholeKeyEntry(key, tx),
    }
  })
}

/** Returns the key that the path names by id or as `self`. Rejects with RouterError 404, also for keys of other organizations. */
export async function keyOf(
  request: Pick<ManageRequest, 'key' | 'organization' | 'params'>,
  { keys }: Pick<Tables, 'keys'>,
): Promise<KeyRecord> {
  const id = pathPart(request, 'id')
  const found = await keys.find(id === 'self' ? request.key.id : id)
  return found?.organization === request.organization ? found : missing('API key', id)
}

/** Finds a key like `keyOf`, for changes: rejects with RouterError 403 as well, for a key with more permissions than the caller. */
export async function keyToChange(request: ManageRequest, tables: Pick<Tables, 'keys'>): Promise<KeyRecord> {
  const key = await keyOf(request, tables)
  requireNoMore(request.key, key, 'that one has')
  return key
}

/**
 * Refuses to give up the last key that may manage or operate: an organization without one could never make one again. Rejects with
 * RouterError 400.
 */
export async function refuseLast(key: GroupKey, { keys }: Pick<Tables, 'keys'>): Promise<void> {
  const now = Date.now()
  if (keyState(key, now) !== 'active') return
  for (const area of ['manage', 'operate'] as const) {
    if (key.permissions[area] !== 'write' || (await keys.anotherMay(area, key, now))) continue
    throw invalid(
      `This is the last active key with the permission to ${area} the organization: create another one first.`,
    )
  }
}
