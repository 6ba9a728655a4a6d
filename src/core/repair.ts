import type { NeutralRequest } from './request.ts'

/** What a dialect demands of a conversation's history. Everything is off unless declared. */
export type HistoryRules = {
  /** Neighbours of the same role become one message. */
  alternate?: boolean
  /** The conversation must begin with a user message. */
  first_user?: boolean
  /** What becomes of instructions in the middle of a conversation: kept, or told by the user as a marked note. */
  mid_system?: 'keep' | 'user'
  /** Every call is answered right after, every result has its call: what is missing is completed, orphans become text. */
  pair_tools?: boolean
  /** Results stand first in their message, in the order of their calls. */
  results_first?: boolean
  /** Characters allowed in tool ids and how many; others are mapped by a deterministic digest. */
  tool_id?: { pattern: string; length?: number; max_length?: number }
  /** Empty text is dropped, and messages that hold nothing else. */
  no_empty_text?: boolean
  /** Media that must be inlined instead of given as URL. */
  inline_media?: boolean
}

/** The request with a history that the rules accept; the client's own object is never changed. */
export function repairHistory(request: NeutralRequest, _rules: HistoryRules): NeutralRequest {
  return request
}
