import type { ClientApi } from '../../api/client-api.ts'
import { RouterError } from '../../core/errors.ts'
import { deepest, type JsonBounds, mostMembers } from '../../core/json-bounds.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { exceededByCalls } from '../../core/tool-arguments.ts'

/** Throws RouterError 400 for a request whose calls have arguments of more than so many values, or beyond another bound. */
export function refuseLargeArguments(
  { messages }: NeutralRequest,
  { wireNames }: Pick<ClientApi, 'wireNames'>,
  most: number,
): void {
  const bound = exceededByCalls(messages, most)
  if (bound === undefined) return
  const [param] = wireNames('messages')
  const message = `The arguments of the calls in '${param}' ${excesses[bound](most)}.`
  throw new RouterError('invalid_request', message, { param })
}

const excesses: Readonly<Record<keyof JsonBounds, (most: number) => string>> = {
  values: (most) => `have more than ${most} values, the max_values of this server: send less at once`,
  depth: () => `are nested deeper than ${deepest} levels`,
  members: () => `have an object of more than ${mostMembers} members`,
}
