import type { Timeouts } from '../../manifest/provider.ts'
import type { BodyBytes } from '../outgoing-body.ts'
import type { Overtime } from './overtime.ts'

/** A method of a request to a provider. */
export type HttpMethod = 'GET' | 'POST' | 'DELETE'

/** One HTTP request to a provider. */
export type HttpRequest = {
  /** The default is POST. */
  method?: HttpMethod
  url: string
  headers: Readonly<Record<string, string>>
  body?: BodyBytes | undefined
  /** Bytes, of a body that is made as it is sent; without it the body is sent in chunks. */
  length?: number | undefined
  timeouts: Timeouts
  /** Set where the time limits of a stream apply to its content, which `progressed` reports, not to any byte. */
  untilContent?: boolean
  /** Aborted when the client disconnects or the process stops. */
  signal: AbortSignal
  provider: string
  /** Called when all of the request has been handed to the connection. */
  onSent?: (() => void) | undefined
  /** Set for a request that is not sent again on a fresh connection when a kept one turns out to be closed. */
  once?: boolean
  /** Set where the answer is read on after the call is over. */
  overtime?: Overtime | undefined
}

/**
 * A response whose headers have come. `bytes`, decompressed, throws RouterError when time runs out, the connection breaks or they
 * cannot be decompressed.
 */
export type HttpResponse = {
  status: number
  headers: Record<string, string | string[] | undefined>
  bytes: AsyncIterable<Uint8Array>
  /** Reports that content has arrived. */
  progressed(): void
  /** Closes the connection without reading on. */
  discard(): void
}

/** Client that sends requests to providers; nothing else does. */
export type HttpClient = {
  send(request: HttpRequest): Promise<HttpResponse>
  close(): Promise<void>
  /** The client that this one sends through: state of a client, such as tokens, is kept for that one. */
  base?: HttpClient
}
