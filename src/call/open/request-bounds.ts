import type { ClientApi } from '../../api/client-api.ts'
import { RouterError } from '../../core/errors.ts'
import { deepest, exceededTogether, isObject, type Json, type JsonBounds, maxMembers } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
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
  throw tooLarge(`The arguments of the calls in '${param}'`, { bound, max, param })
}

/** Throws RouterError 400 for JSON inside of texts, in a body or in the fields of a form, that is beyond a bound. */
export function refuseLargeTexts({ fields, files }: OperationRequest, max: number): void {
  for (const [param, value] of Object.entries(fields)) {
    const texts = files.length > 0 && typeof value === 'object' ? [JSON.stringify(value)] : argumentsIn(value)
    const bound = exceededTogether(texts, { values: max, depth: deepest, members: maxMembers })
    if (bound !== undefined) throw tooLarge(`The JSON in '${param}'`, { bound, max, param })
  }
}

/** Returns the arguments of the calls in a list of items. */
function argumentsIn(value: Json | undefined): string[] {
  const items = Array.isArray(value) ? value.filter(isObject) : []
  return items.flatMap(({ arguments: text }) => (typeof text === 'string' ? [text] : []))
}

function tooLarge(
  what: string,
  { bound, max, param }: { bound: keyof JsonBounds; max: number; param: string | undefined },
): RouterError {
  return new RouterError('invalid_request', `${what} ${excesses[bound](max)}.`, { param })
}

const excesses: Readonly<Record<keyof JsonBounds, (max: number) => string>> = {
  values: (max) => `have more than ${max} values, the max_values of this server: send less at once`,
  depth: () => `are nested deeper than ${deepest} levels`,
  members: () => `have an object of more than ${maxMembers} members`,
}
