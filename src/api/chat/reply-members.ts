import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Finish } from '../../core/reply.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { cachedTokens, completionTokens, promptTokens, type Usage } from '../../core/usage.ts'
import { defined } from '../check.ts'
import type { FinishOf } from '../client-api.ts'
import { idsOfMessage } from '../returned-ids.ts'

/** Form in which a choice calls tools, current or deprecated: its finish reason has that name. */
export type Called = 'tool_calls' | 'function_call' | undefined

/** Returns why a reply ended: this API's finish reason, the provider's own, and the stop sequence if one was met. */
export function endingOf(
  { finish, raw, stop_sequence }: { finish: Finish; raw?: string | undefined; stop_sequence?: string },
  legacy: boolean,
): JsonObject {
  const finish_reason = finishReasonOf(finish, legacy ? 'function_call' : 'tool_calls')
  return { finish_reason, ...defined({ native_finish_reason: raw, stop_reason: stop_sequence }) }
}

/** The meaning of a provider's finish reasons, and whether the model was free to call: OpenAI ends a demanded call with `stop`. */
export type Ending = { finishOf: FinishOf | undefined; free: boolean }

/** Checks whether a client leaves it to the model whether it calls a tool. */
export function choosesFreely(request: NeutralRequest | undefined): boolean {
  const { tool_choice: choice = 'auto' } = request ?? {}
  return choice === 'auto' || (typeof choice === 'object' && 'mode' in choice && choice.mode === 'auto')
}

/**
 * The ending of a choice from a provider of this format. `stop` becomes `tool_calls` if the model has called a tool freely: agents would
 * stop otherwise. A `finish_reason` that the API does not define is translated by the provider's table, and stays available as
 * `native_finish_reason`.
 */
export function editEnding(reason: Json | undefined, called: Called, { finishOf, free }: Ending): JsonObject {
  if (reason === 'stop' && called && free) return { finish_reason: called }
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

/** A stream that ended with an error must not look complete: `length` signals to clients that something is missing. */
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

/** Usage in the totals of this API, summed from the disjoint classes; `cost` in USD when it is known. */
export function writeUsage(usage: Usage, costUsd: number | undefined): JsonObject {
  const prompt = promptTokens(usage)
  const completion = completionTokens(usage)
  const writes = (usage.cache_write_5m ?? 0) + (usage.cache_write_1h ?? 0)
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: cachedTokens(usage),
      cache_write_tokens: writes,
      audio_tokens: (usage.input_audio ?? 0) + (usage.cache_read_audio ?? 0),
      ...defined({ image_tokens: usage.input_image }),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning ?? 0,
      audio_tokens: usage.output_audio ?? 0,
      ...defined({ image_tokens: usage.output_image }),
    },
    ...(usage.searches !== undefined && { server_tool_use_details: { web_search_requests: usage.searches } }),
    ...defined({ cost: costUsd }),
  }
}

/** A provider's usage as clients get it; counts that cannot be are replaced by those that are paid. */
export function shownUsage(reported: JsonObject, usage: Usage): JsonObject {
  if (canBe(reported, usage)) return reported
  const counts = writeUsage(usage, undefined)
  const details = (name: string) => ({ [name]: { ...membersOf(reported[name]), ...membersOf(counts[name]) } })
  return { ...reported, ...counts, ...details('prompt_tokens_details'), ...details('completion_tokens_details') }
}

/** Checks whether counts can be as a provider of this format reported them: none is negative, no part larger than its whole. */
function canBe(reported: JsonObject, { corrected }: Usage): boolean {
  const { prompt_tokens: prompt, completion_tokens: completion } = reported
  const cached = membersOf(reported.prompt_tokens_details).cached_tokens
  const reasoning = membersOf(reported.completion_tokens_details).reasoning_tokens
  if (corrected || isLarger(cached, prompt) || isLarger(reasoning, completion)) return false
  return ![prompt, completion, cached, reasoning].some((count) => typeof count === 'number' && count < 0)
}

function membersOf(details: Json | undefined): JsonObject {
  return isObject(details) ? details : {}
}

function isLarger(part: Json | undefined, whole: Json | undefined): boolean {
  return typeof part === 'number' && typeof whole === 'number' && part > whole
}

/** Checks whether the client asks for reasoning under OpenRouter's names: then it reads `reasoning` beside `reasoning_content`. */
export function readsReasoning(request: NeutralRequest | undefined): boolean {
  const { reasoning, include_reasoning: included = null } = request?.origin.body ?? {}
  return isObject(reasoning) || included !== null
}

/** A provider's message or delta with its readable reasoning under the names that the client reads. */
export function withReasoningNames(message: JsonObject, reads: boolean): JsonObject {
  const { reasoning, reasoning_content: content } = message
  if (isText(reasoning) && !isText(content)) return { ...message, reasoning_content: reasoning }
  return reads && isText(content) && !isText(reasoning) ? { ...message, reasoning: content } : message
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns the ids of what a provider keeps of a reply: sound that it made, and the files that it names. */
export function heldIds({ choices }: JsonObject): string[] {
  const said = (Array.isArray(choices) ? choices : []).map((choice) => (isObject(choice) ? choice.message : undefined))
  return [...new Set(said.filter(isObject).flatMap(idsOfMessage))]
}
