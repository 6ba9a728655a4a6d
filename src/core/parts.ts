import type { Json } from './json.ts'

/** What messages and replies are made of, in the order in which it was said. */
export type Part =
  | TextPart
  | MediaPart
  | ReasoningPart
  | ToolCallPart
  | ToolResultPart
  | SearchPart
  | RefusalPart
  | OpaquePart

/** A wish to keep the prompt up to and including this part in the provider's cache. */
export type CacheHint = { ttl?: '5m' | '1h' }

/** Plain text. `signature` is a provider's seal on it, meaningful to `by` alone. */
export type TextPart = {
  type: 'text'
  text: string
  citations?: Citation[]
  signature?: string
  by?: string
  cache?: CacheHint
}

/** A source for a stretch of text; `start` and `end` count Unicode code points of that text. */
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
  /** What was said, for audio that a model made. */
  transcript?: string
  /** The provider's name for audio that a model made. */
  id?: string
  cache?: CacheHint
}

/** Reasoning. `by` is who made it; `signature` and `encrypted` are seals that go back to that maker only. */
export type ReasoningPart = {
  type: 'reasoning'
  text?: string
  summary?: string
  signature?: string
  encrypted?: string
  id?: string
  by?: string
}

/** A tool call. `arguments` is JSON text exactly as the model wrote it (a custom tool's input: free text). */
export type ToolCallPart = {
  type: 'tool_call'
  id: string
  name: string
  arguments: string
  kind?: 'function' | 'custom'
  signature?: string
  by?: string
  cache?: CacheHint
}

/** What a tool answered: text, images and files. It stands in a user message. `name` is the tool's, when known. */
export type ToolResultPart = {
  type: 'tool_result'
  id: string
  name?: string
  parts: Part[]
  is_error?: boolean
  cache?: CacheHint
}

/** A web search that the provider ran; `results` keeps its sealed form for replay to `by`. */
export type SearchPart = {
  type: 'search'
  id?: string
  query?: string
  status?: string
  results?: Json
  by?: string
}

/** The model declined, in its own words. */
export type RefusalPart = { type: 'refusal'; text: string }

/** A block that only its maker understands: carried unchanged, given back to its maker only. */
export type OpaquePart = { type: 'opaque'; by?: string; body: Json }
