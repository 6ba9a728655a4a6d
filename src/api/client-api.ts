import type { RouterError } from '../core/errors.ts'
import type { StreamEvent } from '../core/events.ts'
import type { JsonObject } from '../core/json.ts'
import type { Finish, Reply } from '../core/reply.ts'
import type { Api, NeutralRequest } from '../core/request.ts'
import type { TextFilePlaces } from '../core/text-files.ts'
import type { Usage } from '../core/usage.ts'
import type { FetchedFiles } from './media-address.ts'

/** Counting in a client API. */
export type Counting = {
  /** Members that a request which is only counted may leave out, as it is read. */
  defaults: JsonObject
  /** A body as a provider of the same format counts it. */
  body(body: JsonObject): JsonObject
  /** The client's JSON of a count; a provider's own may contain more. */
  write(count: JsonObject & { input_tokens: number; estimated?: true }): JsonObject
}

/** A client API: pure translation between its wire format and the neutral form, or edits of that wire format. */
export type ClientApi = {
  api: Api
  /** The neutral request for the client's JSON; `model` is still the client's model string. Throws RouterError 400. */
  read(body: unknown): NeutralRequest
  /** The client's names of a neutral field, to report that it was dropped. */
  wireNames(field: string): readonly string[]
  /** The client's body for a provider of the same format: its model id, without the dropped fields, and of this length. */
  editRequest(body: JsonObject, facts: EditFacts): JsonObject
  /** The neutral names of what such an edit changes or leaves out by itself: what other providers made, and wrong limits. */
  droppedByEdit(body: JsonObject): string[]
  /** Checks whether a request may use names that are not the API's own: an edited body then needs the provider's. */
  hasAlternativeNames?(request: NeutralRequest): boolean
  /** Token counting for requests, in APIs that have an endpoint for it. */
  counting?: Counting
  writeReply(reply: Reply, facts: ReplyFacts): JsonObject
  /** The reply of a provider of the same format with the model that served and the cost; the rest is untouched. */
  editReply(body: JsonObject, facts: ReplyFacts): JsonObject
  openStream(request: NeutralRequest, facts: StreamFacts): StreamWriter
  /** The ids of what a provider of the same format holds after a whole reply: containers, the thread of the conversation. */
  heldIds?(body: JsonObject, request: NeutralRequest): string[]
  /** The body of an HTTP error; `id` is that of the request, `client` the header `User-Agent`. */
  writeError(error: RouterError, id?: string, client?: string): JsonObject
  /** The HTTP status of an error for which this API has one of its own. */
  errorStatus?(error: RouterError): number | undefined
  /** The name of a response header that has the id of the request, beside `x-request-id`. */
  requestIdHeader?: string
  /** The name of a request header by which clients of this API are known. */
  versionHeader?: string
  /** Request headers for a provider of the same format: they replace the manifest's value, or are appended to it. */
  forwardedHeaders?: { readonly [name: string]: 'replace' | 'append' }
  /** The text that keeps an idle stream open once it has started; a comment where this is missing. */
  keepAlive?: string
}

/**
 * `dropped` are neutral names of what the provider cannot take, `files` what was fetched because it fetches nothing,
 * `textRefusals` whether earlier refusals become text, `textFiles` the places where files of text become text, `length` an output limit in
 * place of the client's own.
 */
export type EditFacts = {
  model: string
  stream: boolean
  dropped: readonly string[]
  files?: FetchedFiles | undefined
  providerFields?: ProviderFields | undefined
  textRefusals?: boolean
  textFiles?: TextFilePlaces | undefined
  length?: number | undefined
}

/** Provider-specific way to ask for reasoning and caching: `members` of a body, and a `mark` of a content part. */
export type ProviderFields = { members: JsonObject; mark?: JsonObject }

/**
 * `model` is the `provider/model` that served; `costUsd` is missing when no price is known. `request` is the answered
 * request, for the few replies whose shape depends on it, and `id` the id of the call.
 */
export type ReplyFacts = {
  model: string
  costUsd?: number
  usage: Usage
  request?: NeutralRequest
  id?: string
  finishOf?: FinishOf
  /**
   * Report of the router's part in the reply, in the last event of a stream: present where several targets made it, or the call asked for
   * it.
   */
  router?: JsonObject
}

/**
 * `model` is the `provider/model` that serves, `id` that of the call, `requestId` the client's own, `client` the header `User-Agent`.
 */
export type StreamFacts = {
  model: string
  id: string
  requestId?: string | undefined
  client?: string | undefined
  finishOf?: FinishOf
}

/** The neutral meaning of a provider's finish reason: edited replies need it where the client API lacks that reason. */
export type FinishOf = (reason: string) => Finish | undefined

/** Writes one streamed reply as the text of server-sent events. */
export type StreamWriter = {
  /** Neutral events of a translated reply. */
  events(events: readonly StreamEvent[]): string
  /** Edits one frame of a provider of the same format; returns an empty text when the client does not get it. */
  edit(payload: JsonObject): string
  /** Returns the next text of a frame that is edited into more than is written at once; empty when there is none. */
  more?(): string
  /** True if frames that differ only in a piece of text are edited into texts that differ only in it. */
  repeatsText?: boolean
  /** The end of a complete reply: usage, cost, terminator. */
  end(facts: ReplyFacts): string
  /** The end of a reply that failed: an error, and no terminator that would signal success. */
  fail(error: RouterError): string
  /** Returns the same as `heldIds` of the API, after a streamed reply. */
  heldIds?(): string[]
  /** The whole reply as it was streamed, in an API that stores replies. */
  reply?(facts: ReplyFacts): JsonObject
}

/** An event named by its `type`, as the text of a server-sent event. */
export function writeEvent(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
