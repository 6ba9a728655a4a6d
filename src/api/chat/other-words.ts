import type { JsonObject } from '../../core/json.ts'
import type { Part } from '../../core/parts.ts'
import type { NeutralRequest } from '../../core/request.ts'
import type { ProviderWords } from '../client-api.ts'
import { wireFields } from './fields.ts'

/** The two names of a cache hint. */
export const cacheMarks = ['cache_control', 'prompt_cache_breakpoint']

const reasoningNames = wireFields.reasoning ?? []

/** Whether a request asks for reasoning, or to cache some of its content: every server of this format has its own words. */
export function hasOtherWords({ origin, messages, system = [] }: NeutralRequest): boolean {
  if (reasoningNames.some((name) => (origin.body[name] ?? null) !== null)) return true
  return hasHint(system) || messages.some(({ parts }) => hasHint(parts))
}

function hasHint(parts: readonly Part[]): boolean {
  return parts.some((part) => {
    return ('cache' in part && part.cache !== undefined) || (part.type === 'tool_result' && hasHint(part.parts))
  })
}

/** A body whose reasoning is asked for in the provider's words. */
export function withReasoningWords(body: JsonObject, { reasoning }: ProviderWords): JsonObject {
  const others = Object.fromEntries(Object.entries(body).filter(([name]) => !reasoningNames.includes(name)))
  return { ...others, ...reasoning }
}

/** A node whose cache hint has the provider's form; nodes without a hint, or with one in that form, stay as they are. */
export function withMark(node: JsonObject, mark: JsonObject | undefined): JsonObject {
  const given = cacheMarks.filter((name) => (node[name] ?? null) !== null)
  if (!mark || given.length === 0) return node
  const own = given.filter((name) => name in mark)
  if (own.length === given.length) return node
  const others = Object.entries(node).filter(([name]) => !given.includes(name) || own.includes(name))
  return { ...Object.fromEntries(others), ...(own.length === 0 && mark) }
}
