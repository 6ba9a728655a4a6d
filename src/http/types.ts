import type { IncomingHttpHeaders } from 'node:http'
import type { ClientApi } from '../api/client-api.ts'

/** A request to a JSON route. `params` come from its path. */
export type JsonRequest = {
  headers: IncomingHttpHeaders
  params: { readonly [name: string]: string | readonly string[] | undefined }
  query: { readonly [name: string]: string | string[] | undefined }
  /** Reads the body as JSON, undefined when there is none. Throws RouterError 400, 413, 415. */
  readBody(): Promise<unknown>
}

/** A route that answers with JSON text. The default method is `get`. */
export type JsonRoute = {
  path: string
  method?: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** The client API whose error format this request gets; by default that of the path. */
  clientApiOf?: (request: Pick<JsonRequest, 'headers'>) => ClientApi | undefined
  /** Set where the worker that receives the request answers it, not the main thread: it needs facts that only that worker has. */
  isForWorkers?: boolean
  answer(request: JsonRequest): JsonAnswer | Promise<JsonAnswer>
}

/**
 * The default status is 200; a `body` is sent piece by piece, as fast as the client reads it, and is asked for no more when the client has
 * left; an `endless` one ends when the router stops. Without a text or a body there is none, as for 204; the text is JSON unless `mediaType` says otherwise. A client that sends the `etag` of its text gets a 304
 * instead.
 */
export type JsonAnswer = {
  status?: number
  text?: string | Buffer
  etag?: string
  mediaType?: string
  body?: AsyncIterator<string, void>
  endless?: boolean
  /** Set where no browser or proxy may store the answer. */
  noStore?: boolean
}
