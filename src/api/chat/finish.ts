import type { Json, JsonObject } from '../../core/json.ts'
import type { Finish } from '../../core/reply.ts'
import { defined } from '../check.ts'
import type { FinishOf } from '../client-api.ts'

/** How a choice calls tools, in their present or their deprecated form: its finish reason has that name. */
export type Called = 'tool_calls' | 'function_call' | undefined

/** Why a reply ended: this API's finish reason, the provider's own, and the stop sequence if one was met. */
export function endingOf(
  { finish, raw, stop_sequence }: { finish: Finish; raw?: string | undefined; stop_sequence?: string },
  legacy: boolean,
): JsonObject {
  const finish_reason = finishReasonOf(finish, legacy ? 'function_call' : 'tool_calls')
  return { finish_reason, ...defined({ native_finish_reason: raw, stop_reason: stop_sequence }) }
}

/**
 * The ending of a choice from a provider of this format. A `finish_reason` that the API does not define is translated by
 * the provider's table, and stays available as `native_finish_reason`.
 */
export function editEnding(reason: Json | undefined, called: Called, finishOf: FinishOf | undefined): JsonObject {
  if (typeof reason !== 'string' || known.has(reason)) return {}
  const finish = finishOf?.(reason)
  if (finish === undefined) return {}
  return { finish_reason: inferredReason(finish, called), native_finish_reason: reason }
}

/** The finish reason of a choice; one that stopped after calling tools ended with the calls. */
export function inferredReason(finish: Finish, called: Called): string {
  return finish === 'stop' && called ? called : finishReasonOf(finish, called)
}

function finishReasonOf(finish: Finish, called: Called): string {
  return finish === 'tool_calls' && called ? called : finishReasons[finish]
}

/** A stream that ended with an error must not look complete: `length` tells clients that something is missing. */
const finishReasons: { readonly [finish in Finish]: string } = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  content_filter: 'content_filter',
  refusal: 'content_filter',
  pause: 'stop',
  error: 'length',
}

const known: ReadonlySet<string> = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])
