import type { Json, JsonObject } from './json.ts'
import type { RoutingRequest } from './routing/request.ts'

/**
 * Non-chat operations that a client can request from a model, by the names of the endpoints in manifests: `api` is the name in the
 * ledger, `models` the APIs of the catalog whose models support it.
 */
export const operations = {
  embed: { api: 'embeddings', models: ['embedding'] },
  image: { api: 'images', models: ['image'] },
  image_edit: { api: 'images', models: ['image'] },
  speech: { api: 'speech', models: ['speech'] },
  transcribe: { api: 'transcriptions', models: ['transcription'] },
  decide: { api: 'decisions', models: ['decision', 'chat'] },
  complete: { api: 'completions', models: ['completion', 'chat'] },
  rerank: { api: 'rerank', models: ['rerank'] },
  moderate: { api: 'moderations', models: ['moderation'] },
} as const satisfies Record<string, { api: string; models: readonly string[] }>

/** The name of an operation. */
export type Operation = keyof typeof operations

/** The name of its API in the ledger. */
export type OperationApiName = (typeof operations)[Operation]['api']

/**
 * A request for an operation: `fields` are the client's, checked, in the words of its API, without `model`. Mappings read them.
 * A file among them is `{ "$file": <index into files> , filename, media_type, size }`.
 */
export type OperationRequest = {
  operation: Operation
  /** The model string of the client. */
  model: string
  fields: JsonObject
  files: readonly UploadedFile[]
  /** Length of the sound in its file. */
  audio?: AudioLength
  /** The client wants events as they come. */
  stream: boolean
  /** Members that the API does not have: sent where a body is edited, else dropped. */
  unread: JsonObject
  user?: string
  /** Members of the body that are for the router alone: about the call itself, and about how it is routed. */
  requesty?: Json
  routing?: RoutingRequest
  /** The body had questions by name, and so has the reply answers. */
  isNamed?: true
}

/**
 * Length of a sound, in seconds: `exact` if its file contains it, else an estimate by its size; `most` is an upper bound.
 */
export type AudioLength = { seconds: number; maxSeconds: number; exact: boolean }

/** One file of a form, kept until the call ends. */
export type UploadedFile = {
  /** The name of the form field. */
  field: string
  /** File name from the client; may be empty. */
  filename: string
  /** The media type that the form declares. */
  mediaType: string
  /** Bytes. */
  size: number
  /** First bytes of the file, at most 4 KiB, to recognize its format. */
  head: Uint8Array
  /** All bytes from the beginning; every call starts over. Pieces may lie in `into`, each where the one before was. */
  read(into?: Uint8Array): AsyncIterable<Uint8Array>
}
