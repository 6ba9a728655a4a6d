import type { ModelEntry } from '../catalog/model.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { Json } from '../core/json.ts'
import type { HistoryRules } from '../core/repair.ts'
import type { Api } from '../core/request.ts'
import type { Mapping } from '../mapping/mapping.ts'

/** A manifest made ready to serve: dialect merged in, secrets resolved, mappings read. */
export type Provider = {
  slug: string
  name: string
  /** Who accepts the seals on sealed parts: the slug unless the manifest shares another's. */
  maker: string
  baseUrl: string
  auth: Auth
  headers: Record<string, string>
  timeouts: Timeouts
  /** The client API this provider's chat format equals: then bodies are edited, not rebuilt. */
  sameAs?: Api
  chat?: ChatEndpoint
  /** HTTP status, provider code or a piece of the message → our error. The most specific wins: code, message, status. */
  errors: Record<string, ErrorCode>
  traits: Trait[]
  unknownModels: 'refuse' | 'pass'
  models: Record<string, ModelEntry>
  /** Environment variables that are named but not set: the provider is unconfigured. */
  missing: string[]
  /** The dialect it builds on, and the manifest it was read from. */
  dialect?: string
  file?: string
}

/** How we authenticate to a provider. */
export type Auth =
  | { scheme: 'none' }
  | { scheme: 'bearer'; secret: string }
  | { scheme: 'header'; header: string; secret: string }
  | { scheme: 'query'; parameter: string; secret: string }

/** Limits of one attempt, in milliseconds. */
export type Timeouts = { connectMs: number; firstEventMs: number; betweenEventsMs: number; totalMs: number }

/** Facts about models whose id matches, read by mappings as `target.traits`; later matches win field by field. */
export type Trait = { match: RegExp; facts: { [name: string]: Json } }

/** One provider's chat operation. `{model}` in a path stands for the model id, percent-encoded. */
export type ChatEndpoint = {
  path: string
  stream: StreamForm
  request: Mapping
  reply: Mapping
  /** By event name; `*` takes what has no mapping of its own. An empty text ignores an event. */
  events: ReadonlyMap<string, Mapping>
  patch: { request?: Mapping; reply?: Mapping; event?: Mapping }
  losses: Loss[]
  history: HistoryRules
}

/** How streamed answers look on the wire: `eventField` names an event by a member of its JSON, `done` is the last frame's text. */
export type StreamForm = { path: string; format: 'sse'; eventField?: string; done?: string }

/** A neutral field this provider cannot take, always or `when` the mapping over the request says true. */
export type Loss = { field: string; when?: Mapping }
