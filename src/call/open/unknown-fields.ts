import { RouterError } from '../../core/errors.ts'
import type { NeutralRequest } from '../../core/request.ts'

/** Throws RouterError 400 for a request with more fields that its API does not have than a server accepts. */
export function refuseManyUnknown({ extensions = {} }: NeutralRequest, most: number): void {
  const names = Object.keys(extensions)
  if (names.length <= most) return
  const message = `The body has ${names.length} fields that this API does not have; max_unknown_fields of this server is ${most}.`
  throw new RouterError('invalid_request', message, { param: names[most] })
}
