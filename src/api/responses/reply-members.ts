import { isObject, type JsonObject } from '../../core/json.ts'
import type { Finish } from '../../core/reply.ts'
import { cachedTokens, completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import { defined } from '../check.ts'
import type { FinishOf } from '../client-api.ts'
import { idsOfItem } from '../returned-ids.ts'

/** The status of a response that ended so, and the reason if it is incomplete. */
export function endingOf(finish: Finish): JsonObject {
  const reason = incompleteReasons[finish]
  if (!reason) return { status: 'completed', completed_at: Math.floor(Date.now() / 1_000) }
  return { status: 'incomplete', incomplete_details: { reason } }
}

/** Returns how a reply ended in this API: a refusal in words is a complete answer, and one without any cut the answer off. */
export function finishOfReply(finish: Finish, refused: boolean): Finish {
  return finish === 'refusal' && !refused ? 'content_filter' : finish
}

/** Checks whether a response that ended so is incomplete in the sense of this API. */
export function isCut(finish: Finish): boolean {
  return incompleteReasons[finish] !== undefined
}

/**
 * The ending of a response from a provider of this format, where it has to be replaced: a status or a reason that the API
 * does not define is translated by the provider's table.
 */
export function editEnding({ status, incomplete_details }: JsonObject, finishOf: FinishOf | undefined): JsonObject {
  const reason = isObject(incomplete_details) ? incomplete_details.reason : undefined
  const isOwnReason = status === 'incomplete' && typeof reason === 'string' && !reasons.has(reason)
  const unknown = isOwnReason ? reason : status
  if (typeof unknown !== 'string' || statuses.has(unknown)) return {}
  const finish = finishOf?.(unknown)
  return finish === undefined ? {} : { incomplete_details: null, ...endingOf(finish) }
}

/** A stream that ended with an error must not look complete: `max_output_tokens` signals to clients that something is missing. */
const incompleteReasons: { readonly [name in Finish]?: string } = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
  pause: 'max_output_tokens',
  error: 'max_output_tokens',
}

const statuses: ReadonlySet<string> = new Set([
  'completed',
  'failed',
  'in_progress',
  'cancelled',
  'queued',
  'incomplete',
])
const reasons: ReadonlySet<string> = new Set(['max_output_tokens', 'max_messages', 'content_filter', 'steered'])

/** Usage in the totals of this API; `cost` in USD when it is known. */
export function writeUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const input = promptTokens(usage)
  const output = completionTokens(usage)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: cachedTokens(usage),
      cache_write_tokens: (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
    ...defined({ cost: costUsd }),
  }
}

/** Returns the ids of what a provider keeps of a response: containers, and the files that it names. */
export function heldIds({ output }: JsonObject): string[] {
  return [...new Set((Array.isArray(output) ? output : []).flatMap(idsOfItem))]
}
