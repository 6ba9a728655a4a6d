import { secretOf } from '../access/client-secret.ts'
import type { Access } from '../access/keys.ts'
import type { JsonRoute } from '../http/types.ts'

/** `GET /v1/auth/check`: the id and permissions of any active key. */
export function authCheckRoutes(access: Access): JsonRoute[] {
  return [
    {
      path: '/v1/auth/check',
      answer({ headers }) {
        const { id, permissions } = access.identify(secretOf(headers))
        return { text: JSON.stringify({ key_id: id, permissions }) }
      },
    },
  ]
}
