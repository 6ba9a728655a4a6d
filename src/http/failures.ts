import { secretOf } from '../access/secrets.ts'
import type { ClientApi } from '../api/client-api.ts'
import { asRouterError, errorBody, RouterError } from '../core/errors.ts'
import { withoutSecrets } from '../core/secrets.ts'
import { unavailable } from '../store/store-error.ts'
import type { ErrorHandler } from './app.ts'
import type { ServerContext } from './context.ts'
import { requestIdOf } from './request-id.ts'
import { addHeaders, headersOf, respond } from './respond.ts'

/** Writes every error response; a response that has begun can only be closed. */
export function failWith({ log, onThrown }: ServerContext): ErrorHandler {
  return (thrown, request, response, _next) => {
    onThrown?.(thrown)
    const databaseFault = unavailable(thrown)
    const error = databaseFault ?? (thrown instanceof URIError ? undecodable(thrown) : asRouterError(thrown))
    const presented = secretOf(request.headers)
    error.message = withoutSecrets(error.message, presented)
    if (error.param !== undefined) error.param = withoutSecrets(error.param, presented)
    const facts = { err: thrown, request_id: requestIdOf(response) }
    if (databaseFault) log.warn(facts, 'the database could not be used')
    else if (error.code === 'internal') log.error(facts, 'a call failed unexpectedly')
    // Failures in calls are logged where the hook is called.
    else if (error.code === 'plugin_failed' && error.cause)
      log.error(facts, 'a plugin failed to answer the management API')
    if (response.headersSent) {
      response.destroy()
      return
    }
    Object.assign(headersOf(response), retryHeaders(error))
    addHeaders(response, error.headers)
    const clientApi: ClientApi | undefined = response.locals.clientApi
    const body = clientApi
      ? clientApi.writeError(error, requestIdOf(response), request.headers['user-agent'])
      : errorBody(error)
    respond(response, clientApi?.errorStatus?.(error) ?? error.status, JSON.stringify(body))
  }
}

/** Returns the headers that say when a client may send the same call again, or that it must not. */
export function retryHeaders({ status, retryAfterMs, mayBeRetried }: RouterError): { [name: string]: string } {
  const retryMs = retryAfterMs ?? (status === 429 ? 1_000 : undefined)
  return {
    ...(retryMs !== undefined && { 'retry-after': String(Math.ceil(retryMs / 1_000)) }),
    ...(!mayBeRetried && { 'x-should-retry': 'false' }),
  }
}

function undecodable(cause: URIError): RouterError {
  const message = 'The path cannot be decoded: write % only before two hexadecimal digits, and UTF-8.'
  return new RouterError('invalid_request', message, { cause })
}
