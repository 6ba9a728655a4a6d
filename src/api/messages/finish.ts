import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import type { Finish } from '../../core/reply.ts'
import type { FinishOf } from '../client-api.ts'

/** Why a message ended: `{stop_reason, stop_sequence, stop_details}`. To some providers a refusal is an end like any other. */
export function stopOf(reply: { finish: Finish; stop_sequence?: string; parts: readonly Part[] }): JsonObject {
  const { finish, stop_sequence, parts } = reply
  const refusals = parts.flatMap((part) => (part.type === 'refusal' ? [part.text] : []))
  if (finish === 'stop' && stop_sequence !== undefined) {
    return { stop_reason: 'stop_sequence', stop_sequence, stop_details: null }
  }
  const stop_reason = stopReasons[finish === 'stop' && refusals.length > 0 ? 'refusal' : finish]
  const explanation = refusals.length > 0 ? refusals.join('\n') : null
  const stop_details = stop_reason === 'refusal' ? { type: 'refusal', category: null, explanation } : null
  return { stop_reason, stop_sequence: null, stop_details }
}

/**
 * The stop reason of a provider of this format, where it has to be replaced: one that the API does not define is
 * translated by the provider's table, and one that is missing follows from whether tools were called.
 */
export function editStop(reason: Json | undefined, called: boolean, finishOf: FinishOf | undefined): JsonObject {
  if (typeof reason === 'string' && known.has(reason)) return {}
  const finish = typeof reason === 'string' ? finishOf?.(reason) : 'stop'
  if (finish === undefined) return {}
  return { stop_reason: stopReasons[finish === 'stop' && called ? 'tool_calls' : finish] }
}

/** Whether a block is a call of a tool that the client runs. */
export function isCall(block: Json | undefined): boolean {
  return isObject(block) && block.type === 'tool_use'
}

/** A stream that ended with an error must not look complete: `max_tokens` tells clients that something is missing. */
const stopReasons: { readonly [name in Finish]: string } = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
  refusal: 'refusal',
  pause: 'pause_turn',
  error: 'max_tokens',
}

const known: ReadonlySet<string> = new Set([
  'end_turn',
  'max_tokens',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'compaction',
  'refusal',
  'model_context_window_exceeded',
])
