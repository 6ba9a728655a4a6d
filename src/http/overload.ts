import { secretOf } from '../access/client-secret.ts'
import { callerOf } from '../call/open/read-after-admission.ts'
import type { RouterError } from '../core/errors.ts'
import type { ServerContext } from './context.ts'
import type { JsonRequest } from './types.ts'

/**
 * The refusal of a call for which there is no room, before anything is made for it: there may be thousands in a second. Who has no valid
 * key is told that instead, on the way that all others take.
 */
export function refusedUnread(
  { headers }: Pick<JsonRequest, 'headers'>,
  { services }: Pick<ServerContext, 'services'>,
): RouterError | undefined {
  const { gate, authenticate } = services()
  if (gate.hasRoom) return undefined
  try {
    return gate.refusal(callerOf(authenticate(secretOf(headers))))
  } catch {
    return undefined
  }
}
