import { newSecret, storedSecret } from '../access/secret.ts'
import { required } from '../api/check.ts'
import type { JsonObject } from '../core/json.ts'
import { type KeyChanges, type KeyRecord, keyState } from '../store/keys.ts'
import { limitsEntry, limitUsd, timeText, wholeKeyEntry } from './key-entry.ts'
import { groupIn, keyOf } from './keys.ts'
import { limitFields, limitsFrom } from './limits.ts'
import { type Asked, done, json, type ManagementRooms, type ManageRoute, noted, rulesOf } from './manage.ts'
import { grantCheck } from './names.ts'
import { futureTime, invalid, labels, membersOf, namesOfModels, nothingIn, orNull, usdLimit } from './read.ts'

/** What may be changed of a key: each at `POST /v1/manage/apikey/{id}/<what>`, answered with the record, labels with 204. */
export function keyChangeRoutes(rooms: ManagementRooms): ManageRoute[] {
  const route = (what: string, answer: ManageRoute['answer']): ManageRoute => ({
    path: `/v1/manage/apikey/:id/${what}`,
    method: 'post',
    answer,
  })
  return [
    ...Object.entries(changes).map(([what, change]) =>
      route(what, (asked) => {
        const changed = changeKey(asked, what, change, rooms)
        return what === 'label' ? done : json(wholeKeyEntry(changed, rooms.store))
      }),
    ),
    route('rotate', (asked) => {
      const secret = newSecret()
      return json({ ...wholeKeyEntry(rotateKey(asked, secret, rooms), rooms.store), api_key: secret })
    }),
  ]
}

/** One thing that may be changed of a key: the fields of the body, what they mean, and how the log shows it. */
type KeyChange = {
  fields: readonly string[]
  read(body: JsonObject, key: KeyRecord, asked: Asked, rooms: ManagementRooms): KeyChanges
  shown(key: KeyRecord): JsonObject
}

const changes: { readonly [what: string]: KeyChange } = {
  limit: {
    fields: ['monthly_limit'],
    read: ({ monthly_limit }) => {
      if (monthly_limit === undefined) throw leftOut('monthly_limit', 'a number of USD; 0 means unlimited')
      return { monthlyLimitNano: orNull(usdLimit)(monthly_limit, 'monthly_limit') }
    },
    shown: ({ monthlyLimitNano }) => ({ monthly_limit: limitUsd(monthlyLimitNano) }),
  },
  label: {
    fields: ['labels'],
    read: (body) => ({ labels: required(body.labels, 'labels', 'an object of texts', labels) }),
    shown: ({ labels }) => ({ labels: { ...labels } }),
  },
  expiry: {
    fields: ['expires_at'],
    read: ({ expires_at }, key) => {
      refuseEnded(key, 'It cannot be revived: create a new one.')
      if (expires_at === undefined) throw leftOut('expires_at', 'an RFC 3339 time, or null for none')
      return { expiresAt: orNull(futureTime)(expires_at, 'expires_at') }
    },
    shown: ({ expiresAt }) => ({ expires_at: timeText(expiresAt) }),
  },
  limits: {
    fields: limitFields,
    read: (body) => ({ limits: limitsFrom(body) }),
    shown: ({ limits }) => ({ limits: limitsEntry(limits) }),
  },
  access: {
    fields: ['models'],
    read: ({ models }, { organization }, _asked, { directory, store }) => {
      if (models === undefined) throw leftOut('models', 'an array of names, or null for all')
      const accessList = orNull(namesOfModels)(models, 'models')
      const checkName = grantCheck(directory(), rulesOf(store, organization))
      accessList?.forEach((name, index) => {
        checkName(name, `models[${index}]`)
      })
      return { accessList }
    },
    shown: ({ accessList }) => ({ models: accessList === null ? null : [...accessList] }),
  },
  group: {
    fields: ['group_id'],
    read: ({ group_id }, _key, asked, { store }) => {
      if (group_id === undefined) throw leftOut('group_id', 'the id of a group, or null for none')
      return { groupId: groupIn(group_id, asked, store) }
    },
    shown: ({ groupId }) => ({ group: groupId }),
  },
}

function changeKey(asked: Asked, what: string, { fields, read, shown }: KeyChange, rooms: ManagementRooms): KeyRecord {
  const { store } = rooms
  return noted(store, asked, () => {
    const before = keyOf(asked, store)
    const wanted = read(membersOf(asked.body, fields), before, asked, rooms)
    const result = store.keys.update(before.id, wanted) as KeyRecord
    return {
      result,
      action: `apikey.${what}`,
      subject: before.id,
      before: shown(before),
      after: shown(result),
    }
  })
}

function rotateKey(asked: Asked, secret: string, { store }: ManagementRooms): KeyRecord {
  nothingIn(asked.body)
  return noted(store, asked, () => {
    const before = keyOf(asked, store)
    refuseEnded(before, 'A new secret would not work either: create a new key.')
    const result = store.keys.rotate(before.id, storedSecret(secret)) as KeyRecord
    return { result, action: 'apikey.rotate', subject: before.id }
  })
}

function refuseEnded(key: KeyRecord, advice: string): void {
  const state = keyState(key, Date.now())
  if (state !== 'active') throw invalid(`This API key is ${state}. ${advice}`)
}

/** Of a change nothing is assumed: an empty body must not take a limit away. */
function leftOut(field: string, expected: string): Error {
  return invalid(`'${field}' is missing: it must be ${expected}.`, field)
}
