import type { RouterError } from '../core/errors.ts'
import type { Json, JsonObject } from '../core/json.ts'
import type { ModelEntry } from '../core/models/model.ts'
import type { Operation, OperationRequest, UploadedFile } from '../core/operation.ts'
import type { Reply } from '../core/reply.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { Usage } from '../core/usage.ts'
import type { FetchedFiles } from './media-address.ts'

/** A body as the client sent it: JSON, or the fields and files of a form. */
export type OperationBody =
  | { json: unknown /** The length of its text, where that is known. */; bytes?: number }
  | { fields: readonly (readonly [name: string, value: string])[]; files: readonly UploadedFile[] }

/** Size limits of a form: bytes of one file, number of files, and bytes of all (default: those of all files). */
export type FormBounds = { fileBytes: number; files: number; bytes?: number }

/**
 * The client's side of an operation, pure: its own JSON in, its own JSON out. Providers' replies arrive here in the words of this
 * API, edited or translated by their manifests; their `usage` has been taken out.
 */
export type OperationApi = {
  operation: Operation
  /** Forms are accepted, up to these bounds. */
  form?: FormBounds
  /** JSON bodies are accepted. */
  json: boolean
  /** Fields without which a call has no sense: a target that cannot take one as it is refuses the call. */
  needs?: readonly string[]
  /** Checks a body. Throws RouterError 400, 413. */
  read(body: OperationBody): OperationRequest
  /** Adds what the files must be read for before the call is admitted. Rejects with the reason of an aborted signal. */
  measure?(request: OperationRequest, signal: AbortSignal): Promise<OperationRequest>
  /** Returns the form of the client's reply: one JSON text, bytes as they come, or server-sent events. */
  wants(request: OperationRequest): 'json' | 'bytes' | 'events'
  /** Throws RouterError 400 for what this model cannot do, as far as the catalog knows. */
  checkModel?(request: OperationRequest, entry: ModelEntry): void
  /** The most that a call can use at a model. */
  maxUsage(request: OperationRequest, entry: ModelEntry | undefined): Usage
  /** The most that can be believed of a provider's counts in each class, where that is more than follows from `maxUsage`. */
  plausible?(request: OperationRequest): Usage
  /** The texts whose tokens `most` bounds by their bytes: each as often as it is read. Undefined where those are too many. */
  texts?(request: OperationRequest): string[] | undefined
  /**
   * Counts the units that the router measures itself: characters, images, seconds. `reply` is missing when none came, or only a part of
   * it, `entry` where the model is not known.
   */
  count(request: OperationRequest, reply?: JsonObject, entry?: ModelEntry): Usage
  /** The tokens, and the seconds, of a call whose provider counted none. */
  estimate(request: OperationRequest, reply?: JsonObject): Usage
  /** Checks that a whole reply has what it must have. Throws RouterError `provider_unreadable`: another target may have it. */
  check?(reply: JsonObject, request: OperationRequest): void
  /** A whole reply as the client gets it. Throws RouterError `provider_unreadable` for one that lacks what it must have. */
  write?(reply: JsonObject, facts: OperationFacts): JsonObject | string
  /** The replies to the pieces of a request that was split, as one; `offsets` say where each piece began. */
  join?(replies: readonly JsonObject[], offsets: readonly number[]): JsonObject
  /** Files that a reply has addresses of, where the client wants their data: they are fetched, and put into the reply. */
  downloads?: {
    links(reply: JsonObject, request: OperationRequest): string[]
    put(reply: JsonObject, files: FetchedFiles): JsonObject
  }
  bytes?: OperationBytes
  events?: OperationEvents
  /** The operation as a conversation: so it is done by models for conversations whose provider has no endpoint for it. */
  byChat?: OperationByChat
}

/** An operation in the words of a conversation. */
export type OperationByChat = {
  /** The conversation that asks for it, with a limit of its length. */
  request(request: OperationRequest): NeutralRequest & { max_output_tokens: number }
  /** The client's reply that the model's amounts to. Throws RouterError `provider_unreadable`. */
  reply(reply: Reply, request: OperationRequest): JsonObject
  /** The client's names of neutral fields that can be dropped; others are defined by the router itself. */
  names: { readonly [field: string]: string }
}

/** `model` is the `provider/model` that served; `costUsd` is missing when no price is known; `reported` is the provider's own usage. */
export type OperationFacts = {
  id: string
  model: string
  request: OperationRequest
  usage: Usage
  costUsd?: number
  /** The provider's usage object, where it was edited rather than translated. */
  reported?: Json | undefined
  /** Unix seconds. */
  now: number
}

/** Conversion of a provider's answer to bytes, for clients that want bytes. `mediaType` is the type that the provider reports. */
export type OperationBytes = {
  /** The bytes that a whole reply carries. Throws RouterError `provider_unreadable`. */
  ofWhole(reply: JsonObject, request: OperationRequest): { bytes: Uint8Array; mediaType: string | undefined }
  /** The bytes that an event carries, or that it ends its stream. */
  ofEvent(event: JsonObject): Uint8Array | 'end' | undefined
  /** Returns the headers that report any difference from the request, by the beginning of the bytes. */
  headers(beginning: Uint8Array, mediaType: string | undefined, request: OperationRequest): Record<string, string>
  /** Adds a piece to the facts collected about the reply, which `count` and `estimate` get. */
  collect(known: JsonObject, piece: Uint8Array, request: OperationRequest): JsonObject
}

/** Server-sent events of an operation, in the words of its API. */
export type OperationEvents = {
  /** The events that a whole reply amounts to, the last of which ends the stream. */
  ofWhole(reply: JsonObject, request: OperationRequest): JsonObject[]
  /** The event of a piece of bytes; and the one that ends a stream of bytes. */
  ofBytes?(piece: Uint8Array): JsonObject
  endOfBytes?(): JsonObject
  /**
   * Checks whether an event ends its stream: it is sent when the call is in the ledger. `known` holds the facts collected so far,
   * including it.
   */
  isEnd(event: JsonObject, known?: JsonObject): boolean
  /** Checks for events that are not passed on: the last one contains their contents. */
  isHidden?(event: JsonObject): boolean
  /** Returns the events that follow the last one. */
  after?(facts: OperationFacts, last: JsonObject): JsonObject[]
  /** An event as the client gets it; the last one with usage and cost. */
  write(
    event: JsonObject,
    facts: Pick<OperationFacts, 'id' | 'model' | 'request'> & Partial<OperationFacts>,
  ): JsonObject
  /** True if events are named by their `type` on the wire. */
  named: boolean
  /** The text after the last event. */
  terminator?: string
  /** The event of an error. */
  fail(error: RouterError): JsonObject
  /** Adds the contents of an event to the reply as far as it is known, for counting what a broken stream used. */
  collect?(known: JsonObject, event: JsonObject, request: OperationRequest): JsonObject
}
