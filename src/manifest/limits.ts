import type { SchemaLimit } from './run/fit-schema.ts'
import type { HistoryRules } from './run/repair-history.ts'
import type { Pattern } from './types.ts'

/** Texts that a provider takes: matching a pattern as a whole, and of at most `max` characters. */
export type TextLimit = { pattern?: Pattern; max?: number; drop?: true }

/** Numbers that a provider takes. One outside becomes the nearest, or is dropped. */
export type NumberLimit = { min?: number; max?: number; drop?: true }

/** The most of a list that a provider takes. */
export type CountLimit = { count: number }

/** Names of texts with a limit. */
export const textLimits = ['tool_name', 'schema_name', 'user', 'safety_identifier', 'cache_key'] as const

/** Names of numbers with a limit. */
export const numberLimits = [
  ...(['temperature', 'top_p', 'top_k', 'frequency_penalty', 'presence_penalty'] as const),
  ...(['seed', 'n', 'max_output_tokens', 'reasoning_budget', 'top_logprobs'] as const),
] as const

/** Names of lists with a limit: a request with more tools or images is refused, one with more strict tools has none. */
export const countLimits = ['tools', 'images', 'strict_tools'] as const

/** Forms of a tool choice. */
export const choiceForms = ['auto', 'none', 'required', 'named'] as const

export type ChoiceForm = (typeof choiceForms)[number]

/** Limits of a provider for the requests to a family of models. A missing one means that none is known. */
export type Limits = { [name in (typeof textLimits)[number]]?: TextLimit } & {
  [name in (typeof numberLimits)[number]]?: NumberLimit
} & { [name in (typeof countLimits)[number]]?: CountLimit } & {
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
