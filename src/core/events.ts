import type { Json, JsonObject } from './json.ts'
import type { CacheHint, Citation, MediaPart, Part } from './parts.ts'
import type { Finish } from './reply.ts'
import type { ReportedUsage, Usage } from './usage.ts'

/**
 * The result of a stream mapping for one provider event. `at` is the provider's own key for the part; without it the event
 * belongs to the open part of its kind, or opens one. An event may have several of these members.
 */
export type ProviderEvent = {
  id?: string
  model?: string
  created?: number
  at?: string | number
  text?: string
  /** The provider's signature on the text part of this event. */
  signature?: string
  refusal?: string
  reasoning?: { text?: string; summary?: string; signature?: string; encrypted?: string; id?: string }
  tool?: {
    id?: string
    name?: string
    arguments?: string | JsonObject
    kind?: 'function' | 'custom'
    signature?: string
    cache?: CacheHint
  }
  citation?: Citation
  search?: { id?: string; query?: string; status?: string; results?: Json }
  media?: Omit<MediaPart, 'cache'>
  opaque?: { body: Json }
  /** A part that the provider repeats when it is done: what has not come of it yet counts. `also` is another key that it may have. */
  whole?: Part
  also?: string | number
  logprobs?: Json
  finish?: Finish
  /** The provider's own finish reason. */
  raw?: string
  /** The provider's end marker: the stream was not cut off, even if no event has a finish reason. */
  done?: true
  stop_sequence?: string
  usage?: ReportedUsage
  error?: ProviderFailure
  extensions?: JsonObject
}

/** Checks whether an event adds to what the client reads: other events only open, count or end the reply. */
export function hasContent(event: ProviderEvent): boolean {
  const { text, refusal, reasoning, tool, citation, search, media, opaque, whole } = event
  if (text || refusal || citation || search || media || opaque || whole) return true
  if (reasoning && Object.values(reasoning).some(Boolean)) return true
  return Boolean(tool && (tool.name || tool.arguments))
}

/** Content, or the end of a reply that has none. */
export function isAnswer(event: ProviderEvent): boolean {
  return hasContent(event) || event.finish !== undefined || event.done === true
}

/** A failure the provider reports inside a stream or a reply. */
export type ProviderFailure = { status?: number; code?: string; message: string; param?: string; retryable?: boolean }

/** Growth of a reply, for the writers of the client APIs: parts open, grow and close; `index` counts parts from 0. */
export type StreamEvent =
  | { type: 'start'; id: string; model?: string; created: number }
  | { type: 'open'; index: number; part: Part }
  | { type: 'delta'; index: number; part: Part['type']; text?: string; summary?: string; arguments?: string }
  | { type: 'citation'; index: number; citation: Citation }
  | { type: 'logprobs'; logprobs: Json }
  | { type: 'close'; index: number; part: Part }
  | { type: 'finish'; finish: Finish; raw?: string; stop_sequence?: string }
  | { type: 'usage'; usage: Usage }

/** The events of one type. */
export type StreamEventOf<Type extends StreamEvent['type']> = Extract<StreamEvent, { type: Type }>
