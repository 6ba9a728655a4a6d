import type { Json, JsonObject } from './json.ts'

/** A part of a message or reply. Parts are in their original order. */
export type Part =
  | TextPart
  | MediaPart
  | ReasoningPart
  | ToolCallPart
  | ToolResultPart
  | SearchPart
  | RefusalPart
  | OpaquePart

/** Asks the provider to cache the prompt up to and including this part. */
export type CacheHint = { ttl?: '5m' | '1h' }

/** Plain text. `signature` is a provider's signature on it, meaningful to the provider `by` alone. */
export type TextPart = {
  type: 'text'
  text: string
  citations?: Citation[]
  signature?: string
  by?: string
  cache?: CacheHint
}

/** A source of a range of text; `start` and `end` count Unicode code points of that text. */
export type Citation = { url?: string; title?: string; cited_text?: string; start?: number; end?: number }

/** Media: exactly one of `url` (http or https), `data` (base64, with `media_type`) or `file_id` (a provider's own). */
export type MediaPart = {
  type: 'image' | 'audio' | 'file' | 'video'
  url?: string
  data?: string
  media_type?: string
  file_id?: string
  filename?: string
  detail?: string
  /** The transcript of audio that a model made. */
  transcript?: string
  /** The provider's id of audio that a model made. */
  id?: string
  cache?: CacheHint
}

/**
 * Reasoning of the provider `by`; `signature` and `encrypted` go back to that provider only, and so does all of it where the router
 * `restored` it: the client did not send it.
 */
export type ReasoningPart = {
  type: 'reasoning'
  text?: string
  summary?: string
  signature?: string
  encrypted?: string
  id?: string
  by?: string
  restored?: true
}

/** A tool call. `arguments` is JSON text exactly as the model wrote it (a custom tool's input: free text). */
export type ToolCallPart = {
  type: 'tool_call'
  id: string
  name: string
  arguments: string
  kind?: 'function' | 'custom'
  /** The form in which the client gets the call, where that is not a call of this name. */
  form?: CallForm
  /** The call as the client has sent it, in a form that only its API has. */
  native?: NativeItem
  signature?: string
  by?: string
  cache?: CacheHint
}

/** A call in the client's words: the type of its tool, the tool's own name, and the namespace that the name belongs to. */
export type CallForm = { kind: string; name: string; namespace?: string }

/** The client's JSON of a call or result of a tool of this kind: only a provider of the API `by` that has the tool understands it. */
export type NativeItem = { by: string; kind: string; body: JsonObject }

/** A tool's result: text, images and files, in a user message. `name` is the tool's, when known. */
export type ToolResultPart = {
  type: 'tool_result'
  id: string
  name?: string
  parts: Part[]
  is_error?: boolean
  /** The result as the client has sent it, in a form that only its API has. */
  native?: NativeItem
  cache?: CacheHint
}

/** A web search that the provider ran; `results` are in the provider's own form, to be sent back to `by`. */
export type SearchPart = {
  type: 'search'
  id?: string
  query?: string
  status?: string
  results?: Json
  by?: string
}

/** A refusal, as the model worded it. */
export type RefusalPart = { type: 'refusal'; text: string }

/** A block that only the provider `by` understands: passed on unchanged, and sent back to that provider only. */
export type OpaquePart = { type: 'opaque'; by?: string; body: Json }
