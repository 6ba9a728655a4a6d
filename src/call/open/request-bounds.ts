import type { ClientApi } from '../../api/client-api.ts'
import { RouterError } from '../../core/errors.ts'
import { deepest, type JsonBounds, mostMembers } from '../../core/json-bounds.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { exceededByCalls } from '../../core/tool-arguments.ts'
import type { ReadCall } from '../types.ts'

/** Throws RouterError 400 for a request with more fields that its API does not have than a server accepts. */
export function requireKnownFields({ unknownFields }: ReadCall, max: number): void {
  if (unknownFields.length <= max) return
  const message = `The body has ${unknownFields.length} fields that this API does not have; max_unknown_fields of this server is ${max}.`
  throw new RouterError('invalid_request', message, { param: unknownFields[max] })
}

/** Throws RouterError 400 for a request whose calls have arguments of more than so many values, or beyond another bound. */
export function refuseLargeArguments(
  { messages }: NeutralRequest,
  { wireNames }: Pick<ClientApi, 'wireNames'>,
  max: number,
): void {
  const bound = exceededByCalls(messages, max)
  if (bound === undefined) return
  const [param] = wireNames('messages')
  const message = `The arguments of the calls in '${param}' ${excesses[bound](max)}.`
  throw new RouterError('invalid_request', message, { param })
}

const excesses: Readonly<Record<keyof JsonBounds, (max: number) => string>> = {
  values: (max) => `have more than ${max} values, the max_values of this server: send less at once`,
  depth: () => `are nested deeper than ${deepest} levels`,
  members: () => `have an object of more than ${mostMembers} members`,
}
