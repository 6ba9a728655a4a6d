import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import type { Finish } from '../../core/reply.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { cachedTokens, completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import { defined } from '../check.ts'
import type { FinishOf } from '../client-api.ts'
import { idsOfItem } from '../returned-ids.ts'

/** Returns why a message ended: `{stop_reason, stop_sequence, stop_details}`. To some providers a refusal is an end like any other. */
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

/** Checks whether a block is a call of a tool that the client runs. */
export function isCall(block: Json | undefined): boolean {
  return isObject(block) && block.type === 'tool_use'
}

/** A stream that ended with an error must not look complete: `max_tokens` signals to clients that something is missing. */
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

/** Usage in the counts of this API: input without cache reads and writes; `cost` in USD when it is known. */
export function writeUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const cached = cachedTokens(usage)
  const { cache_write_5m = 0, cache_write_1h = 0, reasoning, searches } = usage
  return {
    input_tokens: promptTokens(usage) - cached - cache_write_5m - cache_write_1h,
    cache_creation_input_tokens: cache_write_5m + cache_write_1h,
    cache_read_input_tokens: cached,
    cache_creation: { ephemeral_5m_input_tokens: cache_write_5m, ephemeral_1h_input_tokens: cache_write_1h },
    output_tokens: completionTokens(usage),
    output_tokens_details: reasoning === undefined ? null : { thinking_tokens: reasoning },
    server_tool_use: searches ? { web_search_requests: searches, web_fetch_requests: 0 } : null,
    inference_geo: null,
    service_tier: null,
    speed: null,
    ...defined({ cost: costUsd }),
  }
}

/** The counts at the end of a stream; the lifetimes of cache writes are given only where there are writes. */
export function deltaUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const {
    inference_geo: _geo,
    service_tier: _tier,
    speed: _speed,
    cache_creation,
    ...counts
  } = writeUsage(usage, costUsd)
  return counts.cache_creation_input_tokens === 0 ? counts : { ...counts, cache_creation }
}

/**
 * Returns the ids of what a provider keeps of a message: its container, the files that it names, and the message itself where it is part of a thread or may
 * be compared with the next one.
 */
export function heldIds({ id, container, content }: JsonObject, { origin }: NeutralRequest): string[] {
  const { thread, diagnostics } = origin.body
  const isNamed = isObject(thread) || isObject(diagnostics)
  const ids = [isObject(container) ? container.id : undefined, isNamed ? id : undefined]
  const inside = Array.isArray(content) ? content.flatMap(idsOfItem) : []
  return [...new Set([...ids, ...inside].filter((held) => typeof held === 'string'))]
}

/** The characters that this API allows in ids. */
const legal = /^[a-zA-Z0-9_-]+$/

/** The prefix of an id with other characters, written in base64url. */
const prefix = 'toolu_router1_'

/** The id of a call in this API; an id with other characters is encoded so that it can be decoded again. */
export function writeCallId(id: string): string {
  return legal.test(id) && !id.startsWith(prefix) ? id : prefix + Buffer.from(id).toString('base64url')
}

/** The provider's own id of a call. */
export function readCallId(id: string): string {
  return id.startsWith(prefix) ? Buffer.from(id.slice(prefix.length), 'base64url').toString('utf8') : id
}
