import { secretOf } from '../access/credentials.ts'
import { type Access, type Key, requirePermission } from '../access/keys.ts'
import { RouterError } from '../core/errors.ts'
import type { Answered, JsonRequest, JsonRoute } from '../server.ts'
import { isEngineError } from '../store/failure.ts'
import type { Level } from '../store/keys.ts'
import type { Store } from '../store/open.ts'

/** What the management API works with. */
export type ManagementRooms = { store: Store; access: Access }

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
export type ManageRoute = Pick<JsonRoute, 'path' | 'method'> & { answer(asked: Asked): Answered | Promise<Answered> }

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
  const takesBody = method !== 'get' && method !== 'delete'
  return {
    path,
    method,
    async answer(request) {
      try {
        const asking = requireManage(access, request, method === 'get' ? 'read' : 'write')
        const body = takesBody ? await request.readBody() : undefined
        return await answer({ ...asking, params: request.params, query: request.query, body })
      } catch (thrown) {
        if (isEngineError(thrown)) throw new RouterError('unavailable', databaseTrouble, { cause: thrown })
        throw thrown
      }
    },
  }
}

/** The answer of a JSON value. */
export function json(value: object, status = 200): Answered {
  return { status, text: JSON.stringify(value) }
}

const databaseTrouble = 'The database cannot be used at the moment; nothing was changed. Send the request again later.'
