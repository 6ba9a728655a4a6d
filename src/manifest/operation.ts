import type { ModelEntry } from '../core/models/model.ts'
import { type Operation, operations } from '../core/operation.ts'
import type { Mapping } from '../mapping/mapping.ts'
import type { StreamFormat } from '../wire/frames.ts'
import type { UnsupportedField } from './types.ts'

/**
 * Form in which a body is sent: JSON, a form with files, such a form where files are its members and else JSON, a form of texts, or the
 * bytes of one file.
 */
export type BodyForm = 'json' | 'multipart' | 'multipart_or_json' | 'form' | 'bytes'

/** One provider's endpoint for an operation. */
export type OperationEndpoint = {
  /** The provider's own manifest names it; else its dialect alone describes it. */
  offered: boolean
  path: string
  body: BodyForm
  /** Forms of images that it accepts besides files: addresses, ids of files that the provider has. */
  takes?: readonly ('links' | 'file_ids')[]
  /** The client's fields to the provider's body; without it they are sent as they are, with the provider's id of the model. */
  request?: OperationRequestMapping
  /** The client's fields to the texts of the URL's query. */
  query?: Mapping
  /**
   * Form of an answer that is not requested as a stream; `events` always are. Bytes are passed on as they come, unless `reply` reads
   * them: `{base64, media_type}`.
   */
  answer: 'json' | 'bytes' | 'events'
  /** The provider's JSON to the client's, with `usage` in the provider's words; without it they are the same. */
  reply?: Mapping
  /** The provider's usage object to ours. Without it the object is ours. */
  usage?: Mapping
  patch: { request?: Mapping; reply?: Mapping; event?: Mapping }
  /** Streamed answers, where the provider has them. */
  stream?: OperationStream
  /** Fields of the client's request that the provider does not take. */
  unsupported: readonly UnsupportedField[]
  /** A list among the fields that is sent in batches of at most `size` items, or a number of answers that is requested in parts. */
  batch?: { field: string; size: number }
  /** The answer is only a job, which is asked for until it is done. */
  job?: Job
  /** Files are sent before the request, which has references to them in their places. */
  upload?: Upload
}

/** A program over the request that gives an object by section, and the names that it mentions. */
export type OperationRequestMapping = { mapping: Mapping; sections: readonly string[]; names: ReadonlySet<string> }

/** Streamed answers on the wire; without `events` they are the client's own. */
export type OperationStream = {
  path: string
  format: StreamFormat
  eventField?: string
  done?: string
  events?: ReadonlyMap<string, Mapping>
}

/**
 * A job: `id` reads it from the first answer, `poll` is the path that is asked (`{id}` stands for it, alone for a whole URL, of the
 * provider's own origin or on one of `hosts`), `done` and `failed` read the answers to that. `everyMs` and `withinMs` bound the asking.
 */
export type Job = {
  id: Mapping
  poll: string
  hosts?: readonly string[]
  done: Mapping
  failed?: Mapping
  cancel?: string
  everyMs: number
  withinMs: number
}

/**
 * Where files are sent before a request: as the bytes of a body, or as the part of a form that `field` names, beside `fields`. `reference`
 * reads from the answer what stands for the file in the request.
 */
export type Upload = {
  path: string
  body: 'bytes' | 'multipart'
  field: string
  fields: Readonly<Record<string, string>>
  reference: Mapping
}

/**
 * The endpoint of a provider for an operation with a model: one that its manifest names, or that its dialect describes, where the
 * model is one of this kind.
 */
export function endpointFor(
  { operations: endpoints }: { operations?: OperationEndpoints },
  operation: Operation,
  entry: Pick<ModelEntry, 'api' | 'also'> | undefined,
): OperationEndpoint | undefined {
  const endpoint = endpoints?.[operation]
  if (!endpoint || endpoint.offered) return endpoint
  const models: readonly string[] = operations[operation].models
  const apis = entry ? [entry.api, ...(entry.also ?? [])] : []
  return apis.some((api) => api !== 'chat' && models.includes(api)) ? endpoint : undefined
}

/** Checks whether a provider can be asked for a model of this kind at all. */
export function canServe(
  provider: { chat?: unknown; operations?: OperationEndpoints },
  entry: Pick<ModelEntry, 'api' | 'also'>,
): boolean {
  const apis = [entry.api, ...(entry.also ?? [])]
  if (apis.includes('chat') && provider.chat !== undefined) return true
  return Object.keys(provider.operations ?? {}).some((name) => {
    const operation = name as Operation
    const models: readonly string[] = operations[operation].models
    return apis.some((api) => models.includes(api)) && endpointFor(provider, operation, entry) !== undefined
  })
}

/** The endpoints of a provider by operation. */
export type OperationEndpoints = { readonly [operation in Operation]?: OperationEndpoint }
