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
      async handle({ organization, query }) {
        const { limit, ...filters } = parametersOf(query, ['limit', 'key', 'group', 'code'])
        const most = limitFrom(limit, usualLimit)
        const found = refused.of(organization).filter(matching(filters)).slice(0, most)
        const nameOf = await namesIn(found, store)
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
function entryOf(call: RefusedCall, nameOf: Names): JsonObject {
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

/** The names of keys and groups that there still are, by their ids. */
type Names = { key(id: string): { name?: string }; group(id: string): { name?: string } }

/** Looks up the names of the keys and groups of calls. */
async function namesIn(
  calls: readonly RefusedCall[],
  { keys, groups }: Pick<ManagementContext['store'], 'keys' | 'groups'>,
): Promise<Names> {
  const [key, group] = [
    await namesOf(
      calls.map(({ key }) => key),
      keys.find,
    ),
    await namesOf(
      calls.flatMap(({ group }) => group ?? []),
      groups.find,
    ),
  ]
  return { key: (id) => key.get(id) ?? {}, group: (id) => group.get(id) ?? {} }
}

async function namesOf(
  ids: readonly string[],
  find: (id: string) => Promise<{ name: string } | undefined>,
): Promise<Map<string, { name: string }>> {
  const names = new Map<string, { name: string }>()
  for (const id of new Set(ids)) {
    const found = await find(id)
    if (found) names.set(id, { name: found.name })
  }
  return names
}
