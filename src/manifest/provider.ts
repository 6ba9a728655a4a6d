import type { RestrictedField } from '../api/restricted-fields.ts'
import type { ModelIds } from '../catalog/model-ids.ts'
import type { ErrorCode, Rejection } from '../core/errors.ts'
import type { Json } from '../core/json.ts'
import type { ModelEntry } from '../core/models/model.ts'
import type { Finish } from '../core/reply.ts'
import type { Api } from '../core/request.ts'
import type { OwnFunctions } from '../mapping/library.ts'
import type { Mapping } from '../mapping/mapping.ts'
import type { PathTree } from '../mapping/mentions.ts'
import type { StreamFormat } from '../wire/frames.ts'
import type { Limits } from './limits.ts'
import type { Job, OperationEndpoints } from './operation.ts'
import type { HistoryRules } from './run/repair-history.ts'
import type { Pattern, UnsupportedField, VariantNeed } from './types.ts'

/** A manifest made ready to serve: dialect merged in, secrets resolved, mappings read. */
export type Provider = {
  slug: string
  name: string
  /** Signer whose signatures and encrypted reasoning it accepts: itself, unless the manifest names another provider. */
  signer: string
  baseUrl: string
  auth: Auth
  headers: Record<string, string>
  timeouts: Timeouts
  /** Number of calls to one of its models that may run at once, and number that may wait, where that is limited. */
  limits?: { concurrent: number; queue: number }
  /** The client API this provider's chat format equals: then bodies are edited, not rebuilt. */
  sameAs?: Api
  chat?: ChatEndpoint
  /** Endpoints for everything else that it can be asked for. */
  operations?: OperationEndpoints
  /** Paths at which it counts the tokens of a request, and compacts a conversation, in the format of its chat. */
  count?: { path: string }
  compact?: { path: string }
  /** Endpoint at which it lists its models. */
  listing?: ModelListing
  /** The provider's error body to its code and message. Without it the usual places are searched. */
  failure?: Mapping
  /** HTTP status, provider code or a piece of the message → our error. The most specific wins: code, message, status. */
  errors: Record<string, ErrorCode>
  /** Piece of the message of a refused request → the part of the request that was refused. */
  rejections?: Readonly<Record<string, Rejection>>
  /** Response headers that name the error, such as those of AWS, in lower case. */
  errorHeaders?: readonly string[]
  /** Response headers in which it reports its rate limits. */
  rateLimits?: readonly RateLimitHeaders[]
  traits: Trait[]
  unknownModels: 'refuse' | 'pass'
  /** Entry with the operator's price for models that no catalog lists. */
  unknownEntry?: ModelEntry
  /** Decides for its models whether those that are retired are refused; otherwise the operator's setting for all providers does. */
  refuseRetired?: boolean
  /** Rules for comparing ids of models, where that is not letter by letter. */
  modelIds?: ModelIds
  models: Record<string, ModelEntry>
  /** Slug of the provider whose catalog entries it offers besides its own. */
  modelsOf?: string
  /** The header by which it knows a request that is sent again. */
  idempotency?: string
  /** Figures in its replies that take precedence over the router's own: the model that served, the cost that it charges. */
  reports?: ReadonlySet<'model' | 'cost'>
  /** Fields of requests that change who serves, what it costs or what is stored, in addition to those of the client APIs. */
  restricted?: readonly RestrictedField[]
  /** Models or requests that are served by another format or address under the same slug; the first that fits wins. */
  variants?: Variant[]
  /** Environment variables that are named but not set: the provider is unconfigured. */
  missing: string[]
  /** The dialect it builds on, and the manifest it was read from. */
  dialect?: string
  file?: string
}

/**
 * The provider as it is for the models whose id matches, for requests with one of these needs, or both: complete in itself,
 * without variants of its own.
 */
export type Variant = { match?: Pattern; when?: readonly VariantNeed[]; provider: Provider }

/** Authentication to a provider. */
export type Auth =
  | { scheme: 'none' }
  | { scheme: 'bearer'; secret: string }
  | { scheme: 'header'; header: string; secret: string; prefix?: string }
  | { scheme: 'query'; parameter: string; secret: string }
  | AwsSigV4
  | GoogleServiceAccount
  | OAuthClientCredentials
  | PluginScheme

/** A scheme of a plugin: `headersOf` makes the headers for a request of the values that the manifest has for it. */
export type PluginScheme = {
  scheme: 'plugin'
  name: string
  values: Readonly<Record<string, string>>
  headersOf: SchemeHeaders
}

/** Signed requests; `bearer`, when it is there, is sent instead of a signature. */
export type AwsSigV4 = {
  scheme: 'aws-sigv4'
  service: string
  region: string
  accessKey: string
  secretKey: string
  sessionToken?: string
  bearer?: string
}

/** Tokens for a service account; `credentials` is its key file's JSON text, or the path of that file. */
export type GoogleServiceAccount = { scheme: 'google-service-account'; credentials: string; scope?: string }

/** Tokens for a client id and its secret (RFC 6749, section 4.4). */
export type OAuthClientCredentials = {
  scheme: 'oauth-client-credentials'
  tokenUrl: string
  clientId: string
  clientSecret: string
  scope?: string
}

/** Limits of one attempt, in milliseconds. */
export type Timeouts = {
  connectMs: number
  /** Limit until the first content of a stream. */
  firstEventMs: number
  betweenEventsMs: number
  /** Limit for an answer that is not streamed. */
  wholeMs: number
  totalMs: number
}

/**
 * One limit that a provider reports in headers, whose names are in lower case: the limit, what is left of it, and when there is more again.
 * `windowMs` is the wait where no header says when; `in` are the members of an error body that lead to the headers where they are there as
 * well.
 */
export type RateLimitHeaders = {
  limit?: string
  remaining: string
  reset?: string
  windowMs?: number
  in?: readonly string[]
}

/**
 * Facts, limits and rules of models whose id matches: facts, read by mappings as `target.traits`, limits and rules for the conversation, which
 * the router applies itself. Later matches win, member by member.
 */
export type Trait = {
  match: Pattern
  facts: { [name: string]: Json }
  limits?: Limits
  history?: HistoryRules
}

/**
 * A path that a GET is answered at with a list of models: the member that is the list, that of each model which is its id, what ids begin
 * with there, and how the next page is asked for: by the value of a member, as a parameter of the query.
 */
export type ModelListing = {
  path: string
  list: string
  id: string
  prefix?: string
  next?: { member: string; parameter: string }
}

/** One provider's chat operation. In paths `{model}` is the model id as one segment, `{+model}` keeps its slashes. */
export type ChatEndpoint = {
  path: string
  stream: StreamForm
  request: RequestMapping
  /** Paths at which its bodies limit the output; undefined when no layer states them. */
  outputLimits?: readonly (readonly string[])[]
  /** The provider's JSON to a reply whose `finish` and `usage` are still in the provider's words. */
  reply: Mapping
  /** Mappings by event name; `*` takes events without a mapping of their own. An empty text ignores an event. */
  events: ReadonlyMap<string, Mapping>
  /** The provider's word for why a reply ended to ours; `*` for words that are not listed. Without it words are ours. */
  finish?: Readonly<{ [word: string]: Finish }>
  /** The provider's usage object to ours. Without it the object is ours. */
  usage?: Mapping
  /** Provider JSON in and out; `$target` holds the facts about the model. `base` runs before `request`. */
  patch: { base?: Mapping; request?: Mapping; reply?: Mapping; event?: Mapping }
  /** The answer is only a job, whose result is the reply. */
  job?: Job
  unsupported: UnsupportedField[]
  history: HistoryRules
}

/** A program over the request that returns an object by section, and under `dropped` the fields that it reads but drops. */
export type RequestMapping = { mapping: Mapping; sections: readonly string[]; support: Support }

/** The request features that a mapping supports, inferred from the names it uses; everything else is dropped and reported. */
export type Support = {
  has(field: string): boolean
  /** The members of an object field that are read; `whole` for all of them. */
  members(field: string): PathTree
  part(type: string): boolean
  /** Checks for a tool by its kind; a tool that only one client API defines has `by`. */
  tool(tool: { kind: string; by?: Api }): boolean
  /** Checks whether a member of parts or tools is named anywhere. */
  named(member: string): boolean
}

/**
 * Streamed answers on the wire: `eventField` names an event by a member of its JSON, `done` is the text of the last frame. `text` is the
 * place of a piece of text in an event: events that differ only in it mean the same except for their text.
 */
export type StreamForm = {
  path: string
  format: StreamFormat
  /** Form of an event's data; a text is the mapping's whole input. */
  data: 'json' | 'text'
  eventField?: string
  done?: string
  text?: readonly string[]
  /** No stream is asked for: clients that want one get the whole reply as a stream. */
  whole?: boolean
  /** Events repeat the whole text so far: what is new in them is sent on. */
  cumulative?: boolean
  /** The first answer is JSON, from which `url` reads the address of the stream, of the provider's own origin or on one of `hosts`. */
  address?: { url: Mapping; hosts: readonly string[] }
}

/** Checks whether a provider answers clients that want a stream at once, when all of the reply is there. */
export function streamsWhole({ chat }: Pick<Provider, 'chat'>): boolean {
  return chat?.stream.whole === true
}

/** Additions of plugins that manifests can use besides what the router itself provides. */
export type Extensions = {
  functions: OwnFunctions | undefined
  /** Authentication schemes by name. */
  schemes: Readonly<Record<string, SchemeHeaders>>
}

/** The headers that authenticate a request, of the values that a manifest has under `auth`. */
export type SchemeHeaders = (
  request: { method: string; url: string; headers: Readonly<Record<string, string>>; body: string | undefined },
  values: Readonly<Record<string, string>>,
) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>

/** Checks whether there is nothing besides the router's own. */
export function isBare({ functions, schemes }: Extensions): boolean {
  return functions === undefined && Object.keys(schemes).length === 0
}

export const noExtensions: Extensions = { functions: undefined, schemes: {} }
