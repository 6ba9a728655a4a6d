import { secretOf } from '../access/client-secret.ts'
import { type Access, type Key, requirePermission } from '../access/keys.ts'
import { RouterError } from '../core/errors.ts'
import type { JsonObject } from '../core/json.ts'
import type { JsonAnswer, JsonRequest, JsonRoute } from '../http/server.ts'
import type { Level } from '../store/keys.ts'
import { NameTaken } from '../store/name-taken.ts'
import type { Store } from '../store/open.ts'
import type { OrganizationRules } from '../store/rules.ts'
import type { Directory } from './names.ts'

/** What the management API works with; the directory is that of the current snapshot. */
export type ManagementRooms = { store: Store; access: Access; directory(): Directory }

/** A request of a key that may manage: all it sees and changes is its organization's. */
export type Asked = {
  key: Key
  organization: string
  params: JsonRequest['params']
  query: JsonRequest['query']
  /** The body as JSON; undefined for GET and DELETE, and when there is none. */
  body: unknown
}

/** A route of the management API: GET needs the permission manage: read, every other method manage: write. */
export type ManageRoute = Pick<JsonRoute, 'path' | 'method'> & {
  answer(asked: Asked): JsonAnswer | Promise<JsonAnswer>
}

/** The key that manages, and its organization. Throws RouterError: missing_key, invalid_key, forbidden. */
export function requireManage(
  access: Access,
  { headers }: Pick<JsonRequest, 'headers'>,
  level: Level,
): { key: Key; organization: string } {
  const key = access.identify(secretOf(headers))
  requirePermission(key, 'manage', level)
  return { key, organization: key.organization }
}

/** The route for the server: who asks is known before the body is read. */
export function manageRoute({ path, method = 'get', answer }: ManageRoute, access: Access): JsonRoute {
  const level = method === 'get' ? 'read' : 'write'
  const takesBody = method !== 'get' && method !== 'delete'
  return {
    path,
    method,
    async answer(request) {
      const { params, query } = request
      const asking = requireManage(access, request, level)
      if (!takesBody) return answer({ ...asking, params, query, body: undefined })
      const body = await request.readBody()
      // A slow body must not outlive the permission.
      return answer({ ...requireManage(access, request, level), params, query, body })
    },
  }
}

/** The answer of a JSON value. */
export function json(value: JsonObject, status = 200): JsonAnswer {
  return { status, text: JSON.stringify(value) }
}

/** The answer that says only that it is done. */
export const done: JsonAnswer = { status: 204 }

/** What the log of changes says of one, besides who made it and when: never a secret. */
export type Change = { action: string; subject: string; before?: JsonObject; after?: JsonObject }

/** Makes a change and notes it: both or neither. */
export function noted<Result>(
  store: Store,
  { key, organization }: Pick<Asked, 'key' | 'organization'>,
  change: () => { result: Result } & Change,
): Result {
  return store.atomically(() => {
    const { result, ...said } = change()
    store.audit.append({ organization, actor: key.id, ...said })
    return result
  })
}

/** Makes something with a name of its own; one that is taken is a 400 that names the field. */
export function named<Result>(field: string, make: () => Result): Result {
  try {
    return make()
  } catch (thrown) {
    if (!(thrown instanceof NameTaken)) throw thrown
    throw new RouterError('invalid_request', `${thrown.message} Choose another ${field}.`, { param: field })
  }
}

/** What holds for the organization that asks. */
export function rulesOf(store: Store, organization: string): OrganizationRules {
  const rules = store.organizations.rules(organization)
  if (rules) return rules
  throw new RouterError('not_found', 'The organization of this key does not exist any more.')
}

/** The parameter of a path; one that may have slashes comes in parts. */
export function pathPart({ params }: Pick<Asked, 'params'>, name: string): string {
  return [params[name] ?? ''].flat().join('/')
}

/** The 404 for what is not there, or is another organization's. */
export function missing(what: string, id: string): never {
  throw new RouterError('not_found', `There is no ${what} '${id.slice(0, 100)}' in this organization.`)
}
