import { newSecret, storedSecret } from '../access/secrets.ts'
import { required } from '../api/check.ts'
import type { JsonObject } from '../core/json.ts'
import type { MaybePromise } from '../runtime/maybe-promise.ts'
import { type KeyChanges, type KeyRecord, keyState } from '../store/keys.ts'
import { limitsOf } from './creation-limits.ts'
import { limitsEntry, limitUsd, timeText, wholeKeyEntry } from './key-entry.ts'
import { accessListFrom, groupIn, limitFields, limitsFrom } from './key-properties.ts'
import { keyToChange } from './keys.ts'
import { changedBy, json, type ManageRequest, type ManageRoute, noContent, type RecordContext } from './manage.ts'
import { futureTime, invalid, labelsWithin, membersOf, orNull, requireEmpty, usdLimit } from './read.ts'

/** Serves `POST /v1/manage/apikey/{id}/<property>`: changes of a key. Each returns the changed key, `label` 204. */
export function keyChangeRoutes(context: RecordContext): ManageRoute[] {
  const route = (property: string, handle: ManageRoute['handle']): ManageRoute => ({
    path: `/v1/manage/apikey/:id/${property}`,
    method: 'post',
    handle,
  })
  return [
    ...Object.entries(changes).map(([property, change]) =>
      route(property, async (request) => {
        const changed = await changeKey(request, property, change, context)
        return property === 'label' ? noContent : json(await wholeKeyEntry(changed, context.store))
      }),
    ),
    route('rotate', async (request) => {
      const secret = newSecret()
      const rotated = await rotateKey(request, secret, context)
      return json({ ...(await wholeKeyEntry(rotated, context.store)), api_key: secret })
    }),
  ]
}

/** A change of one property: the fields of its body, how they are parsed, and the property's representation in the audit log. */
type KeyChange = {
  fields: readonly string[]
  parse(body: JsonObject, key: KeyRecord, request: ManageRequest, context: RecordContext): MaybePromise<KeyChanges>
  entry(key: KeyRecord): JsonObject
}

const changes: { readonly [property: string]: KeyChange } = {
  limit: {
    fields: ['monthly_limit'],
    parse: ({ monthly_limit }) => {
      if (monthly_limit === undefined) throw missingField('monthly_limit', 'a number of USD; 0 means unlimited')
      return { monthlyLimitNano: orNull(usdLimit)(monthly_limit, 'monthly_limit') }
    },
    entry: ({ monthlyLimitNano }) => ({ monthly_limit: limitUsd(monthlyLimitNano) }),
  },
  label: {
    fields: ['labels'],
    parse: (body, _key, _request, context) => ({
      labels: required(body.labels, 'labels', 'an object of strings', labelsWithin(limitsOf(context))),
    }),
    entry: ({ labels }) => ({ labels: { ...labels } }),
  },
  expiry: {
    fields: ['expires_at'],
    parse: ({ expires_at }, key) => {
      refuseEnded(key, 'It cannot be reactivated: create a new one.')
      if (expires_at === undefined) throw missingField('expires_at', 'an RFC 3339 time, or null for none')
      return { expiresAt: orNull(futureTime)(expires_at, 'expires_at') }
    },
    entry: ({ expiresAt }) => ({ expires_at: timeText(expiresAt) }),
  },
  limits: {
    fields: limitFields,
    parse: (body, { limits }) => ({ limits: { ...limits, ...limitsFrom(body) } }),
    entry: ({ limits }) => ({ limits: limitsEntry(limits) }),
  },
  access: {
    fields: ['models'],
    parse: async ({ models }, { organization }, _request, context) => {
      if (models === undefined) throw missingField('models', 'an array of names, or null for all')
      return { accessList: await accessListFrom(models, { organization }, context) }
    },
    entry: ({ accessList }) => ({ models: accessList === null ? null : [...accessList] }),
  },
  group: {
    fields: ['group_id'],
    parse: async ({ group_id }, _key, request, { store }) => {
      if (group_id === undefined) throw missingField('group_id', 'the id of a group, or null for none')
      return { groupId: await groupIn(group_id, request, store) }
    },
    entry: ({ groupId }) => ({ group: groupId }),
  },
}

function changeKey(
  request: ManageRequest,
  property: string,
  { fields, parse, entry }: KeyChange,
  context: RecordContext,
): Promise<KeyRecord> {
  return changedBy(request, context.store, async (tx) => {
    const before = await keyToChange(request, tx)
    const update = await parse(membersOf(request.body, fields), before, request, { ...context, store: tx })
    const result = (await tx.keys.update(before.id, update)) as KeyRecord
    return {
      result,
      organization: request.organization,
      action: `apikey.${property}`,
      subject: before.id,
      before: entry(before),
      after: entry(result),
    }
  })
}

async function rotateKey(request: ManageRequest, secret: string, { store }: RecordContext): Promise<KeyRecord> {
  requireEmpty(request.body)
  return await changedBy(request, store, async (tx) => {
    const before = await keyToChange(request, tx)
    refuseEnded(before, 'A new secret would not work either: create a new key.')
    const result = (await tx.keys.rotate(before.id, storedSecret(secret))) as KeyRecord
    return { result, organization: request.organization, action: 'apikey.rotate', subject: before.id }
  })
}

function refuseEnded(key: KeyRecord, advice: string): void {
  const state = keyState(key, Date.now())
  if (state !== 'active') throw invalid(`This API key is ${state}. ${advice}`)
}

/** Returns the error for an absent field: no value is assumed, as an empty body must not remove a limit. */
function missingField(field: string, expected: string): Error {
  return invalid(`'${field}' is missing: it must be ${expected}.`, field)
}
