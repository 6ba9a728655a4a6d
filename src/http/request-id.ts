import { randomUUIDv7 } from 'node:crypto'
import { secretOf } from '../access/secrets.ts'
import type { ClientApi } from '../api/client-api.ts'
import { withoutSecrets } from '../core/secrets.ts'
import type { Request, Response } from './app.ts'
import { headersOf } from './respond.ts'

/** Gives every response an `x-request-id`: the client's own if it is valid and safe to log, else a new one. */
export function assignRequestId({ headers }: Request, response: Response): void {
  const given = headers['x-request-id']
  response.locals.id = randomUUIDv7()
  if (typeof given === 'string' && isUsableId(given, secretOf(headers))) response.locals.requestId = given
  headersOf(response)['x-request-id'] = requestIdOf(response)
}

/** Returns the id that the client knows its request by. */
export function requestIdOf({ locals }: Response): string {
  return locals.requestId ?? locals.id
}

/** Sets the headers that this client API expects of every response, errors included. */
export function speakAs(clientApi: ClientApi, response: Response): void {
  response.locals.clientApi = clientApi
  if (clientApi.requestIdHeader !== undefined) headersOf(response)[clientApi.requestIdHeader] = requestIdOf(response)
}

/** Checks whether an id can be used: it is sent back and logged, so it must not be, or contain, the client's key. */
function isUsableId(id: string, secret: string | undefined): boolean {
  return /^[\w.:/+=-]{1,128}$/.test(id) && withoutSecrets(id, secret) === id
}
