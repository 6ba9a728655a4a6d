import type { SchemaLimit } from './run/fit-schema.ts'
import type { HistoryRules } from './run/repair-history.ts'
import type { Pattern } from './types.ts'

/** Texts that a provider takes: matching a pattern as a whole, and of at most `max` characters. */
export type TextLimit = { pattern?: Pattern; max?: number; drop?: true }

/** Numbers that a provider takes. One outside becomes the nearest, or is dropped. */
export type NumberLimit = { min?: number; max?: number; drop?: true }

/** The most of a list that a provider takes. */
export type CountLimit = { count: number }

/**
 * Images or files that a provider takes: so many in a request and in a message, each of at most so many bytes, of these subtypes, and of
 * at most so many pixels on a side or in all.
 */
export type MediaLimit = {
  count?: number
  message_count?: number
  bytes?: number
  types?: readonly string[]
  side?: number
  pixels?: number
}

/** Names of texts with a limit. */
export const textLimits = [
  ...(['tool_name', 'tool_description', 'schema_name'] as const),
  ...(['user', 'safety_identifier', 'cache_key'] as const),
] as const

/** Names of numbers with a limit. */
export const numberLimits = [
  ...(['temperature', 'top_p', 'top_k', 'frequency_penalty', 'presence_penalty'] as const),
  ...(['seed', 'n', 'max_output_tokens', 'reasoning_budget', 'top_logprobs'] as const),
] as const

/** Names of lists with a limit: a request with more tools is refused, one with more strict tools has none. */
export const countLimits = ['tools', 'strict_tools'] as const

/** Names of media with a limit: a request with others is refused. */
export const mediaLimits = ['images', 'files'] as const

/** Forms of a tool choice. */
export const choiceForms = ['auto', 'none', 'required', 'named'] as const

export type ChoiceForm = (typeof choiceForms)[number]

/** Limits of a provider for the requests to a family of models. A missing one means that none is known. */
export type Limits = { [name in (typeof textLimits)[number]]?: TextLimit } & {
  [name in (typeof numberLimits)[number]]?: NumberLimit
} & { [name in (typeof countLimits)[number]]?: CountLimit } & {
  [name in (typeof mediaLimits)[number]]?: MediaLimit
} & {
  /** Most base64 characters of all media that a request has as data. */
  media?: { bytes: number }
  metadata?: { count?: number; key?: number; value?: number }
  stop?: { count?: number; max?: number }
  /** Forms of a tool choice that are taken: in general, and while the model thinks. */
  tool_choice?: readonly ChoiceForm[]
  tool_choice_thinking?: readonly ChoiceForm[]
  tool_schema?: SchemaLimit
  answer_schema?: SchemaLimit
}

/** Rules for the requests to a family of models. */
export type FamilyRules = {
  limits: Limits
  /** Requirements on a translated conversation. */
  history: HistoryRules
  /** Requirements on a conversation in the client's own JSON: what is refused, not what is merely unusual. */
  editedHistory: HistoryRules
}
