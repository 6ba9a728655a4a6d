import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { ProviderFields } from '../client-api.ts'
import { wireFields } from './fields.ts'

/** The two names of a cache hint. */
export const cacheMarks = ['cache_control', 'prompt_cache_breakpoint']

/** Fields at the top that every server of this format has its own words for. */
const spokenFields = [...(wireFields.reasoning ?? []), 'cache_control']

/** Checks whether a request asks for reasoning, or to cache its content: every server of this format has its own names for that. */
export function hasAlternativeNames({ origin, messages, system = [], cache }: NeutralRequest): boolean {
  if (spokenFields.some((name) => (origin.body[name] ?? null) !== null)) return true
  return cache?.options?.type === 'ephemeral' || hasHint(system) || messages.some(({ parts }) => hasHint(parts))
}

function hasHint(parts: readonly Part[]): boolean {
  return parts.some((part) => {
    return ('cache' in part && part.cache !== undefined) || (part.type === 'tool_result' && hasHint(part.parts))
  })
}

/** A body that asks for reasoning and caching in the provider's words. */
export function withProviderFields(body: JsonObject, { members }: ProviderFields): JsonObject {
  const others = Object.entries(body).filter(([name]) => !spokenFields.includes(name))
  return { ...Object.fromEntries(others), ...members }
}

/** A message or part whose cache hint has the form that the provider knows, in the only place that it knows: a content part. */
export function withMark(node: JsonObject, mark: JsonObject | undefined): JsonObject {
  if (!mark || !(isMarked(node) || hasMarkedCall(node))) return node
  if (node.role === undefined) return { ...unmarked(node), ...formOf(node, mark) }
  const bare = { ...unmarked(node), ...(hasMarkedCall(node) && { tool_calls: callsOf(node).map(unmarked) }) }
  return cannotCarryMark(node) ? bare : { ...bare, ...withLastPart(node.content, formOf(node, mark)) }
}

/** Checks whether a message has a hint that no content part can carry. */
export function cannotCarryMark(message: JsonObject): boolean {
  const isSpoken = message.role === 'assistant' || message.role === 'tool' || message.role === 'function'
  return (isSpoken && isMarked(message)) || hasMarkedCall(message)
}

function isMarked(node: JsonObject): boolean {
  for (const name of cacheMarks) if ((node[name] ?? null) !== null) return true
  return false
}

function callsOf({ tool_calls: calls }: JsonObject): JsonObject[] {
  return Array.isArray(calls) ? calls.filter(isObject) : []
}

function hasMarkedCall({ tool_calls: calls }: JsonObject): boolean {
  return Array.isArray(calls) && calls.some((call) => isObject(call) && isMarked(call))
}

function unmarked(node: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(node).filter(([name]) => !cacheMarks.includes(name)))
}

/** The client's own hint where it has the provider's form. */
function formOf(node: JsonObject, mark: JsonObject): JsonObject {
  const own = Object.keys(mark).filter((name) => (node[name] ?? null) !== null)
  return own.length > 0 ? Object.fromEntries(own.map((name) => [name, node[name] as Json])) : mark
}

function withLastPart(content: Json | undefined, mark: JsonObject): { content?: Json } {
  if (typeof content === 'string') return { content: [{ type: 'text', text: content, ...mark }] }
  const last = Array.isArray(content) ? content.at(-1) : undefined
  if (!Array.isArray(content) || !isObject(last) || isMarked(last)) return {}
  return { content: [...content.slice(0, -1), { ...last, ...mark }] }
}
