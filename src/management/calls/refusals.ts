import { oneOf } from '../../api/check.ts'
import { catalogue } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import type { RefusedCall } from '../../core/refused-call.ts'
import { timeText } from '../key-entry.ts'
import { json, type ManagementContext, type ManageRoute } from '../manage.ts'
import { limitFrom } from '../page.ts'
import { invalid, parametersOf } from '../read.ts'

/** Serves `/v1/manage/refusals`: the calls of the organization that were refused last, before a provider was asked. */
export function refusalRoutes({ store, refused }: Pick<ManagementContext, 'store' | 'refused'>): ManageRoute[] {
  return [
    {
      path: '/v1/manage/refusals',
      handle({ organization, query }) {
        const { limit, ...filters } = parametersOf(query, ['limit', 'key', 'group', 'code'])
        const most = limitFrom(limit, usualLimit)
        const found = refused.of(organization).filter(matching(filters)).slice(0, most)
        const nameOf = names(store)
        return json({ refusals: found.map((call) => entryOf(call, nameOf)), since: timeText(refused.since) })
      },
    },
  ]
}

const usualLimit = 100
const codeOf = oneOf(Object.keys(catalogue))

function matching(filters: { key?: string; group?: string; code?: string }): (call: RefusedCall) => boolean {
  for (const [name, value] of Object.entries(filters))
    if (value === '') throw invalid(`'${name}' is empty; leave it out to get all.`, name)
  const { key, group, code } = filters
  if (code !== undefined) codeOf(code, 'code')
  return (call) =>
    (key === undefined || call.key === key) &&
    (group === undefined || call.group === group) &&
    (code === undefined || call.error === code)
}

/** Writes a refused call: the fields that it has in common with a settled call have the same names. */
function entryOf(call: RefusedCall, nameOf: ReturnType<typeof names>): JsonObject {
  const { id, requestId = id, at, key, group, operation, api, requested, stream, error, message, status } = call
  return {
    id,
    request_id: requestId,
    at: timeText(at),
    key: { id: key, ...nameOf.key(key) },
    ...(group !== undefined && { group: { id: group, ...nameOf.group(group) } }),
    operation,
    api,
    asked: requested,
    streamed: stream,
    outcome: 'refused',
    ...(error && { code: error }),
    ...(message !== undefined && { message }),
    status,
  }
}

/** Returns the names of keys and groups that there still are, each looked up once. */
function names({ keys, groups }: Pick<ManagementContext['store'], 'keys' | 'groups'>) {
  const once = (find: (id: string) => { name: string } | undefined) => {
    const known = new Map<string, { name?: string }>()
    return (id: string) => {
      const found = known.get(id) ?? named(find(id))
      known.set(id, found)
      return found
    }
  }
  return { key: once(keys.find), group: once(groups.find) }
}

function named(found: { name: string } | undefined): { name?: string } {
  return found ? { name: found.name } : {}
}
